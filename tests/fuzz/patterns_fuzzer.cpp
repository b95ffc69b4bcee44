// SPDX-License-Identifier: Apache-2.0
// Pattern files of npu-fuse: an input is refused with messages, or fuses a graph into groups that
// npu-partition accepts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/passes/fuse.hpp"

using npu::fuzz::require;

namespace {

// A chain with views, a fork and a join.
npu::Graph make_graph() {
  npu::Json document = npu::Json::parse(R"({
    "graph_inputs": [{"name": "x", "shape": [1, 4, 6, 6], "dtype": "float32"}],
    "graph_outputs": [], "weights": [{"name": "w", "shape": [4, 4, 3, 3], "dtype": "float32"}],
    "nodes": []})");
  std::string last = "x";
  const auto add = [&](const std::string& op, const std::vector<std::string>& operands) {
    const std::string name = "n" + std::to_string(document["nodes"].size());
    npu::Json node{{"name", name}, {"op_type", op}, {"inputs", npu::Json::array()}};
    for (const std::string& operand : operands) node["inputs"].push_back({{"name", operand}});
    node["outputs"] = {{{"name", name}, {"shape", {1, 4, 6, 6}}, {"dtype", "float32"}}};
    node["attrs"] = {{"padding", {1, 1}}, {"dim", -1}};
    node["device"] = "cpu";
    document["nodes"].push_back(std::move(node));
    return name;
  };
  for (int i = 0; i < 20; ++i) {
    const std::string conv = add("aten.conv2d.default", {last, "w"});
    const std::string view = add("aten.view.default", {add("aten.relu.default", {conv})});
    const std::string soft = add("aten.softmax.int", {add("custom.op", {view})});
    last = i % 3 == 0 ? add("aten.add.Tensor", {soft, last}) : soft;
  }
  document["graph_outputs"].push_back(
      {{"name", last}, {"shape", {1, 4, 6, 6}}, {"dtype", "float32"}});
  return npu::read_valid_graph(document.dump(), "graph.json");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const npu::Graph original = make_graph();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu::Json json;
  try {
    json = npu::parse_json(text, "fuzz.json");
  } catch (const npu::Error&) {
    return 0;
  }
  npu::Diagnostics diagnostics;
  npu::FuseOptions options;
  options.user_patterns = npu::parse_fusion_patterns(json, "fuzz.json", diagnostics);
  for (const npu::Diagnostic& diagnostic : diagnostics.entries()) {
    require(!diagnostic.text.empty() && diagnostic.location.file == "fuzz.json",
            "messages say what and where");
  }
  if (diagnostics.has_errors()) return 0;
  npu::Graph graph = original;
  npu::fuse_ops(graph, options, diagnostics);
  require(npu::fusion_report(graph).nodes == static_cast<std::int64_t>(graph.nodes().size()),
          "every node is counted");
  npu::partition_convex(graph);  // throws if a group is not convex
  return 0;
}
