// SPDX-License-Identifier: Apache-2.0
// Rules that concern the graph as a whole. O(nodes + edges).
#include "ir/verify_graph.hpp"

#include <algorithm>
#include <string>

#include "ir/states_section.hpp"
#include "ir/topological_order.hpp"
#include "npu/support/log.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

void check_order(const Graph& graph, Diagnostics& diagnostics) {
  bool ordered = true;
  for (std::size_t n = 0; n < graph.nodes().size() && ordered; ++n) {
    for (const TensorId input : graph.nodes()[n].inputs) {
      const TensorInfo& tensor = graph.tensor(input);
      if (tensor.producer.valid() && tensor.producer.value >= static_cast<std::int32_t>(n)) {
        ordered = false;
      }
    }
  }
  if (ordered) return;
  const std::vector<NodeId> cycle = find_cycle(graph);
  if (!cycle.empty()) {
    std::string text = "the graph has a cycle: ";
    for (const NodeId id : cycle) text += "'" + graph.node(id).name + "' -> ";
    text += "'" + graph.node(cycle.front()).name + "'";
    diagnostics.error(graph.location(cycle.front()), text);
    return;
  }
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorInfo& tensor = graph.tensor(node.inputs[i]);
      if (!tensor.producer.valid() || tensor.producer.value < static_cast<std::int32_t>(n))
        continue;
      diagnostics.error(
          graph.location(NodeId{static_cast<std::int32_t>(n)}, "/inputs/" + std::to_string(i)),
          "node '" + node.name + "' reads tensor '" + tensor.name + "' before node '" +
              graph.node(tensor.producer).name +
              "' produces it; nodes must stand in topological order");
    }
  }
}

// getitem lists all results of its producer and selects one by attrs.index (npu-ir(5)).
void check_getitem(const Graph& graph, NodeId id, Diagnostics& diagnostics) {
  const Node& node = graph.node(id);
  const Json* index = find_member(node.attrs(), "index");
  if (index == nullptr || !index->is_number_integer()) {
    diagnostics.error(graph.location(id, "/attrs"),
                      "node '" + node.name + "' needs the integer attribute 'index'");
    return;
  }
  const auto count = static_cast<std::int64_t>(node.inputs.size());
  const bool is_huge = index->is_number_unsigned() &&
                       index->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  const auto value = is_huge ? count : index->get<std::int64_t>();
  if (value < -count || value >= count) {
    diagnostics.error(
        graph.location(id, "/attrs/index"),
        "node '" + node.name + "' selects item " + index->dump() + " of " + std::to_string(count));
  }
}

// Changes the layout of a tensor, so it has one operand and one result, which are alike
// (npu-ir(5)).
void check_channel_norm(const Graph& graph, NodeId id, Diagnostics& diagnostics) {
  const Node& node = graph.node(id);
  if (node.inputs.size() != 1 || node.outputs.size() != 1) {
    diagnostics.error(graph.location(id),
                      "node '" + node.name + "' has " + std::to_string(node.inputs.size()) +
                          " operands and " + std::to_string(node.outputs.size()) +
                          " results, expected one of each");
    return;
  }
  const TensorInfo& operand = graph.tensor(node.inputs.front());
  const TensorInfo& result = graph.tensor(node.outputs.front());
  if (operand.shape == result.shape && operand.dtype == result.dtype) return;
  const auto text = [](const TensorInfo& tensor) {
    return std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape);
  };
  diagnostics.error(graph.location(id, "/outputs/0"),
                    "node '" + node.name + "' makes " + text(result) + " of " + text(operand) +
                        ", expected the same: a channel_norm changes the layout alone");
}

// npu.tail: a tensor and an int64 scalar; the result is of the tensor's shape and dtype, dim one of
// its dimensions and fill a value that its dtype has.
void check_tail(const Graph& graph, NodeId id, Diagnostics& diagnostics) {
  const Node& node = graph.node(id);
  const auto refuse = [&](std::string_view below, const std::string& text) {
    diagnostics.error(graph.location(id, below), "node '" + node.name + "' " + text);
  };
  if (node.inputs.size() != 2 || node.outputs.size() != 1) {
    return refuse("/inputs", "has " + std::to_string(node.inputs.size()) + " operands and " +
                                 std::to_string(node.outputs.size()) +
                                 " results, expected a tensor, the number of its valid rows, and "
                                 "one result");
  }
  const TensorInfo& tensor = graph.tensor(node.inputs[0]);
  const TensorInfo& valid = graph.tensor(node.inputs[1]);
  const TensorInfo& result = graph.tensor(node.outputs[0]);
  if (result.shape != tensor.shape || result.dtype != tensor.dtype) {
    return refuse("/outputs/0", "does not have the shape and dtype of its operand");
  }
  if (valid.dtype != DType::kInt64 || !valid.shape.empty()) {
    return refuse("/inputs/1", "takes the number of valid rows as an int64 without dimensions");
  }
  const auto rank = static_cast<std::int64_t>(tensor.shape.size());
  const auto dim = member_integer(node.attrs(), "dim");
  if (!dim || *dim < -rank || *dim >= rank) {
    return refuse("/attrs/dim", "has no dim between " + std::to_string(-rank) + " and " +
                                    std::to_string(rank - 1));
  }
  const std::string* fill = member_text(node.attrs(), "fill");
  const bool is_known =
      fill != nullptr && (*fill == "zero" || *fill == "edge" || *fill == "lowest");
  if (!is_known && find_member(node.attrs(), "fill") != nullptr) {
    return refuse("/attrs/fill", "has another fill than zero, lowest and edge");
  }
  if (fill != nullptr && *fill == "lowest" && !is_floating_point(tensor.dtype)) {
    return refuse("/attrs/fill", "fills with minus infinity what is no floating point number");
  }
}

