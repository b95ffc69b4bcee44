// SPDX-License-Identifier: Apache-2.0
// Groups are made for the devices that the tags name, which npu.fusion has. A strategy that moves
// one to another device counts it as one kernel there, where a backend without a kernel for its
// pattern makes several. O(nodes + groups).
#include "partition/report/moved_groups.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/fusion_section.hpp"
#include "npu/passes/fuse.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

struct MovedGroup {
  const Device* device = nullptr;  // where it is
  std::size_t nodes = 0;
};

/// The groups on another device than they were made for, if that has a list of patterns, by id.
std::map<std::int64_t, MovedGroup> moved_groups(const Graph& graph, const Target& target) {
  std::map<std::int64_t, MovedGroup> moved;
  const auto has_list = [](const Device& device) { return device.fusion.has_value(); };
  if (std::none_of(target.devices.begin(), target.devices.end(), has_list)) return moved;
  const auto made_for = texts_by_group(graph, "device");
  for (const Node& node : graph.nodes()) {
    if (!node.fusion_group || !node.device) continue;
    const auto made = made_for.find(*node.fusion_group);
    if (made == made_for.end() || made->second == *node.device) continue;
    const Device* device = target.find_device(*node.device);
    if (device == nullptr || !has_list(*device)) continue;
    MovedGroup& group = moved[*node.fusion_group];
    group.device = device;
    ++group.nodes;
  }
  return moved;
}

}  // namespace

std::string moved_groups_note(const Graph& graph, const Target& target) {
  const std::map<std::int64_t, MovedGroup> moved = moved_groups(graph, target);
  if (moved.empty()) return {};
  std::set<std::string_view> built_in;
  for (const FusionPattern& pattern : fusion_patterns()) built_in.insert(pattern.name);
  const auto pattern_of = texts_by_group(graph, "pattern");
  std::map<std::string, std::set<std::string_view>> missing;  // patterns by device
  std::size_t count = 0;
  for (const auto& [id, group] : moved) {
    const auto pattern = pattern_of.find(id);
    if (group.nodes < 2 || pattern == pattern_of.end() || !built_in.contains(pattern->second)) {
      continue;
    }
    const std::vector<std::string>& known = *group.device->fusion;
    if (std::find(known.begin(), known.end(), pattern->second) != known.end()) continue;
    missing[group.device->name].insert(pattern->second);
    ++count;
  }
  if (count == 0) return {};
  std::string text = std::to_string(count) +
                     (count == 1 ? " group is on another device than it was made for ("
                                 : " groups are on other devices than they were made for (");
  bool is_first = true;
  for (const auto& [device, patterns] : missing) {
    for (const std::string_view pattern : patterns) {
      text += (is_first ? "" : ", ") + std::string(pattern) + " on " + printable_text(device);
      is_first = false;
    }
  }
  return text +
         "), which may start several kernels for each: npu-fuse and npu-partition once more "
         "make its own";
}

}  // namespace npu
