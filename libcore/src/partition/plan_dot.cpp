// SPDX-License-Identifier: Apache-2.0
// Draws a plan for Graphviz: a cluster per partition, coloured by device; edges between partitions
// labelled in bytes, red where the tensor is copied to another device. Weights are left out.
// O(nodes + edges).
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "npu/partition/partition_plan.hpp"
#include "npu/support/text.hpp"

namespace npu {
namespace {

constexpr std::array<std::string_view, 6> kColours{"#cfe8ff", "#ffe3c2", "#d9f2d0",
                                                   "#f3d1e8", "#e6e0f8", "#f8f3c0"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

std::string short_op(std::string_view op_type) {
  if (op_type.starts_with("aten.")) op_type.remove_prefix(5);
  if (op_type.ends_with(".default")) op_type.remove_suffix(8);
  return std::string(op_type);
}

std::string node_line(const Graph& graph, NodeId id, std::string_view indent) {
  const Node& node = graph.node(id);
  return std::string(indent) + "n" + std::to_string(id.value) + " [label=\"" + escaped(node.name) +
         "\\n" + escaped(short_op(node.op_type)) + "\"];\n";
}

}  // namespace

std::string plan_to_dot(const Graph& graph, const PartitionPlan& plan) {
  std::vector<std::int32_t> partition_of(graph.nodes().size(), -1);
  std::vector<std::string> devices;
  std::string text = "digraph \"" + escaped(graph.model_name()) +
                     "\" {\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
                     "fontname=\"Helvetica\", fontsize=10];\n  edge [fontname=\"Helvetica\", "
                     "fontsize=9];\n";
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    const Partition& partition = plan.partitions[p];
    std::size_t device = 0;
    while (device < devices.size() && devices[device] != partition.device) ++device;
    if (device == devices.size()) devices.push_back(partition.device);
    text += "  subgraph cluster_" + std::to_string(p) + " {\n    label=\"" + std::to_string(p) +
            ": " + escaped(partition.device) + "\"; style=filled; color=\"" +
            std::string(kColours[device % kColours.size()]) + "\";\n";
    for (const NodeId id : partition.nodes) {
      partition_of[static_cast<std::size_t>(id.value)] = static_cast<std::int32_t>(p);
      text += node_line(graph, id, "    ");
    }
    text += "  }\n";
  }
  for (std::size_t i = 0; i < graph.graph_inputs().size(); ++i) {
    const TensorInfo& tensor = graph.tensor(graph.graph_inputs()[i]);
    text +=
        "  in" + std::to_string(i) + " [label=\"" + escaped(tensor.name) + "\", shape=ellipse];\n";
    for (const NodeId consumer : tensor.consumers) {
      text += "  in" + std::to_string(i) + " -> n" + std::to_string(consumer.value) + ";\n";
    }
  }
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind != TensorKind::kResult) continue;
    const std::int32_t from = partition_of[static_cast<std::size_t>(tensor.producer.value)];
    for (const NodeId consumer : tensor.consumers) {
      text +=
          "  n" + std::to_string(tensor.producer.value) + " -> n" + std::to_string(consumer.value);
      const std::int32_t to = partition_of[static_cast<std::size_t>(consumer.value)];
      if (from >= 0 && to >= 0 && from != to) {
        const bool copied = plan.partitions[static_cast<std::size_t>(from)].device !=
                            plan.partitions[static_cast<std::size_t>(to)].device;
        text += std::string(copied ? " [color=red, " : " [") + "label=\"" +
                bytes_text(static_cast<double>(tensor.bytes())) + "\"]";
      }
      text += ";\n";
    }
  }
  for (std::size_t i = 0; i < graph.graph_outputs().size(); ++i) {
    const TensorInfo& tensor = graph.tensor(graph.graph_outputs()[i]);
    text +=
        "  out" + std::to_string(i) + " [label=\"" + escaped(tensor.name) + "\", shape=ellipse];\n";
    if (tensor.producer.valid()) {
      text += "  n" + std::to_string(tensor.producer.value) + " -> out" + std::to_string(i) + ";\n";
    }
  }
  return text + "}\n";
}

}  // namespace npu
