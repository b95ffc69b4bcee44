// SPDX-License-Identifier: Apache-2.0
// Parallelism and memory of partitions, with the arithmetic done by hand.
#include <cmath>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/partition/strategies.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Target one_device() {
  return parse_target(Json::parse(R"({"name": "one", "devices": [
    {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1e12}, "memory_bandwidth": 1e9}]})"),
                      "one.json");
}

PlanWorkload workload(GraphBuilder& builder) {
  for (Json& node : builder.document()["nodes"]) node["device"] = "cpu";
  const Graph graph = builder.build();
  return plan_workload(graph, partition_convex(graph), one_device());
}

}  // namespace

TEST_CASE("workload: a chain keeps one unit busy, branches several") {
  GraphBuilder chain;
  chain.input("x", {1000})
      .node("a", "aten.relu.default", {"x"})
      .node("b", "aten.relu.default", {"a"})
      .output("b");
  CHECK(workload(chain).parallelism == 1);
  GraphBuilder branches;
  branches.input("x", {1000});
  for (const char* name : {"a", "b", "c"}) {
    branches.node(name, "aten.relu.default", {"x"}).output(name);
  }
  CHECK(std::abs(workload(branches).parallelism - 3) < 1e-9);
  CHECK(workload(branches).least_parallelism == workload(branches).parallelism);
}

TEST_CASE("workload: memory is used again, and what is cheap could be computed again") {
  // While c runs: x, a (which waits for d), b and c, 4000 bytes each.
  GraphBuilder builder;
  builder.lines(R"(
    input x [1000]
    a = relu(x)
    b = aten.softmax.int(x) {"dim": 0}
    c = aten.softmax.int(b) {"dim": 0}
    d = aten.add.Tensor(a, c); output d)");
  const PlanWorkload found = workload(builder);
  CHECK(found.peak_bytes == 4 * 4000);
  CHECK(found.recomputable_bytes == 4000);  // a, from x
  CHECK(found.recompute_flops == 1000);
  // What reads something that is gone by then is not computed again.
  GraphBuilder gone;
  gone.lines(R"(
    input x [1000]
    s = aten.softmax.int(x) {"dim": 0}
    a = relu(s)
    b = aten.softmax.int(x) {"dim": 0}
    c = aten.softmax.int(b) {"dim": 0}
    d = aten.add.Tensor(a, c); output d)");
  CHECK(workload(gone).recomputable_bytes == 0);
}

TEST_CASE("workload: nothing to run") {
  GraphBuilder empty;
  const PlanWorkload found = workload(empty);
  CHECK(found.parallelism == 1);
  CHECK(found.peak_bytes == 0);
}
