// SPDX-License-Identifier: Apache-2.0
// Every small model gives PyTorch's results on the cpu, split over both devices, and fused; in one
// process, since libtorch takes most of a second to load.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/support/file_io.hpp"
#include "npu/target/target.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

const std::string kSmallModels = std::string(NPU_TEST_DATA_DIR) + "/models/small/";

std::vector<std::string> small_model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSmallModels)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Graph read_small_model(const std::string& name) {
  return read_valid_graph(read_file(kSmallModels + name + ".json"), kSmallModels + name + ".json");
}

/// As a program hands it to the next one.
Graph handed_on(const Graph& graph) { return read_valid_graph(write_graph(graph), graph.file); }

/// Some ops of every model on the cpu, the others where the target prefers them.
Graph split_model(const std::string& name) {
  Graph graph = read_small_model(name);
  Diagnostics diagnostics;
  tag_ops(graph, load_target("host"), {.force = {{"cpu", "aten.[a-f]*"}}}, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return handed_on(graph);
}

/// Its outputs are those of the file; the rest is left to `check`.
RunReport run_small_model(Graph graph, const std::string& name, RunModelOptions options) {
  options.inputs = {{{}, kSmallModels + name + ".inputs.safetensors"}};
  options.expect = {{{}, kSmallModels + name + ".outputs.safetensors"}};
  options.cache.enabled = false;
  Diagnostics diagnostics;
  RunReport report = run_model(graph, options, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  REQUIRE(report.expect);
  CHECK(report.expect->ok());
  return report;
}

}  // namespace

TEST_CASE("every small model runs on the cpu", "[runtime][long]") {
  if (!test::use_backends()) return;
  std::size_t count = 0;
  for (const std::string& name : small_model_names()) {
    CAPTURE(name);
    RunModelOptions options;
    options.where.devices = {"cpu"};
    const RunReport report = run_small_model(read_small_model(name), name, options);
    CHECK(run_metrics(report).at("transfers") == 0);
    ++count;
  }
  CHECK(count >= 26);
}

TEST_CASE("every small model runs split over two devices", "[runtime][long]") {
  if (!test::use_backends()) return;
  double transfers = 0;
  for (const std::string& name : small_model_names()) {
    CAPTURE(name);
    Graph graph = split_model(name);
    Diagnostics diagnostics;
    partition_graph(graph, {}, diagnostics);
    REQUIRE_FALSE(diagnostics.has_errors());
    RunModelOptions options;
    options.verify_device = "cpu";
    const RunReport report = run_small_model(handed_on(graph), name, options);
    REQUIRE(report.verify);
    CHECK(report.verify->ok());
    transfers += run_metrics(report).at("transfers");
  }
  CHECK(transfers > 40);
}

TEST_CASE("fused models run split over two devices", "[runtime][long]") {
  if (!test::use_backends()) return;
  for (const char* name :
       {"residual", "depthwise", "squeeze_excite", "inception", "mlp", "self_attention",
        "bert_tiny", "gpt_small", "multi_output", "in_place_reader", "scalar_math"}) {
    CAPTURE(name);
    Graph fused = split_model(name);
    Diagnostics diagnostics;
    fuse_ops(fused, {.patterns = {"all"}}, diagnostics);
    REQUIRE_FALSE(diagnostics.has_errors());
    for (const Strategy strategy : {Strategy::kConvex, Strategy::kBlocks}) {
      CAPTURE(static_cast<int>(strategy));
      Graph graph = handed_on(fused);
      PartitionOptions options;
      options.strategy = strategy;
      partition_graph(graph, options, diagnostics);
      REQUIRE_FALSE(diagnostics.has_errors());
      run_small_model(handed_on(graph), name, {});
    }
  }
}

}  // namespace npu
