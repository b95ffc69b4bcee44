// SPDX-License-Identifier: Apache-2.0
// Target descriptions: an input is refused with messages, or can be printed, read again and used to
// tag a graph without a fault.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/target/target.hpp"
#include "target/list_ops.hpp"

using npu::fuzz::require;

namespace {

// Several ranks, a weight, an attribute, an optional and a list argument.
constexpr std::string_view kGraph = R"({
"graph_inputs": [{"name": "x", "shape": [1, 4, 6, 6], "dtype": "float32"}],
"graph_outputs": [{"name": "soft", "shape": [1, 8, 6, 6], "dtype": "float32"}],
"weights": [{"name": "w", "shape": [4, 4, 3, 3], "dtype": "float32"}],
"nodes": [
{"name": "conv", "op_type": "aten.conv2d.default", "inputs": [{"name": "x"}, {"name": "w"}],
 "outputs": [{"name": "conv", "shape": [1, 4, 6, 6], "dtype": "float32"}], "attrs": {"padding": [1, 1]}},
{"name": "relu", "op_type": "aten.relu.default", "inputs": [{"name": "conv"}],
 "outputs": [{"name": "relu", "shape": [1, 4, 6, 6], "dtype": "float32"}]},
{"name": "cat", "op_type": "aten.cat.default", "inputs": [{"name": "relu"}, {"name": "conv"}],
 "outputs": [{"name": "cat", "shape": [1, 8, 6, 6], "dtype": "float32"}],
 "attrs": {"dim": 1, "_tensor_list_sizes": [2]}},
{"name": "soft", "op_type": "aten.softmax.int", "inputs": [{"name": "cat"}],
 "outputs": [{"name": "soft", "shape": [1, 8, 6, 6], "dtype": "float32"}], "attrs": {"dim": -1}}
]})";

void use(const npu::Target& target) {
  const std::string text = npu::format_target(target);
  npu::Diagnostics diagnostics;
  const npu::Target again =
      npu::parse_target(npu::parse_json(text, "printed.json"), "printed.json", "", diagnostics);
  require(!diagnostics.has_errors(), "a printed target is valid");
  require(npu::format_target(again) == text, "printing is idempotent");
  npu::format_target_ops(target, "");

  npu::Graph graph = npu::read_valid_graph(kGraph, "graph.json");
  npu::tag_ops(graph, target, {}, diagnostics);
  if (diagnostics.has_errors()) return;  // no device runs one of the nodes
  npu::format_tag_report(npu::tag_report(graph, target));
  npu::partition_graph(graph, {}, diagnostics);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu::Json json;
  try {
    json = npu::parse_json(text, "fuzz.json");
  } catch (const npu::Error&) {
    return 0;
  }
  npu::Diagnostics diagnostics;
  const npu::Target target = npu::parse_target(json, "fuzz.json", "", diagnostics);
  for (const npu::Diagnostic& diagnostic : diagnostics.entries()) {
    require(!diagnostic.text.empty() && diagnostic.location.file == "fuzz.json",
            "messages say what and where");
  }
  if (!diagnostics.has_errors()) use(target);
  return 0;
}
