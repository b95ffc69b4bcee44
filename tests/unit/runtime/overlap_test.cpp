// SPDX-License-Identifier: Apache-2.0
// Steps on different devices at the same time: that they do overlap, and that results do not
// depend on it.
#include <algorithm>
#include <cstdlib>

#include "catch.hpp"
#include "compile/vendor.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "runtime/random_tensor.hpp"

using namespace npu;
using npu::test::graph_of;
using npu::test::has_cpu;
using npu::test::random_vendor_graph;
using npu::test::Setting;
using npu::test::use_vendor_backend;
using npu::test::vendor_target;

namespace {

struct Case {
  Graph graph;
  PartitionPlan plan;
  std::vector<Tensor> weights;
  std::vector<Tensor> inputs;
};

/// Contiguous: with two devices, fewest partitions means that each waits for the one before it.
Case make_case(Graph graph, std::uint64_t seed = 0) {
  Case made{std::move(graph), {}, {}, {}};
  PartitionOptions partition;
  partition.strategy = Strategy::kContiguous;
  Diagnostics diagnostics;
  made.plan = partition_graph(made.graph, partition, diagnostics).plan;
  made.weights = load_weights(made.graph, {.file = {}, .random_seed = seed}, diagnostics);
  for (const TensorId id : made.graph.graph_inputs()) {
    made.inputs.push_back(random_input(made.graph, id, seed));
  }
  return made;
}

ExecutorOptions options(bool overlap) {
  ExecutorOptions result;
  result.threads = 1;
  result.overlap = overlap;
  return result;
}

/// Two branches whose nodes return only if they run at the same time.
Graph meeting_graph() {
  Graph graph = graph_of(R"(
    input x [3]
    meet_a = neg(x)
    meet_b = relu(x)
    sum = aten.add.Tensor(meet_a, meet_b); output sum)");
  for (Node& node : graph.nodes()) node.device = node.name == "meet_b" ? "npu2" : "npu";
  graph.set_npu_member("target", *vendor_target().json);
  return graph;
}

}  // namespace

TEST_CASE("independent steps of two devices run at the same time", "[runtime][overlap]") {
  use_vendor_backend();
  const Case made = make_case(meeting_graph());
  Executor executor =
      compile_and_load(made.graph, made.plan, vendor_target(), made.weights, options(true));
  CHECK(executor.overlaps());
  for (int i = 0; i < 20; ++i) {
    RunRecord record;
    const auto outputs = executor.run(made.inputs, &record);
    for (int k = 0; k < 3; ++k) {
      const float x = made.inputs[0].as<float>()[k];
      CHECK(outputs[0].as<float>()[k] == -x + std::max(x, 0.0F));
    }
    REQUIRE(record.steps.size() >= 2);
    CHECK(record.steps.back().kind == StepRecord::Kind::kOutput);
  }
}

TEST_CASE("a plan in which every step waits for the one before needs no threads",
          "[runtime][overlap]") {
  use_vendor_backend();
  Graph graph = graph_of(R"(
    input x [3]
    a = neg(x)
    b = relu(a)
    c = neg(b); output c)");
  for (Node& node : graph.nodes()) node.device = node.name == "b" ? "npu2" : "npu";
  graph.set_npu_member("target", *vendor_target().json);
  const Case made = make_case(std::move(graph));
  CHECK_FALSE(compile_and_load(made.graph, made.plan, vendor_target(), made.weights, options(true))
                  .overlaps());
}

TEST_CASE("results and records are those of one step after another", "[runtime][overlap]") {
  use_vendor_backend();
  int overlapping = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Case made = make_case(random_vendor_graph(seed + 100, 30), seed);
    // Every second case has device memory that the host does not see.
    if (seed % 2 == 1) ::setenv("WRAP_FAULT", "far", 1);
    Executor together =
        compile_and_load(made.graph, made.plan, vendor_target(), made.weights, options(true));
    Executor one_by_one =
        compile_and_load(made.graph, made.plan, vendor_target(), made.weights, options(false));
    CHECK_FALSE(one_by_one.overlaps());
    overlapping += together.overlaps() ? 1 : 0;
    RunRecord expected_record;
    const auto expected = one_by_one.run(made.inputs, &expected_record);
    for (int repeat = 0; repeat < 3; ++repeat) {
      RunRecord record;
      const auto outputs = together.run(made.inputs, &record);
      REQUIRE(outputs.size() == expected.size());
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        CHECK(compare_tensors(outputs[i], expected[i], {0, 0}).ok);
      }
      REQUIRE(record.steps.size() == expected_record.steps.size());
      for (std::size_t s = 0; s < record.steps.size(); ++s) {
        CHECK(record.steps[s].kind == expected_record.steps[s].kind);
        CHECK(record.steps[s].index == expected_record.steps[s].index);
        CHECK(record.steps[s].bytes == expected_record.steps[s].bytes);
      }
    }
    ::unsetenv("WRAP_FAULT");
    if (!has_cpu()) continue;
    const PartitionPlan whole = single_partition_plan(made.graph, "cpu");
    Executor reference =
        compile_and_load(made.graph, whole, vendor_target(), made.weights, options(false));
    const auto on_cpu = reference.run(made.inputs, nullptr);
    for (std::size_t i = 0; i < on_cpu.size(); ++i) {
      CHECK(compare_tensors(expected[i], on_cpu[i], {0, 0}).ok);
    }
  }
  CHECK(overlapping > 20);  // else the cases prove nothing
}

TEST_CASE("a step that fails ends the run on every device, and the next run works",
          "[runtime][overlap]") {
  use_vendor_backend();
  const Case made = make_case(random_vendor_graph(7, 30));
  Executor executor =
      compile_and_load(made.graph, made.plan, vendor_target(), made.weights, options(true));
  const auto expected = executor.run(made.inputs, nullptr);
  for (int i = 0; i < 10; ++i) {
    {
      const Setting fault("WRAP_FAULT", "run=4");
      CHECK_THROWS_WITH(executor.run(made.inputs, nullptr), Catch::Contains("it does not run"));
    }
    const auto outputs = executor.run(made.inputs, nullptr);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      CHECK(compare_tensors(outputs[k], expected[k], {0, 0}).ok);
    }
  }
}
