// SPDX-License-Identifier: Apache-2.0
// What the opencl backend makes of the models of testdata, without a device: a kernel for each
// fusion group, for both kinds of tiles.
#include "lowering.hpp"

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"

namespace npu::opencl {
namespace {

Graph fused_model(const std::string& name) {
  const std::string file = std::string(NPU_TEST_DATA_DIR) + "/models/" + name + ".json";
  Graph graph = read_valid_graph(read_file(file), file);
  Diagnostics diagnostics;
  tag_ops(graph, load_target("opencl"), {}, diagnostics);
  fuse_ops(graph, {}, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return graph;
}

LoweredGraph lowered(const Graph& graph, bool is_cpu) {
  Machine machine;
  machine.has_float64 = true;
  machine.is_cpu = is_cpu;
  return lower_graph(graph, machine, [](std::size_t, std::size_t) {});
}

/// A model of one node, in the form of npu-ir(5).
Graph one_node(const std::string& op, const Shape& operand, const Shape& result,
               const Json& attrs) {
  const Json x = {{"name", "x"}, {"shape", operand}, {"dtype", "float32"}};
  const Json y = {{"name", "y"}, {"shape", result}, {"dtype", "float32"}};
  Json of_y = y;
  of_y["producer_node"] = "y";
  const Json node = {{"name", "y"},
                     {"op_type", op},
                     {"inputs", Json::array({x})},
                     {"outputs", Json::array({y})},
                     {"attrs", attrs}};
  const Json document = {{"model_name", "one"},
                         {"graph_inputs", Json::array({x})},
                         {"graph_outputs", Json::array({of_y})},
                         {"weights", Json::array()},
                         {"nodes", Json::array({node})}};
  return read_valid_graph(document.dump(), "one");
}

}  // namespace

TEST_CASE("as many kernels as fusion groups") {
  for (const char* name : {"small/bert_tiny",
                           "small/conv_kinds",
                           "small/depthwise",
                           "small/encoder",
                           "small/gpt_small",
                           "small/in_place_view",
                           "small/inception",
                           "small/index_none",
                           "small/mlp",
                           "small/plain_norms",
                           "small/residual",
                           "small/self_attention",
                           "small/several_outputs",
                           "small/shapes",
                           "small/squeeze_excite",
                           "small/tied_weights",
                           "bert_base",
                           "inception_v3",
                           "mobilenet_v2",
                           "resnet18",
                           "resnet50",
                           "vit_b_16"}) {
    const Graph graph = fused_model(name);
    for (const Node& node : graph.nodes()) REQUIRE(node.device == "gpu");
    const FusionReport fusion = fusion_report(graph);
    for (const bool is_cpu : {true, false}) {
      const LoweredGraph plan = lowered(graph, is_cpu);
      INFO(name << (is_cpu ? " with tiles of a CPU: " : " with tiles of a GPU: ") << plan.report);
      const Json report = parse_json(plan.report, "report");
      // A view that is an output, beside what it is a view of, is copied.
      const auto copies = find_member(report, "reorders")->get<std::int64_t>();
      CHECK(static_cast<std::int64_t>(plan.plan.launches.size()) - copies == fusion.kernels);
      CHECK(copies <= static_cast<std::int64_t>(graph.graph_outputs().size()) - 1);
      CHECK(find_member(report, "splits")->empty());
    }
  }
}

TEST_CASE("kernels with one text are one, and the same model gives the same source") {
  const Graph graph = fused_model("resnet18");
  const LoweredGraph first = lowered(graph, true);
  CHECK(first.plan.kernels < first.plan.launches.size());
  CHECK(first.source == lowered(graph, true).source);
}

TEST_CASE("what does not fit is refused by the node's name") {
  const auto refusal = [](const Graph& graph) -> std::string {
    try {
      lowered(graph, true);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kUnsupported ? error.message() : "another error";
    }
    return "none";
  };
  CHECK(refusal(one_node("aten.relu.default", {3, 5}, {3, 4}, Json::object())) ==
        "node 'y' (aten.relu.default): expected a result of shape [3, 5], found [3, 4]");
  CHECK(refusal(one_node("aten.t.default", {3, 5}, {3, 5}, Json::object())) ==
        "node 'y' (aten.t.default): expected a result of shape [5, 3], found [3, 5]");
  CHECK(refusal(one_node("aten.relu.default", {3, 5}, {3, 5}, Json::object())) == "none");
}

TEST_CASE("tensors that live at once do not share memory") {
  std::uint32_t state = 1;
  const auto draw = [&state](std::uint32_t below) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8U) % below;
  };
  std::vector<ScratchTensor> tensors;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t first = draw(40);
    tensors.push_back({1 + draw(5000), first, first + draw(6), 0});
  }
  const std::uint64_t bytes = plan_scratch(tensors);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ScratchTensor& a = tensors[i];
    sum += a.bytes;
    CHECK(a.offset % 256 == 0);
    CHECK(a.offset + a.bytes <= bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const ScratchTensor& b = tensors[j];
      const bool at_once = a.first <= b.last && b.first <= a.last;
      const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      CHECK_FALSE((at_once && overlap));
    }
  }
  CHECK(bytes < sum);
}

}  // namespace npu::opencl
