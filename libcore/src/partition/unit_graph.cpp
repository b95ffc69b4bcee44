// SPDX-License-Identifier: Apache-2.0
// Contracts fusion groups. A group that is not convex shows as a cycle between units. O(nodes +
// edges).
#include "partition/unit_graph.hpp"

#include <algorithm>
#include <unordered_map>

#include "npu/support/error.hpp"
#include "partition/plan_builder.hpp"

namespace npu {
namespace {

std::vector<std::int32_t> assign_units(const Graph& graph, UnitGraph& units) {
  std::vector<std::int32_t> unit_of(graph.nodes().size());
  std::unordered_map<std::int64_t, std::int32_t> unit_of_group;
  std::unordered_map<std::string, std::int32_t> device_index;
  for (std::size_t n = 0; n < unit_of.size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const std::string& name = device_of(graph, id);
    const auto [device, is_new] =
        device_index.emplace(name, static_cast<std::int32_t>(units.device_names.size()));
    if (is_new) units.device_names.push_back(name);
    auto unit = static_cast<std::int32_t>(units.members.size());
    if (const auto group = graph.node(id).fusion_group) {
      unit = unit_of_group.emplace(*group, unit).first->second;
    }
    if (static_cast<std::size_t>(unit) == units.members.size()) {
      units.members.emplace_back();
      units.device.push_back(device->second);
    } else if (units.device[static_cast<std::size_t>(unit)] != device->second) {
      throw Error(ErrorCode::kInvalidGraph,
                  "fusion group " + std::to_string(*graph.node(id).fusion_group) +
                      " has nodes on two devices; run npu-fuse after npu-tag",
                  graph.location(id));
    }
    units.members[static_cast<std::size_t>(unit)].push_back(id);
    unit_of[n] = unit;
  }
  return unit_of;
}

void connect_units(const Graph& graph, const std::vector<std::int32_t>& unit_of, UnitGraph& units) {
  units.offsets.assign(1, 0);
  units.predecessor_count.assign(units.size(), 0);
  std::vector<std::int32_t> last_seen(units.size(), -1);
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const NodeId member : units.members[u]) {
      for (const TensorId output : graph.node(member).outputs) {
        for (const NodeId consumer : graph.tensor(output).consumers) {
          const std::int32_t next = unit_of[static_cast<std::size_t>(consumer.value)];
          if (static_cast<std::size_t>(next) == u) continue;
          if (last_seen[static_cast<std::size_t>(next)] == static_cast<std::int32_t>(u)) continue;
          last_seen[static_cast<std::size_t>(next)] = static_cast<std::int32_t>(u);
          units.targets.push_back(next);
          ++units.predecessor_count[static_cast<std::size_t>(next)];
        }
      }
    }
    units.offsets.push_back(static_cast<std::int64_t>(units.targets.size()));
  }
}

void order_units(const Graph& graph, UnitGraph& units) {
  std::vector<std::int32_t> waiting = units.predecessor_count;
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (waiting[u] == 0) units.order.push_back(static_cast<std::int32_t>(u));
  }
  for (std::size_t i = 0; i < units.order.size(); ++i) {
    for (const std::int32_t next : units.successors(units.order[i])) {
      if (--waiting[static_cast<std::size_t>(next)] == 0) units.order.push_back(next);
    }
  }
  if (units.order.size() == units.size()) return;
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (waiting[u] == 0 || units.members[u].size() < 2) continue;
    const NodeId id = units.members[u].front();
    throw Error(ErrorCode::kInvalidGraph,
                "fusion group " + std::to_string(*graph.node(id).fusion_group) +
                    " is not convex: a path leaves it and comes back",
                graph.location(id));
  }
}

}  // namespace

UnitGraph build_unit_graph(const Graph& graph) {
  UnitGraph units;
  units.unit_of = assign_units(graph, units);
  connect_units(graph, units.unit_of, units);
  order_units(graph, units);
  return units;
}

}  // namespace npu
