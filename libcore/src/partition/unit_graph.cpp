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
  units.device.reserve(unit_of.size());
  std::unordered_map<std::int64_t, std::int32_t> unit_of_group;
  for (std::size_t n = 0; n < unit_of.size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const std::string& name = device_of(graph, id);
    // Few devices, so a scan is faster than a table.
    const auto device = static_cast<std::int32_t>(
        std::find(units.device_names.begin(), units.device_names.end(), name) -
        units.device_names.begin());
    if (static_cast<std::size_t>(device) == units.device_names.size()) {
      units.device_names.push_back(name);
    }
    auto unit = static_cast<std::int32_t>(units.device.size());
    if (const auto group = graph.node(id).fusion_group) {
      unit = unit_of_group.emplace(*group, unit).first->second;
    }
    if (static_cast<std::size_t>(unit) == units.device.size()) {
      units.device.push_back(device);
    } else if (units.device[static_cast<std::size_t>(unit)] != device) {
      throw Error(ErrorCode::kInvalidGraph,
                  "fusion group " + std::to_string(*graph.node(id).fusion_group) +
                      " has nodes on two devices; run npu-fuse after npu-tag",
                  graph.location(id));
    }
    unit_of[n] = unit;
  }
  units.members.distribute(unit_of, units.device.size());
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

/// Names the nodes along a cycle of units, of which `waiting` leaves some that nothing can start.
[[noreturn]] void refuse_cycle(const Graph& graph, const UnitGraph& units,
                               const std::vector<std::int32_t>& waiting) {
  // Backwards from any unit that waits, always to one that waits, too, until one comes again.
  std::vector<std::int32_t> reader_of(units.size(), -1);
  std::vector<std::int32_t> waits_for(units.size(), -1);
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (waiting[u] == 0) continue;
    for (const std::int32_t next : units.successors(static_cast<std::int32_t>(u))) {
      auto& before = waits_for[static_cast<std::size_t>(next)];
      if (before < 0) before = static_cast<std::int32_t>(u);
    }
  }
  auto unit = static_cast<std::int32_t>(
      std::find_if(waiting.begin(), waiting.end(), [](std::int32_t count) { return count > 0; }) -
      waiting.begin());
  while (reader_of[static_cast<std::size_t>(unit)] < 0) {
    const std::int32_t before = waits_for[static_cast<std::size_t>(unit)];
    reader_of[static_cast<std::size_t>(unit)] = before;
    unit = before;
  }
  std::vector<std::int32_t> cycle{unit};  // each is read by the one before it
  for (std::int32_t u = waits_for[static_cast<std::size_t>(unit)]; u != unit;
       u = waits_for[static_cast<std::size_t>(u)]) {
    cycle.push_back(u);
  }
  std::reverse(cycle.begin(), cycle.end());  // now each reads of the one before it
  // From the group whose first node stands first in the list.
  const auto first = [&](std::int32_t u) {
    return units.members[static_cast<std::size_t>(u)].front();
  };
  std::size_t start = 0;
  const auto is_group = [&](std::int32_t u) {
    return units.members[static_cast<std::size_t>(u)].size() > 1;
  };
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    if (is_group(cycle[i]) && (!is_group(cycle[start]) || first(cycle[i]) < first(cycle[start])))
      start = i;
  }
  std::rotate(cycle.begin(), cycle.begin() + static_cast<std::ptrdiff_t>(start), cycle.end());
  std::string path;
  std::string others;
  cycle.push_back(cycle.front());
  for (std::size_t i = 0; i + 1 < cycle.size(); ++i) {
    const std::int32_t from = cycle[i];
    const std::int32_t to = cycle[i + 1];
    if (i > 0 && is_group(from)) {
      others +=
          (others.empty() ? "" : ", ") + std::to_string(*graph.node(first(from)).fusion_group);
    }
    // The nodes at both ends of an edge between the two.
    for (const NodeId member : units.members[static_cast<std::size_t>(from)]) {
      NodeId reader;
      for (const TensorId output : graph.node(member).outputs) {
        for (const NodeId consumer : graph.tensor(output).consumers) {
          if (units.unit_of[static_cast<std::size_t>(consumer.value)] == to) reader = consumer;
          if (reader.valid()) break;
        }
        if (reader.valid()) break;
      }
      if (!reader.valid()) continue;
      const std::string head = (path.empty() ? "'" : ", '") + graph.node(member).name + "' -> '";
      path += head + graph.node(reader).name + "'";
      break;
    }
  }
  const NodeId id = first(cycle.front());
  const std::string group = std::to_string(*graph.node(id).fusion_group);
  throw Error(ErrorCode::kInvalidGraph,
              "fusion group " + group + " is not convex: a path leaves it and comes back" +
                  (others.empty() ? "" : " through fusion group " + others) + ": " + path,
              graph.location(id));
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
  if (units.order.size() != units.size()) refuse_cycle(graph, units, waiting);
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
