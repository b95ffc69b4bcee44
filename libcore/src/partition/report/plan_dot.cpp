// SPDX-License-Identifier: Apache-2.0
// Draws a plan for Graphviz, from left to right, at one of three levels: a box for each node, for
// each fusion group (or block of the model, if nothing is fused), or for each partition.
//
// Boxes are grouped in a cluster per partition, or are the partitions, and are coloured by device.
// Between nodes, edges that leave a partition are labelled with their tensor's bytes and are red if
// it is copied to another device. Between larger boxes there is one edge for any number of tensors,
// red with the bytes that are copied because of it: a tensor is copied once to each device. Weights
// are left out. O((nodes + edges) log nodes).
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ops/op_name.hpp"
#include "partition/report/report.hpp"
#include "partition/strategies/blocks.hpp"
#include "support/dot.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::size_t kMaxReadableBoxes = 40;
constexpr std::size_t kMaxOpsOfLabel = 3;

constexpr std::array<std::string_view, 6> kColours{"#cfe8ff", "#ffe3c2", "#d9f2d0",
                                                   "#f3d1e8", "#e6e0f8", "#f8f3c0"};

/// The nodes of one box, all in one partition.
struct Box {
  std::vector<NodeId> nodes;
  std::int32_t partition = -1;
};

std::vector<std::int32_t> partition_of_nodes(const Graph& graph, const PartitionPlan& plan) {
  std::vector<std::int32_t> result(graph.nodes().size(), -1);
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    for (const NodeId id : plan.partitions[p].nodes) {
      result[index_of(id)] = static_cast<std::int32_t>(p);
    }
  }
  return result;
}

/// The fusion group of each node; if there are no groups, its block of the model.
std::vector<std::int64_t> groups_of_nodes(const Graph& graph) {
  std::vector<std::int64_t> groups(graph.nodes().size(), 0);
  const bool fused = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                 [](const Node& node) { return node.fusion_group.has_value(); });
  if (fused) {
    for (std::size_t n = 0; n < groups.size(); ++n) {
      // A node without a group becomes a separate one, after all groups.
      groups[n] = graph.nodes()[n].fusion_group.value_or(-1 - static_cast<std::int64_t>(n));
    }
    return groups;
  }
  const std::vector<std::vector<NodeId>> blocks = find_blocks(graph, 1);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (const NodeId id : blocks[b]) {
      groups[index_of(id)] = static_cast<std::int64_t>(b);
    }
  }
  return groups;
}

/// By partition, then by first node.
std::vector<Box> boxes_of(const Graph& graph, const PartitionPlan& plan, DotLevel level) {
  std::vector<Box> boxes;
  const std::vector<std::int64_t> groups =
      level == DotLevel::kGroup ? groups_of_nodes(graph) : std::vector<std::int64_t>();
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    const auto partition = static_cast<std::int32_t>(p);
    const std::vector<NodeId>& nodes = plan.partitions[p].nodes;
    if (level == DotLevel::kPartition) {
      boxes.push_back({nodes, partition});
      continue;
    }
    std::map<std::int64_t, std::size_t> box_of_group;
    for (const NodeId id : nodes) {
      std::size_t box = boxes.size();
      if (level == DotLevel::kGroup) {
        box = box_of_group.emplace(groups[index_of(id)], box).first->second;
      }
      if (box == boxes.size()) boxes.push_back({{}, partition});
      boxes[box].nodes.push_back(id);
    }
  }
  return boxes;
}

class PlanDrawing {
 public:
  PlanDrawing(const Graph& graph, const PartitionPlan& plan, DotLevel level, const PlanTimes& times)
      : graph_(graph),
        plan_(plan),
        level_(level),
        times_(times),
        partition_of_(partition_of_nodes(graph, plan)),
        boxes_(boxes_of(graph, plan, level)),
        box_of_(graph.nodes().size(), -1) {
    for (std::size_t b = 0; b < boxes_.size(); ++b) {
      for (const NodeId id : boxes_[b].nodes) {
        box_of_[index_of(id)] = static_cast<std::int32_t>(b);
      }
    }
  }

