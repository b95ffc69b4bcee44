// SPDX-License-Identifier: Apache-2.0
// Draws an aligned graph for Graphviz: a cluster per partition, nodes coloured by layout,
// conversions as diamonds. O(nodes + edges).
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op_name.hpp"
#include "passes/align/align_problem.hpp"
#include "support/dot.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::string_view kAlignedColour = "#ffd84d";
constexpr std::string_view kUnalignedColour = "#c9c9c9";
constexpr std::string_view kBothColour = "#9fd88b";

std::string node_line(const Graph& graph, NodeId id,
                      const std::map<std::string_view, const AlignNode*>& modes) {
  const Node& node = graph.node(id);
  std::string line =
      "    n" + std::to_string(id.value) + " [label=\"" + dot::escaped(node.name) + "\\n";
  if (node.op_type == kChannelNorm) {
    return line + (align::converts_to_nalign(node) ? "to NALIGN" : "to ALIGN") +
           "\", shape=diamond, style=filled, fillcolor=\"#ff8a80\"];\n";
  }
  line += dot::escaped(short_name(node.op_type));
  const auto found = modes.find(node.name);
  if (found == modes.end()) return line + "\"];\n";
  const AlignNode& mode = *found->second;
  const auto colour = [](AlignMode of) {
    return of == AlignMode::kAlign ? kAlignedColour : kUnalignedColour;
  };
  if (mode.allowed != AlignMode::kBoth) {
    return line + "\\n" + std::string(mode.rule) + "\", fillcolor=\"" +
           std::string(colour(mode.mode)) + "\"];\n";
  }
  return line + "\\n" + std::string(align_mode_name(mode.mode)) + "\", fillcolor=\"" +
         std::string(kBothColour) + "\", color=\"" + std::string(colour(mode.mode)) +
         "\", penwidth=3];\n";
}

}  // namespace

std::string alignment_to_dot(const Graph& graph, const AlignResult& result) {
  std::map<std::string_view, const AlignNode*> modes;
  for (const AlignNode& node : result.nodes) modes.emplace(node.name, &node);
  std::map<std::int64_t, std::vector<NodeId>> clusters;  // by partition; -1: none
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    clusters[graph.node(id).partition.value_or(-1)].push_back(id);
  }
  std::string text = dot::begin_graph(graph.model_name());
  for (const auto& [partition, nodes] : clusters) {
    if (partition >= 0) {
      text += "  subgraph cluster_" + std::to_string(partition) + " {\n    label=\"" +
              std::to_string(partition) + ": " +
              dot::escaped(graph.node(nodes.front()).device.value_or("")) + "\";\n";
    }
    for (const NodeId id : nodes) text += node_line(graph, id, modes);
    if (partition >= 0) text += "  }\n";
  }
  const std::string plain =
      ", shape=ellipse, fillcolor=\"" + std::string(kUnalignedColour) + "\"];\n";
  for (std::size_t i = 0; i < graph.graph_inputs().size(); ++i) {
    const TensorInfo& tensor = graph.tensor(graph.graph_inputs()[i]);
    text += "  in" + std::to_string(i) + " [label=\"" + dot::escaped(tensor.name) + "\"" + plain;
    for (const NodeId consumer : tensor.consumers) {
      text += "  in" + std::to_string(i) + " -> n" + std::to_string(consumer.value) + ";\n";
    }
  }
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind != TensorKind::kResult) continue;
    for (const NodeId consumer : tensor.consumers) {
      text +=
          "  n" + std::to_string(tensor.producer.value) + " -> n" + std::to_string(consumer.value);
      const bool converted = graph.node(tensor.producer).op_type == kChannelNorm;
      if (converted) text += " [label=\"" + bytes_text(static_cast<double>(tensor.bytes())) + "\"]";
      text += ";\n";
    }
  }
  for (std::size_t i = 0; i < graph.graph_outputs().size(); ++i) {
    const TensorInfo& tensor = graph.tensor(graph.graph_outputs()[i]);
    text += "  out" + std::to_string(i) + " [label=\"" + dot::escaped(tensor.name) + "\"" + plain;
    if (tensor.producer.valid()) {
      text += "  n" + std::to_string(tensor.producer.value) + " -> out" + std::to_string(i) + ";\n";
    }
  }
  return text + "}\n";
}

}  // namespace npu
