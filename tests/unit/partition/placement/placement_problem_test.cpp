// SPDX-License-Identifier: Apache-2.0
// The placement problem: where nodes may run, and the cost of each device and each copy.
#include "partition/placement/placement_problem.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "ir/states_section.hpp"
#include "npu/partition/metrics.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// One FLOP or byte a microsecond on the npu, half of that on the cpu.
Target target() {
  return parse_target(Json::parse(R"({"name": "t", "devices": [
    {"name": "npu", "ops": [{"types": ["aten.relu.default"]}],
     "peak_flops": {"float32": 1e12}, "memory_bandwidth": 1e6, "launch_overhead_us": 3},
    {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1e12}, "memory_bandwidth": 5e5,
     "launch_overhead_us": 1}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e6, "latency_us": 2},
              {"from": "cpu", "to": "npu", "bandwidth": 1e6, "latency_us": 4}]})"),
                      "t.json");
}

// relu -> sin, relu2: 16 bytes in, 16 out each.
Graph two_readers() {
  return graph_of(R"(
    input x
    a = relu(x) @npu
    b = sin(a) @cpu
    c = relu(a) @npu; output b, c)");
}

}  // namespace

TEST_CASE("placement problem: prices of places and ways in whole ticks") {
  const Graph graph = two_readers();
  const PlacementProblem problem = build_placement_problem(graph, target(), roofline_cost());
  REQUIRE(problem.items == 3);
  CHECK(problem.devices == 2);
  CHECK(problem.ticks_per_us == 1e6);
  // 32 bytes at 1 byte a microsecond, or half of it.
  CHECK(problem.cost_of(0, 0) == 32'000'000);
  CHECK(problem.cost_of(0, 1) == 64'000'000);
  CHECK(problem.cost_of(1, 0) == kNever);  // the npu has no sin
  CHECK(problem.launch == std::vector<std::int64_t>{3'000'000, 1'000'000});
  CHECK(problem.tagged == Assignment{0, 1, 0});
  // Only a is read by other items: 16 bytes and the latency of either way.
  REQUIRE(problem.tensors.size() == 1);
  CHECK(problem.readers_of(problem.tensors[0]).size() == 2);
  CHECK(problem.transfer_of(0, 0, 1) == 18'000'000);
  CHECK(problem.transfer_of(0, 1, 0) == 20'000'000);
  CHECK(problem.transfer_of(0, 0, 0) == 0);
  CHECK(problem.microseconds(1'500'000) == 1.5);
}

TEST_CASE("placement problem: a placement costs what its plan is predicted to take") {
  const Graph graph = two_readers();
  const PlacementProblem problem = build_placement_problem(graph, target(), roofline_cost());
  // a, c on the npu, b on the cpu: 32 + 64 + 32 and one copy to the cpu.
  CHECK(placement_cost(problem, {0, 1, 0}) == (32 + 64 + 32 + 18) * 1'000'000LL);
  CHECK(tensor_cost(problem, {0, 1, 0}, 0) == 18'000'000);
  // Two readers on one other device: one copy.
  CHECK(tensor_cost(problem, {0, 1, 1}, 0) == 18'000'000);
  CHECK(placement_cost(problem, {1, 1, 1}) == 3 * 64'000'000LL);
  CHECK(placement_cost(problem, {0, 0, 0}) == kNever);
}

TEST_CASE("placement problem: who put a node there decides whether it may leave") {
  struct Case {
    const char* reason;
    bool may_leave;
  };
  // c, which both devices run, on the cpu.
  for (const Case& expected :
       {Case{"cheaper on cpu", true}, Case{"follows its producer", true}, Case{"forced", false},
        Case{"kept", false}, Case{"min nodes", false}, Case{"min flops", false},
        Case{"max partitions", false}, Case{"backend 'npu': no memory", false}}) {
    CAPTURE(expected.reason);
    Graph graph = two_readers();
    graph.nodes()[2].device = "cpu";
    graph.nodes()[2].device_reason = expected.reason;
    const PlacementProblem problem = build_placement_problem(graph, target(), roofline_cost());
    CHECK((problem.cost_of(2, 0) != kNever) == expected.may_leave);
    CHECK(problem.cost_of(2, 1) != kNever);
    CHECK(problem.node_devices[2] == (expected.may_leave ? 3U : 2U));
  }
}

TEST_CASE("placement problem: a getitem moves with its producer, a group as a whole") {
  Graph graph = graph_of(R"(
    input x [4,4]
    s = aten.split.Tensor(x) [2,4] [2,4] {"split_size": 2} @cpu
    g = getitem(s_0, s_1) {"index": 0} @cpu
    a = relu(g) @npu fusion_group=1
    b = relu(a) @npu fusion_group=1; output b)");
  const PlacementProblem problem = build_placement_problem(graph, target(), roofline_cost());
  REQUIRE(problem.items == 2);
  CHECK(problem.item_of == std::vector<std::int32_t>{0, 0, 1});
  CHECK(problem.tensors.size() == 1);  // what the getitem takes, not the list
}

TEST_CASE("placement problem: who reads a state stays with who writes it, through views too") {
  Graph graph = graph_of(R"(
    input c [2,4]
    input x [2,4]
    n = aten.add.Tensor(c, x) [2,4] @cpu
    v = aten.transpose.int(n) [4,2] {"dim0": 0, "dim1": 1} @cpu
    w = unsqueeze(v) [4,2,1] {"dim": 2} @cpu
    r = relu(w) [4,2,1] @cpu
    s = relu(r) [4,2,1] @cpu; output s, n)");
  CHECK(build_placement_problem(graph, target(), roofline_cost()).items == 5);
  store_states(graph, {{.name = "c", .input = "c", .output = "n", .axis = {}}});
  const PlacementProblem problem = build_placement_problem(graph, target(), roofline_cost());
  CHECK(problem.item_of == std::vector<std::int32_t>{0, 0, 0, 0, 1});
  CHECK(problem.cost_of(0, 0) == kNever);  // only the cpu has all of them
}

TEST_CASE("placement problem: a device that the target lacks") {
  Graph graph = two_readers();
  graph.nodes()[0].device = "tpu";
  CHECK_THROWS_WITH(build_placement_problem(graph, target(), roofline_cost()),
                    Catch::Matchers::Contains("device 'tpu' is not in target 't'"));
}
