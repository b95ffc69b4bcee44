// SPDX-License-Identifier: Apache-2.0
// Tables of measured nodes: an input is refused with a message, or can be written, read again and
// used to place a graph, with finite times and a proof that holds.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cost/measured_cost.hpp"
#include "fuzz_check.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "partition/placement/certificate.hpp"

using npu::fuzz::require;

namespace {

constexpr std::string_view kGraph = R"({
"graph_inputs": [{"name": "x", "shape": [4], "dtype": "float32"}],
"graph_outputs": [{"name": "c", "shape": [4], "dtype": "float32"}],
"nodes": [
{"name": "a", "op_type": "aten.relu.default", "inputs": [{"name": "x"}],
 "outputs": [{"name": "a", "shape": [4], "dtype": "float32"}]},
{"name": "b", "op_type": "aten.neg.default", "inputs": [{"name": "a"}],
 "outputs": [{"name": "b", "shape": [4], "dtype": "float32"}]},
{"name": "c", "op_type": "aten.add.Tensor", "inputs": [{"name": "a"}, {"name": "b"}],
 "outputs": [{"name": "c", "shape": [4], "dtype": "float32"}]}
]})";

void use(npu::NodeTable table) {
  npu::Graph graph = npu::read_valid_graph(kGraph, "graph.json");
  npu::Diagnostics diagnostics;
  const npu::Target target = npu::load_target("host");
  npu::tag_ops(graph, target, {}, diagnostics);
  table.model_digest = npu::model_digest(graph);
  try {
    const npu::MeasuredCost cost(std::move(table), graph, target);
    npu::PartitionOptions options;
    options.strategy = npu::Strategy::kMinCut;
    options.cost = &cost;
    const npu::PartitionResult result = npu::partition_graph(graph, options);
    require(std::isfinite(result.metrics.predicted_us), "the time is finite");
    const npu::Graph again = npu::read_valid_graph(npu::write_graph(graph), "again.json");
    npu::check_certificate(again, cost, diagnostics);
    require(!diagnostics.has_errors(), "the plan is proved");
  } catch (const npu::Error& error) {
    require(!error.message().empty(), "messages say what");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu::NodeTable table;
  try {
    table = npu::NodeTable::parse(npu::parse_json(text, "fuzz.json"), "fuzz.json");
  } catch (const npu::Error& error) {
    require(!error.message().empty() && error.location().file == "fuzz.json",
            "messages say what and where");
    return 0;
  }
  const npu::Json json = table.to_json();
  require(npu::NodeTable::parse(json, "again.json").to_json() == json,
          "what is written is read again");
  use(std::move(table));
  return 0;
}
