// SPDX-License-Identifier: Apache-2.0
// The document reader and verifier: an input is refused with
// messages, or gives a consistent graph.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "ir/topological_order.hpp"
#include "npu/ir/json_reader.hpp"

using npu::fuzz::require;

namespace {

void check_graph(const npu::Graph& graph) {
  const auto nodes = static_cast<std::int32_t>(graph.nodes().size());
  const auto tensors = static_cast<std::int32_t>(graph.tensors().size());
  const auto is_tensor = [&](npu::TensorId id) { return id.value >= 0 && id.value < tensors; };
  require(npu::topological_order(graph).size() == graph.nodes().size(), "no cycle");
  for (std::int32_t n = 0; n < nodes; ++n) {
    const npu::Node& node = graph.node(npu::NodeId{n});
    require(graph.find_node(node.name) == npu::NodeId{n}, "a node is found by its name");
    for (const npu::TensorId id : node.inputs) {
      require(is_tensor(id), "operands exist");
      require(graph.tensor(id).producer.value < n, "producers stand first");
    }
    for (const npu::TensorId id : node.outputs) {
      require(is_tensor(id) && graph.tensor(id).producer == npu::NodeId{n},
              "results know their node");
    }
  }
  for (const npu::TensorInfo& tensor : graph.tensors()) {
    require(graph.find_tensor(tensor.name).valid(), "a tensor is found by its name");
    require(tensor.bytes() >= 0, "byte counts fit");
    require((tensor.kind == npu::TensorKind::kResult) == tensor.producer.valid(),
            "results alone have producers");
  }
  for (const npu::TensorId id : graph.graph_inputs()) require(is_tensor(id), "graph inputs exist");
  for (const npu::TensorId id : graph.graph_outputs())
    require(is_tensor(id), "graph outputs exist");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu::Diagnostics diagnostics;
  try {
    const npu::Graph graph = npu::read_graph(text, "fuzz.json", diagnostics);
    for (const npu::Diagnostic& diagnostic : diagnostics.entries()) {
      require(!diagnostic.text.empty() && diagnostic.location.file == "fuzz.json",
              "messages say what and where");
    }
    if (!diagnostics.has_errors()) check_graph(graph);
  } catch (const npu::Error& error) {
    require(!error.message().empty() && error.location().file == "fuzz.json",
            "errors say what and where");
  }
  return 0;
}
