// SPDX-License-Identifier: Apache-2.0
// Writes down which device runs each node, and drops what the passes behind made of an earlier
// choice. O(nodes x devices x rules of the op).
#include "passes/tag/tag_nodes.hpp"

#include <algorithm>

#include "ir/device_reason.hpp"
#include "ir/folded_nodes.hpp"
#include "npu/support/log.hpp"
#include "passes/tag/choose_devices.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// Tells how many nodes went to each device and, for -vv, which ops and why.
void log_tags(const Graph& graph, const Target& target, const LogTimer& timer) {
  timer.done([&] {
    std::string text = "tag for target '" + target.name + "':";
    for (const Device& device : target.devices) {
      const auto count =
          std::count_if(graph.nodes().begin(), graph.nodes().end(),
                        [&](const Node& node) { return node.device == device.name; });
      text += (&device == &target.devices.front() ? " " : ", ") + std::to_string(count) +
              " nodes on " + device.name;
    }
    if (!graph.folded().empty()) text += ", " + std::to_string(graph.folded().size()) + " folded";
    return text;
  });
  if (!log_wants(LogModule::kPass, LogLevel::kDebug)) return;
  for (const TagReportRow& row : tag_report(graph, target).rows) {
    log(LogModule::kPass, LogLevel::kDebug, [&] {
      return "tag: " + std::to_string(row.count) + " x " + printable_text(row.op_type) + " on " +
             row.device + ": " +
             (row.reason.empty() ? "the first device that runs it" : printable_text(row.reason));
    });
  }
}

}  // namespace

bool tag_nodes(Graph& graph, const Target& target, const TagOptions& options,
               const BackendAnswers* answers, Diagnostics& diagnostics) {
  const LogTimer timer(LogModule::kPass);
  const std::size_t errors = diagnostics.error_count();
  const std::vector<DeviceTag> tags =
      DeviceChooser(graph, target, options, diagnostics, answers).tags();
  if (diagnostics.error_count() != errors) return false;
  bool changed = false;
  const auto set = [&changed](auto& field, auto value) {
    if (field == value) return;
    field = std::move(value);
    changed = true;
  };
  for (std::size_t i = 0; i < tags.size(); ++i) {
    Node& node = graph.nodes()[i];
    const bool preferred = tags[i].device == &target.devices.front();
    set(node.device, std::optional(tags[i].device->name));
    // A node placed by hand says so wherever it is, so that later tools do not move it.
    const bool says_why = !preferred || tags[i].reason.is_by_hand();
    set(node.device_reason,
        says_why ? std::optional(tags[i].reason.text()) : std::optional<std::string>());
    set(node.partition, std::optional<std::int64_t>());
    set(node.fusion_group, std::optional<std::int64_t>());
    if (find_member(node.json, "align_mode") != nullptr) {
      node.json.erase("align_mode");
      changed = true;
    }
  }
  for (FoldedNode& folded : graph.folded()) {
    DeviceReason(DeviceReason::Kind::kConstant).store(folded.node);
  }
  for (const std::string_view stale : {"fusion", "partition", "layout"}) {
    if (graph.npu_member(stale) == nullptr) continue;
    graph.erase_npu_member(stale);
    changed = true;
  }
  const Json* known = graph.npu_member("target");
  const Json written = answers != nullptr ? answers->record(*target.json) : *target.json;
  if (known == nullptr || *known != written) {
    graph.set_npu_member("target", written);
    changed = true;
  }
  log_tags(graph, target, timer);
  return changed;
}

}  // namespace npu
