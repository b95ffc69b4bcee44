// SPDX-License-Identifier: Apache-2.0
// What npu-fuse predicts is what runs: for every model of testdata the kernels that the onednn
// backend compiles, layout copies aside, are the fusion groups that launch one; and a group that it
// splits is in the report with a reason.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"
#include "compile/sub_ir.hpp"
#include "graph_builder.hpp"
#include "npu/compile/compile_report.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "npu/target/target.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::GraphBuilder;

std::vector<std::string> model_files() {
  std::vector<std::string> files;
  for (const char* folder : {"/models", "/models/small"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(NPU_TEST_DATA_DIR) + folder)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Steps that compute or move.
std::int64_t kernels_of(const Json& report) {
  const Json& steps = report.at("steps");
  return std::count_if(steps.begin(), steps.end(),
                       [](const Json& step) { return step.at("kind") != "reorder"; });
}

CompiledModel compile_model(const std::string& file, bool fuse, const std::string& precision) {
  Graph graph = read_valid_graph(read_file(file), file);
  const Target host = load_target("host");
  Diagnostics diagnostics;
  tag_ops(graph, host, {}, diagnostics);
  if (fuse) fuse_ops(graph, {}, diagnostics);
  const PartitionPlan plan = partition_graph(graph, {}, diagnostics).plan;
  std::vector<Tensor> weights = load_weights(graph, {.file = {}, .random_seed = 1}, diagnostics);
  REQUIRE(test::errors_of(diagnostics).empty());
  CompileOptions options;
  options.precision = precision;
  fold_constants(graph, host, options, nullptr, weights);
  return compile_graph(graph, plan, host, weights, options, nullptr);
}

void check_prediction(const std::string& file, bool fuse) {
  const CompiledModel model = compile_model(file, fuse, "f32");
  for (const CompiledPartition& partition : model.partitions) {
    if (partition.backend != "onednn") continue;
    const Json& report = *partition.report;
    INFO(report.at("splits").dump());
    const auto splits = static_cast<std::int64_t>(report.at("splits").size());
    CHECK(kernels_of(report) ==
          report.at("kernels").get<std::int64_t>() - report.at("reorders").get<std::int64_t>());
    CHECK(kernels_of(report) == report.at("predicted_kernels").get<std::int64_t>() + splits);
    if (test::onednn::has_avx512()) CHECK(splits == 0);
    for (const Json& split : report.at("splits")) {
      CHECK_FALSE(split.at("reason").get<std::string>().empty());
    }
  }
}

/// The backend's report of a sub-IR that is compiled as it is.
Json report_of(const std::string& text, const Graph& graph) {
  std::vector<std::vector<float>> data;
  std::vector<npu_tensor> weights;
  for (const TensorInfo& info : graph.tensors()) {
    if (info.kind != TensorKind::kWeight) continue;
    data.emplace_back(static_cast<std::size_t>(info.bytes()) / sizeof(float), 0.5F);
    weights.push_back(test::tensor_view(info.name.c_str(), NPU_FLOAT32, info.shape,
                                        data.back().data(),
                                        static_cast<std::uint64_t>(info.bytes())));
  }
  const auto device = test::onednn::open_device(1);
  const test::BackendCalls& api = test::onednn::api();
  std::string blob;
  test::CallError error;
  const npu_status status = api.compile(device.get(), text, weights, "{}", &blob, &error);
  INFO(error.text);
  REQUIRE(status == NPU_OK);
  std::string report;
  REQUIRE(api.blob_report(device.get(), blob, &report, &error) == NPU_OK);
  return Json::parse(report);
}

/// conv, relu and tanh, as one group of a pattern.
GraphBuilder chain(const std::string& pattern, int relu_group, const std::string& last) {
  GraphBuilder graph;
  const Shape shape{1, 16, 8, 8};
  graph.input("x", shape).weight("w", {16, 16, 3, 3});
  const auto grouped = [&](int group) {
    graph.key("fusion_group", group).key("fusion_pattern", pattern);
  };
  graph.node("c", "aten.conv2d.default", {"x", "p_w"}, shape, {{"padding", {1, 1}}});
  grouped(0);
  graph.node("r", "aten.relu.default", {"c"}, shape);
  grouped(relu_group);
  graph.node("y", last, {"r"}, shape).output("y");
  grouped(0);
  return graph;
}

}  // namespace

TEST_CASE("npu-fuse predicts the kernels that run, for every model", "[onednn][fusion]") {
  if (!test::use_backends()) return;
  for (const std::string& file : model_files()) {
    CAPTURE(file);
    check_prediction(file, true);
  }
}

TEST_CASE("documents without groups are fused as npu-fuse would", "[onednn][fusion]") {
  if (!test::use_backends()) return;
  for (const std::string& file : model_files()) {
    if (file.find("/small/") == std::string::npos) continue;
    CAPTURE(file);
    check_prediction(file, false);
  }
}

TEST_CASE("onednn computes groups as they are, whatever their pattern is called",
          "[onednn][fusion]") {
  const std::string pattern = GENERATE("conv-post-ops", "conv-act", "my-own");
  const GraphBuilder graph = chain(pattern, 0, "aten.tanh.default");
  const Json report = report_of(graph.text(), graph.build());
  CHECK(kernels_of(report) == 1);
  CHECK(report.at("splits").empty());
}

TEST_CASE("onednn splits a group that no kernel computes, and says why", "[onednn][fusion]") {
  const GraphBuilder graph = chain("conv-post-ops", 0, "aten.gelu.default");
  const Json report = report_of(graph.text(), graph.build());
  CHECK(kernels_of(report) == 2);  // GELU is a pass of its own
  REQUIRE(report.at("splits").size() == 1);
  const Json& split = report.at("splits")[0];
  CHECK(split.at("pattern") == "conv-post-ops");
  CHECK(split.at("node") == "y");
  CHECK(split.at("reason") == "no kernel computes node 'y' with the rest of the group");

  const GraphBuilder unknown = chain("reduction", 0, "aten.gelu.default");
  const Json other = report_of(unknown.text(), unknown.build());
  REQUIRE(other.at("splits").size() == 1);
  CHECK(other.at("splits")[0].at("pattern") == "reduction");
}

TEST_CASE("onednn joins no nodes of different groups", "[onednn][fusion]") {
  const GraphBuilder graph = chain("conv-post-ops", 1, "aten.tanh.default");
  const Json report = report_of(graph.text(), graph.build());
  CHECK(kernels_of(report) == 3);
}

TEST_CASE("a document without groups gets those of the device's patterns", "[onednn][fusion]") {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1,16,8,8]; weight w [16,16,3,3]
    c = conv2d(x, p_w) {"padding": [1, 1]}
    y = relu(c); output y)");
  const Graph graph = builder.build();
  const std::vector<NodeId> all{{0}, {1}};
  const auto patterns_in = [&](const std::optional<std::vector<std::string>>& patterns) {
    const SubIr made = make_sub_ir(graph, all, find_boundary(graph, all), patterns);
    const Json document = Json::parse(made.text);
    std::vector<std::string> found;
    for (const Json& node : document.at("nodes")) {
      found.push_back(node.value("fusion_pattern", "no group"));
    }
    return std::pair{found, made.predicted_kernels};
  };
  using Patterns = std::vector<std::string>;
  const auto [own, own_kernels] = patterns_in(Patterns{"conv-post-ops"});
  CHECK(own == Patterns{"conv-post-ops", "conv-post-ops"});
  CHECK(own_kernels == 1);
  const auto [none, no_kernels] = patterns_in(Patterns{});
  CHECK(none == Patterns{"single", "single"});
  CHECK(no_kernels == 2);
  const auto [general, general_kernels] = patterns_in(std::nullopt);
  CHECK(general == Patterns{"no group", "no group"});  // a backend that asks for none
  CHECK(general_kernels == 2);
}

}  // namespace npu
