// SPDX-License-Identifier: Apache-2.0
// Who reads the states with which a recurrence ends. A getitem lists all results, and reads one.
#include "passes/padding/state_readers.hpp"

#include <algorithm>
#include <optional>

#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/schema.hpp"

namespace npu::padding {
namespace {

constexpr const char* kOtherState =
    "its last state is that behind the padding; read the last row of its outputs instead";

bool is_output(const Graph& graph, TensorId id) {
  const auto& outputs = graph.graph_outputs();
  return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
}

bool is_read(const Graph& graph, TensorId id) {
  return !graph.tensor(id).consumers.empty() || is_output(graph, id);
}

std::optional<std::int64_t> integer(const Node& node, const char* key) {
  const Json* value = find_member(node.attrs(), key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

// Whether a node takes the last layer of [layers, B, H].
bool selects_layer(const Node& node, std::int64_t layers) {
  if (node.op_type != "aten.select.int") return false;
  const std::int64_t index = integer(node, "index").value_or(layers);
  const std::int64_t dim = integer(node, "dim").value_or(-1);
  return (dim == 0 || dim == -3) && (index == -1 || index == layers - 1);
}

}  // namespace

StateReaders state_readers(const Graph& graph, const Node& node) {
  StateReaders readers;
  for (std::size_t r = 1; r < node.outputs.size(); ++r) {
    const TensorInfo& state = graph.tensor(node.outputs[r]);
    if (is_output(graph, node.outputs[r])) readers.refusal = kOtherState;
    for (const NodeId id : state.consumers) {
      const Node& reader = graph.node(id);
      if (reader.op_type != kGetitem) {
        readers.refusal = kOtherState;
        continue;
      }
      if (integer(reader, "index") != static_cast<std::int64_t>(r)) continue;
      const TensorId taken = reader.outputs.front();
      if (!is_read(graph, taken)) continue;
      const std::int64_t layers = state.shape.empty() ? 0 : state.shape.front();
      const auto& next = graph.tensor(taken).consumers;
      if (r == 1 && layers == 1) {
        readers.whole.push_back(id);
      } else if (r == 1 && !is_output(graph, taken) &&
                 std::all_of(next.begin(), next.end(), [&](NodeId each) {
                   return selects_layer(graph.node(each), layers);
                 })) {
        readers.last_layer.insert(readers.last_layer.end(), next.begin(), next.end());
      } else {
        readers.refusal = kOtherState;
      }
    }
  }
  return readers;
}

}  // namespace npu::padding