  std::string text() {
    text_ = dot::begin_graph(graph_.model_name()) + "  rankdir=LR;\n";
    if (level_ == DotLevel::kPartition) {
      draw_partitions();
    } else {
      draw_clusters();
    }
    draw_inputs();
    if (level_ == DotLevel::kNode) {
      draw_tensors();
    } else {
      draw_edges();
    }
    draw_outputs();
    return text_ + "}\n";
  }

 private:
  std::string name_of(NodeId id) const {
    if (level_ == DotLevel::kNode) return "n" + std::to_string(id.value);
    return "b" + std::to_string(box_of_[index_of(id)]);
  }
  const Partition& partition_of(NodeId id) const {
    return plan_
        .partitions[static_cast<std::size_t>(partition_of_[static_cast<std::size_t>(id.value)])];
  }
  bool is_drawn(NodeId id) const { return box_of_[index_of(id)] >= 0; }

  std::string_view colour_of(const std::string& device) {
    const auto found = std::find(devices_.begin(), devices_.end(), device);
    const auto index = static_cast<std::size_t>(found - devices_.begin());
    if (found == devices_.end()) devices_.push_back(device);
    return kColours[index % kColours.size()];
  }

  // A node's name and op; for several nodes the first name, a few ops, and their number.
  std::string label_of(const Box& box) const {
    std::vector<std::string> ops;
    std::unordered_set<std::string> known;
    for (const NodeId id : box.nodes) {
      std::string op(short_name(graph_.node(id).op_type));
      if (known.insert(op).second) ops.push_back(std::move(op));
    }
    std::string text = dot::escaped(graph_.node(box.nodes.front()).name) + "\\n";
    for (std::size_t i = 0; i < std::min(ops.size(), kMaxOpsOfLabel); ++i) {
      text += (i == 0 ? "" : ", ") + dot::escaped(ops[i]);
    }
    if (ops.size() > kMaxOpsOfLabel) text += ", ...";
    if (box.nodes.size() > 1) text += "\\n" + count_text(box.nodes.size());
    return text;
  }

  static std::string count_text(std::size_t nodes) {
    return std::to_string(nodes) + (nodes == 1 ? " op" : " ops");
  }

  void draw_clusters() {
    std::size_t box = 0;
    for (std::size_t p = 0; p < plan_.partitions.size(); ++p) {
      const Partition& partition = plan_.partitions[p];
      text_ += "  subgraph cluster_" + std::to_string(p) + " {\n    label=\"" + std::to_string(p) +
               ": " + dot::escaped(partition.device) + "\"; style=filled; color=\"" +
               std::string(colour_of(partition.device)) + "\";\n";
      for (; box < boxes_.size() && boxes_[box].partition == static_cast<std::int32_t>(p); ++box) {
        text_ += "    " + name_of(boxes_[box].nodes.front()) + " [label=\"" +
                 label_of(boxes_[box]) + "\"];\n";
      }
      text_ += "  }\n";
    }
  }

  void draw_partitions() {
    for (std::size_t p = 0; p < plan_.partitions.size(); ++p) {
      const Partition& partition = plan_.partitions[p];
      text_ += "  b" + std::to_string(p) + " [label=\"" + std::to_string(p) + ": " +
               dot::escaped(partition.device) + "\\n" + count_text(partition.nodes.size());
      if (p < times_.partition_us.size()) {
        text_ += "\\n" + fixed_text(times_.partition_us[p], 1) + " us";
      }
      text_ += "\", fillcolor=\"" + std::string(colour_of(partition.device)) + "\"];\n";
    }
  }

