// SPDX-License-Identifier: Apache-2.0
// Contracts fusion groups to fused nodes. A group that is not convex shows up as a cycle between
// fused nodes. So are nodes that a device runs together or not at all (byte_region), unless that
// makes a cycle. O(nodes + edges).
#include "partition/fused_graph.hpp"

#include <algorithm>
#include <unordered_map>

#include "npu/support/error.hpp"
#include "ops/byte_regions.hpp"
#include "partition/plan_builder.hpp"

namespace npu {
namespace {

/// By node: which byte_region() on one device it belongs to, or -1; empty if there are none.
std::vector<std::int32_t> find_regions(const Graph& graph) {
  std::vector<std::int32_t> region_of;
  const auto is_double = [&](TensorId id) { return graph.tensor(id).dtype == DType::kFloat64; };
  std::int32_t count = 0;
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const Node& node = graph.node(id);
    const bool has_doubles = std::any_of(node.outputs.begin(), node.outputs.end(), is_double);
    if (!has_doubles || (!region_of.empty() && region_of[index_of(id)] >= 0)) continue;
    const std::vector<NodeId> region = byte_region(graph, id);
    const bool is_together = std::all_of(region.begin(), region.end(), [&](NodeId each) {
      return device_of(graph, each) == device_of(graph, id);
    });
    if (region.empty() || !is_together) continue;
    region_of.resize(graph.nodes().size(), -1);
    for (const NodeId each : region) region_of[index_of(each)] = count;
    ++count;
  }
  return region_of;
}

std::vector<std::int32_t> assign_fused_nodes(const Graph& graph,
                                             const std::vector<std::int32_t>& region_of,
                                             FusedGraph& fused) {
  std::vector<std::int32_t> fused_node_of(graph.nodes().size());
  fused.device.reserve(fused_node_of.size());
  std::unordered_map<std::int64_t, std::int32_t> fused_node_of_group;
  std::unordered_map<std::int32_t, std::int32_t> fused_node_of_region;
  for (std::size_t n = 0; n < fused_node_of.size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    const std::string& name = device_of(graph, id);
    // Few devices, so a scan is faster than a table.
    const auto device = static_cast<std::int32_t>(
        std::find(fused.device_names.begin(), fused.device_names.end(), name) -
        fused.device_names.begin());
    if (static_cast<std::size_t>(device) == fused.device_names.size()) {
      fused.device_names.push_back(name);
    }
    auto fused_node = static_cast<std::int32_t>(fused.device.size());
    const std::int32_t region = region_of.empty() ? -1 : region_of[n];
    if (const auto known = fused_node_of_region.find(region); known != fused_node_of_region.end()) {
      fused_node = known->second;
    }
    if (const auto group = graph.node(id).fusion_group) {
      fused_node = fused_node_of_group.emplace(*group, fused_node).first->second;
    }
    if (region >= 0) fused_node_of_region.emplace(region, fused_node);
    if (static_cast<std::size_t>(fused_node) == fused.device.size()) {
      fused.device.push_back(device);
    } else if (fused.device[static_cast<std::size_t>(fused_node)] != device) {
      throw Error(ErrorCode::kInvalidGraph,
                  "fusion group " + std::to_string(*graph.node(id).fusion_group) +
                      " has nodes on two devices; run npu-fuse after npu-tag",
                  graph.location(id));
    }
    fused_node_of[n] = fused_node;
  }
  fused.members.distribute(fused_node_of, fused.device.size());
  return fused_node_of;
}

void connect_fused_nodes(const Graph& graph, const std::vector<std::int32_t>& fused_node_of,
                         FusedGraph& fused) {
  fused.offsets.assign(1, 0);
  fused.predecessor_count.assign(fused.size(), 0);
  std::vector<std::int32_t> last_seen(fused.size(), -1);
  for (std::size_t u = 0; u < fused.size(); ++u) {
    for (const NodeId member : fused.members[u]) {
      for (const TensorId output : graph.node(member).outputs) {
        for (const NodeId consumer : graph.tensor(output).consumers) {
          const std::int32_t next = fused_node_of[index_of(consumer)];
          if (static_cast<std::size_t>(next) == u) continue;
          if (last_seen[static_cast<std::size_t>(next)] == static_cast<std::int32_t>(u)) continue;
          last_seen[static_cast<std::size_t>(next)] = static_cast<std::int32_t>(u);
          fused.targets.push_back(next);
          ++fused.predecessor_count[static_cast<std::size_t>(next)];
        }
      }
    }
    fused.offsets.push_back(static_cast<std::int64_t>(fused.targets.size()));
  }
}

/// Throws with the nodes along a cycle of fused nodes; `waiting` counts the predecessors that each
/// fused node still waits for.
[[noreturn]] void refuse_cycle(const Graph& graph, const FusedGraph& fused,
                               const std::vector<std::int32_t>& waiting) {
  // Walks backwards from a waiting fused node to waiting predecessors until one is met again.
  std::vector<std::int32_t> reader_of(fused.size(), -1);
  std::vector<std::int32_t> waits_for(fused.size(), -1);
  for (std::size_t u = 0; u < fused.size(); ++u) {
    if (waiting[u] == 0) continue;
    for (const std::int32_t next : fused.successors(static_cast<std::int32_t>(u))) {
      auto& before = waits_for[static_cast<std::size_t>(next)];
      if (before < 0) before = static_cast<std::int32_t>(u);
    }
  }
  auto fused_node = static_cast<std::int32_t>(
      std::find_if(waiting.begin(), waiting.end(), [](std::int32_t count) { return count > 0; }) -
      waiting.begin());
  while (reader_of[static_cast<std::size_t>(fused_node)] < 0) {
    const std::int32_t before = waits_for[static_cast<std::size_t>(fused_node)];
    reader_of[static_cast<std::size_t>(fused_node)] = before;
    fused_node = before;
  }
  std::vector<std::int32_t> cycle{fused_node};  // each is read by the one before it
  for (std::int32_t u = waits_for[static_cast<std::size_t>(fused_node)]; u != fused_node;
       u = waits_for[static_cast<std::size_t>(u)]) {
    cycle.push_back(u);
  }
  std::reverse(cycle.begin(), cycle.end());  // now each reads the one before it
  // Starts at the group whose first node comes first in the list.
  const auto first = [&](std::int32_t u) {
    return fused.members[static_cast<std::size_t>(u)].front();
  };
  std::size_t start = 0;
  const auto is_group = [&](std::int32_t u) {
    return fused.members[static_cast<std::size_t>(u)].size() > 1;
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
    // The nodes at both ends of an edge between the two groups.
    for (const NodeId member : fused.members[static_cast<std::size_t>(from)]) {
      NodeId reader;
      for (const TensorId output : graph.node(member).outputs) {
        for (const NodeId consumer : graph.tensor(output).consumers) {
          if (fused.fused_node_of[index_of(consumer)] == to) reader = consumer;
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

/// By fused node: the predecessors that it waits for in a cycle; all 0 if there is none.
std::vector<std::int32_t> order_fused_nodes(FusedGraph& fused) {
  std::vector<std::int32_t> waiting = fused.predecessor_count;
  for (std::size_t u = 0; u < fused.size(); ++u) {
    if (waiting[u] == 0) fused.order.push_back(static_cast<std::int32_t>(u));
  }
  for (std::size_t i = 0; i < fused.order.size(); ++i) {
    for (const std::int32_t next : fused.successors(fused.order[i])) {
      if (--waiting[static_cast<std::size_t>(next)] == 0) fused.order.push_back(next);
    }
  }
  return waiting;
}

}  // namespace

FusedGraph build_fused_graph(const Graph& graph) {
  std::vector<std::int32_t> regions = find_regions(graph);
  for (;;) {
    FusedGraph fused;
    fused.fused_node_of = assign_fused_nodes(graph, regions, fused);
    connect_fused_nodes(graph, fused.fused_node_of, fused);
    const std::vector<std::int32_t> waiting = order_fused_nodes(fused);
    if (fused.order.size() == fused.size()) return fused;
    if (regions.empty()) refuse_cycle(graph, fused, waiting);
    regions.clear();
  }
}

FusedGraph induced_fused_graph(const FusedGraph& fused, const std::vector<std::int32_t>& part,
                               std::vector<std::int32_t>& local) {
  FusedGraph result;
  result.device_names = fused.device_names;
  for (std::size_t i = 0; i < part.size(); ++i)
    local[static_cast<std::size_t>(part[i])] = static_cast<std::int32_t>(i);
  result.offsets.assign(1, 0);
  result.predecessor_count.assign(part.size(), 0);
  for (std::size_t i = 0; i < part.size(); ++i) {
    result.members.push_back(fused.members[static_cast<std::size_t>(part[i])]);
    result.device.push_back(fused.device[static_cast<std::size_t>(part[i])]);
    result.order.push_back(static_cast<std::int32_t>(i));  // `part` is in topological order
    for (const std::int32_t next : fused.successors(part[i])) {
      const std::int32_t to = local[static_cast<std::size_t>(next)];
      if (to < 0) continue;
      result.targets.push_back(to);
      ++result.predecessor_count[static_cast<std::size_t>(to)];
    }
    result.offsets.push_back(static_cast<std::int64_t>(result.targets.size()));
  }
  for (const std::int32_t fused_node : part) local[static_cast<std::size_t>(fused_node)] = -1;
  return result;
}

}  // namespace npu
