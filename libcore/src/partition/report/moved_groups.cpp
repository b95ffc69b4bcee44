// SPDX-License-Identifier: Apache-2.0
// Groups are made for the devices that the tags name, which npu.fusion has. A strategy that moves
// one to another device counts it as one kernel there, where a backend without a kernel for its
// pattern makes several. O(nodes + groups).
#include "partition/report/moved_groups.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "npu/passes/fuse.hpp"
#include "npu/passes/fusion_groups.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/json.hpp"
#include "npu/support/text.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

/// The device that each group was made for, by its id.
std::map<std::int64_t, std::string> devices_of_groups(const Graph& graph) {
  std::map<std::int64_t, std::string> devices;
  const Json* fusion = graph.npu_member("fusion");
  const Json* groups = fusion == nullptr ? nullptr : find_member(*fusion, "groups");
  if (groups == nullptr || !groups->is_array()) return devices;
  for (const Json& group : *groups) {
    const auto id = member_integer(group, "id");
    const Json* device = find_member(group, "device");
    if (id && device != nullptr && device->is_string()) devices[*id] = device->get<std::string>();
  }
  return devices;
}

}  // namespace

std::string moved_groups_note(const Graph& graph, const Target& target) {
  std::set<std::string_view> built_in;
  for (const FusionPattern& pattern : fusion_patterns()) built_in.insert(pattern.name);
  std::vector<NodeId> all;
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) all.push_back(id);
  const std::map<std::int64_t, std::string> made_for = devices_of_groups(graph);
  std::map<std::string, std::set<std::string>> missing;  // patterns by device
  std::size_t count = 0;
  for (const GivenGroup& group : given_groups(graph, all)) {
    if (group.nodes.size() < 2 || !built_in.contains(group.pattern)) continue;
    const auto& name = graph.node(group.nodes.front()).device;
    const auto made = group.id ? made_for.find(*group.id) : made_for.end();
    if (!name || made == made_for.end() || made->second == *name) continue;
    const Device* device = target.find_device(*name);
    if (device == nullptr || !device->fusion) continue;
    const std::vector<std::string>& patterns = *device->fusion;
    if (std::find(patterns.begin(), patterns.end(), group.pattern) != patterns.end()) continue;
    missing[*name].insert(group.pattern);
    ++count;
  }
  if (count == 0) return {};
  std::string text = std::to_string(count) +
                     (count == 1 ? " group is on another device than it was made for ("
                                 : " groups are on other devices than they were made for (");
  bool is_first = true;
  for (const auto& [device, patterns] : missing) {
    for (const std::string& pattern : patterns) {
      text += (is_first ? "" : ", ") + pattern + " on " + printable_text(device);
      is_first = false;
    }
  }
  return text +
         "), which may start several kernels for each: npu-fuse and npu-partition once more "
         "make its own";
}

}  // namespace npu
