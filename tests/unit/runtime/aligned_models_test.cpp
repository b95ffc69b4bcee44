// SPDX-License-Identifier: Apache-2.0
// Aligned documents on the real backends: conversions never change a result.

#include <algorithm>
#include <cstdlib>
#include <random>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/align.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "target/support_check.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

const std::string kModels = std::string(NPU_TEST_DATA_DIR) + "/models/small/";

std::vector<Tensor> read_inputs(const Graph& graph, const std::string& name) {
  std::vector<Tensor> inputs;
  const SafetensorsFile file(kModels + name + ".inputs.safetensors");
  for (const TensorId id : graph.graph_inputs()) {
    inputs.push_back(file.tensor(*file.find(graph.tensor(id).name)));
  }
  return inputs;
}

std::vector<Tensor> run(const Graph& graph, const PartitionPlan& plan, const Target& target,
                        const std::string& name) {
  Diagnostics diagnostics;
  const std::vector<Tensor> weights = load_weights(
      graph, {.file = kModels + name + ".safetensors", .random_seed = {}}, diagnostics);
  REQUIRE(test::errors_of(diagnostics).empty());
  ExecutorOptions options;
  options.threads = 1;
  Executor executor = compile_and_load(graph, plan, target, weights, options);
  return executor.run(read_inputs(graph, name), nullptr);
}

void check_same(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool narrow = expected[i].dtype() == DType::kBFloat16;
    const Comparison comparison = compare_tensors(
        actual[i], expected[i], {.rtol = narrow ? 2e-2 : 1e-4, .atol = narrow ? 2e-2 : 1e-5});
    CAPTURE(i, comparison.max_abs, comparison.mismatch);
    CHECK(comparison.ok);
  }
}

TEST_CASE("aligned models give the results of those that are not") {
  if (!test::use_backends()) return;
  std::mt19937 random(71);
  const Target host = load_target("host");
  std::int64_t conversions = 0;
  for (const char* name :
       {"residual", "residual_bf16", "depthwise", "squeeze_excite", "inception", "conv_kinds",
        "self_attention", "multi_output", "plain_norms", "shapes", "in_place_view", "dtypes"}) {
    CAPTURE(name);
    for (int round = 0; round < 3; ++round) {
      CAPTURE(round);
      Graph graph = read_valid_graph(read_file(kModels + name + ".json"), kModels + name + ".json");
      Diagnostics diagnostics;
      tag_ops(graph, host, {}, diagnostics);
      if (round > 0) {
        // Pins in every other place, and a split, so that conversions stand between all kinds of
        // ops and at boundaries.
        for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
          Node& node = graph.nodes()[n];
          if (random() % 2 == 0 && node.op_type != "<built-in function getitem>") {
            node.json["dev_info"] = random() % 2 == 0 ? "ALIGN" : "NALIGN";
          }
        }
      }
      if (round == 2) {
        tag_ops(graph, host, {.force = {{"cpu", "aten.[am]*"}}}, diagnostics);
      }
      partition_graph(graph, {}, diagnostics);
      REQUIRE(test::errors_of(diagnostics).empty());
      graph = read_valid_graph(write_graph(graph), "plan.json");
      const std::vector<Tensor> expected =
          run(graph, read_partition_plan(graph, diagnostics), host, name);
      for (const char* algorithm : {"greedy", "optimal"}) {
        CAPTURE(algorithm);
        Graph aligned = graph;
        conversions +=
            align_layout(aligned, {.algorithm = algorithm}, diagnostics).costs.conversions;
        aligned = read_valid_graph(write_graph(aligned), "aligned.json");
        const PartitionPlan plan = read_partition_plan(aligned, diagnostics);
        REQUIRE(test::errors_of(diagnostics).empty());
        check_same(run(aligned, plan, host, name), expected);
        // On libtorch a conversion is the identity.
        if (std::string(algorithm) != "greedy") continue;
        for (Node& node : aligned.nodes()) node.device = "cpu";
        check_same(run(aligned, single_partition_plan(aligned, "cpu"), host, name), expected);
      }
    }
  }
  CHECK(conversions > 100);
}

TEST_CASE("devices of the built-in targets run channel_norm") {
  const Graph graph = test::graph_of(R"(
    input x [1,20,3,3]
    n = npu.channel_norm(x) {"direction": false}; output n)");
  for (const BuiltInTarget& built_in : built_in_targets()) {
    for (const Device& device : load_target(built_in.name).devices) {
      if (!device.align.is_object() && !device.any_op) continue;
      CAPTURE(built_in.name, device.name);
      CHECK(check_support(graph, NodeId{0}, device).supported);
    }
  }
}

}  // namespace
}  // namespace npu