// npu.length_mask: positions and the number of valid keys, or one of them, as `operands` says; the
// result is bool [1, 1, positions, keys].
void check_length_mask(const Graph& graph, NodeId id, Diagnostics& diagnostics) {
  const Node& node = graph.node(id);
  const auto refuse = [&](std::string_view below, const std::string& text) {
    diagnostics.error(graph.location(id, below), "node '" + node.name + "' " + text);
  };
  const std::string* operands = member_text(node.attrs(), "operands");
  const bool has_both = operands != nullptr && *operands == "both";
  const bool has_positions = has_both || (operands != nullptr && *operands == "positions");
  const bool has_valid = has_both || (operands != nullptr && *operands == "valid");
  if (!has_positions && !has_valid) {
    return refuse("/attrs/operands", "needs 'operands' of positions, valid or both");
  }
  const std::size_t expected = has_both ? 2 : 1;
  if (node.inputs.size() != expected || node.outputs.size() != 1) {
    return refuse("/inputs", "has " + std::to_string(node.inputs.size()) + " operands and " +
                                 std::to_string(node.outputs.size()) + " results, expected " +
                                 std::to_string(expected) + " and one, as its operands are '" +
                                 *operands + "'");
  }
  const auto keys = member_integer(node.attrs(), "keys");
  if (!keys || *keys < 1) return refuse("/attrs/keys", "has no number of keys above 0");
  const Json* window = find_member(node.attrs(), "window");
  const auto width = member_integer(node.attrs(), "window");
  if (window != nullptr && (!width || (*width < 1 && *width != -1))) {
    return refuse("/attrs/window", "has the window " + window->dump() +
                                       ", expected a number of keys above 0, or -1 for none");
  }
  const Json* causal = find_member(node.attrs(), "causal");
  if (causal != nullptr && !causal->is_boolean()) {
    return refuse("/attrs/causal", "has a 'causal' that is neither true nor false");
  }
  const bool reads_positions = (causal != nullptr && causal->get<bool>()) || width.value_or(-1) > 0;
  if (reads_positions != has_positions) {
    return refuse("/attrs", has_positions
                                ? "takes positions, but is neither causal nor has a window"
                                : "needs positions to be causal or to have a window");
  }
  std::int64_t rows = 1;
  if (has_positions) {
    const TensorInfo& positions = graph.tensor(node.inputs[0]);
    if (positions.dtype != DType::kInt64 || positions.shape.size() != 1) {
      return refuse("/inputs/0", "takes positions as an int64 vector");
    }
    rows = positions.shape[0];
  }
  if (has_valid) {
    const TensorInfo& valid = graph.tensor(node.inputs.back());
    if (valid.dtype != DType::kInt64 || !valid.shape.empty()) {
      return refuse("/inputs/" + std::to_string(expected - 1),
                    "takes the number of valid keys as an int64 without dimensions");
    }
  }
  const TensorInfo& result = graph.tensor(node.outputs[0]);
  const Shape shape{1, 1, rows, *keys};
  if (result.dtype == DType::kBool && result.shape == shape) return;
  refuse("/outputs/0", "makes " + std::string(dtype_name(result.dtype)) + " " +
                           shape_text(result.shape) + ", expected bool " + shape_text(shape));
}

}  // namespace

void verify_graph(const Graph& graph, Diagnostics& diagnostics) {
  const LogTimer timer(LogModule::kVerify);
  check_order(graph, diagnostics);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const std::string_view op_type = graph.node(id).op_type;
    if (op_type == "<built-in function getitem>") check_getitem(graph, id, diagnostics);
    if (op_type == "npu.channel_norm") check_channel_norm(graph, id, diagnostics);
    if (op_type == "npu.tail") check_tail(graph, id, diagnostics);
    if (op_type == "npu.length_mask") check_length_mask(graph, id, diagnostics);
  }
  if (!diagnostics.has_errors()) read_states(graph, diagnostics);
  if (graph.file.empty()) return;  // a part that was cut out: no document is told of
  timer.done([&] {
    return graph.file + ": order and results of " + std::to_string(graph.nodes().size()) +
           " nodes" + (diagnostics.has_errors() ? ": refused" : "");
  });
}

}  // namespace npu