  void draw_inputs() {
    for (std::size_t i = 0; i < graph_.graph_inputs().size(); ++i) {
      const TensorInfo& tensor = graph_.tensor(graph_.graph_inputs()[i]);
      const std::string input = "  in" + std::to_string(i);
      text_ += input + " [label=\"" + dot::escaped(tensor.name) + "\", shape=ellipse];\n";
      std::unordered_set<std::string> drawn;
      for (const NodeId consumer : tensor.consumers) {
        std::string name = name_of(consumer);
        if (drawn.insert(name).second) text_ += input + " -> " + name + ";\n";
      }
    }
  }

  void draw_tensors() {
    for (const TensorInfo& tensor : graph_.tensors()) {
      if (tensor.kind != TensorKind::kResult) continue;
      for (const NodeId consumer : tensor.consumers) {
        text_ += "  " + name_of(tensor.producer) + " -> " + name_of(consumer);
        if (is_drawn(tensor.producer) && is_drawn(consumer) &&
            &partition_of(tensor.producer) != &partition_of(consumer)) {
          const bool copied = partition_of(tensor.producer).device != partition_of(consumer).device;
          text_ += std::string(copied ? " [color=red, " : " [") + "label=\"" +
                   bytes_text(static_cast<double>(tensor.bytes())) + "\"]";
        }
        text_ += ";\n";
      }
    }
  }

  void draw_edges() {
    std::map<std::pair<std::int32_t, std::int32_t>, double> copied_bytes;
    for (const TensorInfo& tensor : graph_.tensors()) {
      if (tensor.kind != TensorKind::kResult || !is_drawn(tensor.producer)) continue;
      const std::int32_t from = box_of_[index_of(tensor.producer)];
      std::vector<std::int32_t> readers;
      for (const NodeId consumer : tensor.consumers) {
        if (is_drawn(consumer)) readers.push_back(box_of_[index_of(consumer)]);
      }
      std::sort(readers.begin(), readers.end());  // boxes are in the order of the partitions
      std::vector<std::string_view> there{partition_of(tensor.producer).device};
      for (const std::int32_t to : readers) {
        if (to == from) continue;
        double& bytes = copied_bytes[{from, to}];
        const std::string& device =
            partition_of(boxes_[static_cast<std::size_t>(to)].nodes.front()).device;
        if (std::find(there.begin(), there.end(), device) != there.end()) continue;
        there.push_back(device);
        bytes += static_cast<double>(tensor.bytes());
      }
    }
    for (const auto& [ends, bytes] : copied_bytes) {
      text_ += "  b" + std::to_string(ends.first) + " -> b" + std::to_string(ends.second);
      if (bytes > 0) text_ += " [color=red, label=\"" + bytes_text(bytes) + "\"]";
      text_ += ";\n";
    }
  }

  void draw_outputs() {
    for (std::size_t i = 0; i < graph_.graph_outputs().size(); ++i) {
      const TensorInfo& tensor = graph_.tensor(graph_.graph_outputs()[i]);
      const std::string output = "out" + std::to_string(i);
      text_ += "  " + output + " [label=\"" + dot::escaped(tensor.name) + "\", shape=ellipse];\n";
      if (tensor.producer.valid()) {
        text_ += "  " + name_of(tensor.producer) + " -> " + output + ";\n";
      }
    }
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  DotLevel level_;
  const PlanTimes& times_;
  std::vector<std::int32_t> partition_of_;  // by node
  std::vector<Box> boxes_;
  std::vector<std::int32_t> box_of_;  // by node, -1 if no partition has it
  std::vector<std::string> devices_;  // in order of first use, for their colours
  std::string text_;
};

}  // namespace

DotLevel readable_dot_level(const Graph& graph, const PartitionPlan& plan) {
  if (graph.nodes().size() <= kMaxReadableBoxes) return DotLevel::kNode;
  const bool groups = boxes_of(graph, plan, DotLevel::kGroup).size() <= kMaxReadableBoxes;
  return groups ? DotLevel::kGroup : DotLevel::kPartition;
}

std::string plan_to_dot(const Graph& graph, const PartitionPlan& plan, DotLevel level,
                        const PlanTimes& times) {
  return PlanDrawing(graph, plan, level, times).text();
}

}  // namespace npu
