// SPDX-License-Identifier: Apache-2.0
// Checks what an aligned document says of itself: `align_mode` of every node, the direction of
// every channel_norm, and the rules of the target. Knows nothing of how modes were chosen.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <unordered_map>

#include "ops/op_catalogue.hpp"
#include "passes/align/align_problem.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

class AlignmentVerifier {
 public:
  AlignmentVerifier(const Graph& graph, Diagnostics& diagnostics)
      : graph_(graph), diagnostics_(diagnostics) {
    find_rules();
  }

  void run() {
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      check_node(id_at<NodeId>(n));
    }
    for (const TensorId output : graph_.graph_outputs()) check_leaving(output, "a graph output");
  }

 private:
  void find_rules() {
    if (graph_.npu_member("target") != nullptr) {
      return add_devices(graph_target(graph_));
    }
    const Json* layout = graph_.npu_member("layout");
    const std::string* name = layout == nullptr ? nullptr : member_text(*layout, "target");
    if (name != nullptr) {
      add_devices(load_target(*name));
      if (!rules_.empty()) otherwise_ = first_device_;
      return;
    }
    rules_.emplace("npu", AlignRules{});
    otherwise_ = "npu";
  }

  void add_devices(const Target& target) {
    for (const Device& device : target.devices) {
      if (!device.align.is_object()) continue;
      if (rules_.empty()) first_device_ = device.name;
      rules_.emplace(device.name, align_rules(device));
    }
  }

  // Null for a node on a device without aligned layout.
  const AlignRules* rules_of(const Node& node) const {
    const auto found = rules_.find(node.device.value_or(otherwise_));
    return found == rules_.end() ? nullptr : &found->second;
  }

  static AlignMode mode_of(const Node& node) {
    const Json* mode = find_member(node.json, "align_mode");
    if (mode == nullptr) return AlignMode::kUnknown;
    return *mode == "ALIGN"    ? AlignMode::kAlign
           : *mode == "NALIGN" ? AlignMode::kNalign
                               : AlignMode::kUnknown;
  }

  bool together(const Node& a, const Node& b) const {
    return a.device == b.device && a.partition == b.partition;
  }

  // What a node makes.
  static AlignMode layout_of_results(const Node& node) {
    if (node.op_type != kChannelNorm) return mode_of(node);
    return align::converts_to_nalign(node) ? AlignMode::kNalign : AlignMode::kAlign;
  }

  // What a node reads.
  static AlignMode layout_of_operands(const Node& node) {
    if (node.op_type != kChannelNorm) return mode_of(node);
    return align::converts_to_nalign(node) ? AlignMode::kAlign : AlignMode::kNalign;
  }

  AlignMode layout_at(TensorId id, const Node& reader) const {
    const TensorInfo& tensor = graph_.tensor(id);
    if (tensor.kind != TensorKind::kResult) return AlignMode::kNalign;
    const Node& producer = graph_.node(tensor.producer);
    if (!together(producer, reader) || rules_of(producer) == nullptr) return AlignMode::kNalign;
    return layout_of_results(producer);
  }

  void check_node(NodeId id) {
    const Node& node = graph_.node(id);
    const AlignRules* rules = rules_of(node);
    if (rules == nullptr) return;
    if (mode_of(node) == AlignMode::kUnknown) {
      diagnostics_.error(graph_.location(id, "/align_mode"),
                         fmt::format("node '{}' has no mode; run npu-align first", node.name));
      return;
    }
    check_group(id, node);
    const AlignMode wanted = layout_of_operands(node);
    const align::BroadcastOperands broadcast(graph_, node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorInfo& tensor = graph_.tensor(node.inputs[i]);
      if (tensor.kind == TensorKind::kWeight || !align::same_in_both(tensor, *rules).empty() ||
          broadcast.contains(i)) {
        continue;
      }
      const AlignMode found = layout_at(node.inputs[i], node);
      if (found == wanted) continue;
      diagnostics_.error(graph_.location(id, "/inputs/" + std::to_string(i)),
                         fmt::format("node '{}' reads '{}' as {}, but it is {}", node.name,
                                     tensor.name, align_mode_name(wanted), align_mode_name(found)));
    }
    for (const TensorId output : node.outputs) {
      for (const NodeId consumer : graph_.tensor(output).consumers) {
        if (together(node, graph_.node(consumer))) continue;
        check_leaving(output, "read by node '" + graph_.node(consumer).name + "' elsewhere");
        break;
      }
    }
  }

  void check_leaving(TensorId id, const std::string& why) {
    const TensorInfo& tensor = graph_.tensor(id);
    if (tensor.kind != TensorKind::kResult) return;
    const Node& producer = graph_.node(tensor.producer);
    const AlignRules* rules = rules_of(producer);
    if (rules == nullptr || !align::same_in_both(tensor, *rules).empty() ||
        layout_of_results(producer) != AlignMode::kAlign) {
      return;
    }
    diagnostics_.error(
        graph_.location(tensor.producer),
        fmt::format("tensor '{}' of node '{}' is ALIGN and {}", tensor.name, producer.name, why));
  }

  void check_group(NodeId id, const Node& node) {
    if (!node.fusion_group || node.op_type == kChannelNorm) return;
    const auto [where, added] =
        group_mode_.emplace(fmt::format("{} {} {}", *node.fusion_group, node.device.value_or(""),
                                        node.partition.value_or(-1)),
                            id);
    const Node& first = graph_.node(where->second);
    if (added || mode_of(first) == mode_of(node)) return;
    diagnostics_.error(
        graph_.location(id, "/align_mode"),
        fmt::format("node '{}' is {}, but '{}' of the same fusion group is {}", node.name,
                    align_mode_name(mode_of(node)), first.name, align_mode_name(mode_of(first))));
  }

  const Graph& graph_;
  Diagnostics& diagnostics_;
  std::unordered_map<std::string, AlignRules> rules_;
  std::unordered_map<std::string, NodeId> group_mode_;
  std::string first_device_;
  std::string otherwise_;  // the device of nodes without one
};

}  // namespace

void verify_alignment(const Graph& graph, Diagnostics& diagnostics) {
  AlignmentVerifier(graph, diagnostics).run();
}

}  // namespace npu
