// SPDX-License-Identifier: Apache-2.0
// Limits on the number of partitions and on their memory, for every strategy.
//
// Number: the partition that is cheapest to move to another device, copies included, moves there,
// and the strategy runs again; while far more partitions are left than allowed, an eighth of the
// excess moves at once, so that there are O(log partitions) rounds before the last few. If that
// ends above the limit, all nodes that may move are placed anew for the fewest partitions: by
// device runs in which each device takes everything ready that it can run, which is the minimum for
// two devices. O(rounds * (nodes + edges)).
//
// Memory: a run of nodes never needs less memory than a part of it, so taking the longest run that
// fits is optimal, and a search with doubling steps finds its end. O(nodes log nodes).
#include "partition/limits/limits.hpp"

#include <algorithm>
#include <limits>

#include "ir/device_reason.hpp"
#include "npu/support/ids.hpp"
#include "partition/limits/working_set.hpp"
#include "partition/placement/placement_problem.hpp"
#include "partition/plan_builder.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

void move_item_nodes(Graph& graph, const Target& target, const PlacementProblem& problem,
                     const std::vector<char>& moves, const Assignment& assignment) {
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const auto item = index_of(problem.item_of[index_of(problem.fused.fused_node_of[n])]);
    if (moves[item] == 0) continue;
    Node& node = graph.nodes()[n];
    node.device = target.devices[index_of(assignment[item])].name;
    if (!DeviceReason::of(node).is_fixed()) {
      DeviceReason(DeviceReason::Kind::kMaxPartitions).store(node);
    }
  }
}

struct Move {
  std::int64_t cost = 0;  // ticks that it adds
  std::vector<std::int32_t> items;
  std::int32_t device = 0;
};

/// The cheapest move of each partition that can go anywhere, cheapest first.
class MoveFinder {
 public:
  MoveFinder(const PlacementProblem& problem, const Assignment& assignment)
      : problem_(problem), assignment_(assignment), touched_(problem.items) {
    for (std::size_t t = 0; t < problem.tensors.size(); ++t) {
      touched_[index_of(problem.tensors[t].producer)].push_back(t);
      for (const std::int32_t reader : problem.readers_of(problem.tensors[t])) {
        touched_[index_of(reader)].push_back(t);
      }
    }
  }

  std::vector<Move> find(const Graph& graph, const PartitionPlan& plan) {
    std::vector<Move> moves;
    for (const Partition& partition : plan.partitions) {
      std::vector<std::int32_t> items;
      for (const NodeId id : partition.nodes) {
        items.push_back(
            problem_.item_of[index_of(problem_.fused.fused_node_of[index_of(id.value)])]);
      }
      std::sort(items.begin(), items.end());
      items.erase(std::unique(items.begin(), items.end()), items.end());
      Move best{.cost = kNever, .items = {}, .device = 0};
      for (std::size_t d = 0; d < problem_.devices; ++d) {
        const auto device = static_cast<std::int32_t>(d);
        if (graph.node(partition.nodes.front()).device == problem_.fused.device_names[d]) continue;
        const std::int64_t cost = cost_of(items, device);
        if (cost < best.cost) best = {cost, items, device};
      }
      if (best.cost != kNever) moves.push_back(std::move(best));
    }
    std::stable_sort(moves.begin(), moves.end(),
                     [](const Move& a, const Move& b) { return a.cost < b.cost; });
    return moves;
  }

 private:
  std::int64_t cost_of(const std::vector<std::int32_t>& items, std::int32_t device) {
    std::vector<std::size_t> tensors;
    std::int64_t cost = 0;
    for (const std::int32_t item : items) {
      const std::int64_t there = problem_.cost_of(item, device);
      if (there == kNever) return kNever;
      cost += there - problem_.cost_of(item, assignment_[index_of(item)]);
      tensors.insert(tensors.end(), touched_[index_of(item)].begin(),
                     touched_[index_of(item)].end());
    }
    std::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
    for (const std::size_t t : tensors) cost -= tensor_cost(problem_, assignment_, t);
    std::vector<std::int32_t> before;
    for (const std::int32_t item : items) {
      before.push_back(assignment_[index_of(item)]);
      assignment_[index_of(item)] = device;
    }
    for (const std::size_t t : tensors) cost += tensor_cost(problem_, assignment_, t);
    for (std::size_t i = 0; i < items.size(); ++i) assignment_[index_of(items[i])] = before[i];
    return cost;
  }

  const PlacementProblem& problem_;
  Assignment assignment_;
  std::vector<std::vector<std::size_t>> touched_;  // tensors, by item
};

Assignment assignment_of(const Graph& graph, const Target& target,
                         const PlacementProblem& problem) {
  Assignment assignment;
  for (std::size_t i = 0; i < problem.items; ++i) {
    const Device* device = target.find_device(*graph.node(problem.first_node[i]).device);
    assignment.push_back(static_cast<std::int32_t>(device - target.devices.data()));
  }
  return assignment;
}

/// Device runs in which each device takes every ready node that it can
/// run; tries every device as the first.
Assignment fewest_partitions_assignment(const PlacementProblem& problem) {
  const FusedGraph& fused = problem.fused;
  Assignment best;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (std::size_t first = 0; first < problem.devices; ++first) {
    std::vector<std::int32_t> waiting = fused.predecessor_count;
    std::vector<std::int32_t> ready;
    for (const std::int32_t fused_node : fused.order) {
      if (waiting[index_of(fused_node)] == 0) ready.push_back(fused_node);
    }
    Assignment assignment(problem.items, -1);
    std::size_t runs = 0;
    for (std::size_t d = first; !ready.empty(); d = (d + 1) % problem.devices) {
      const auto device = static_cast<std::int32_t>(d);
      bool any = false;
      std::vector<std::int32_t> left;
      for (std::size_t i = 0; i < ready.size(); ++i) {  // grows while it runs
        const std::int32_t fused_node = ready[i];
        std::int32_t& where = assignment[index_of(problem.item_of[index_of(fused_node)])];
        if (where < 0 && problem.cost_of(problem.item_of[index_of(fused_node)], device) != kNever) {
          where = device;
        }
        if (where != device) {
          left.push_back(fused_node);
          continue;
        }
        any = true;
        for (const std::int32_t next : fused.successors(fused_node)) {
          if (--waiting[index_of(next)] == 0) ready.push_back(next);
        }
      }
      ready = std::move(left);
      if (any) ++runs;
      if (runs >= fewest) break;
    }
    if (runs < fewest && ready.empty()) {
      fewest = runs;
      best = std::move(assignment);
    }
  }
  return best;
}

/// The fewest runs of a partition's fused nodes whose working sets fit.
std::vector<std::vector<NodeId>> runs_within(const Graph& graph, const FusedGraph& fused,
                                             const std::vector<std::int32_t>& position,
                                             const std::vector<NodeId>& nodes,
                                             std::int64_t memory_limit) {
  std::vector<std::int32_t> order;
  for (const NodeId id : nodes) order.push_back(fused.fused_node_of[index_of(id.value)]);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return position[index_of(a)] < position[index_of(b)];
  });
  order.erase(std::unique(order.begin(), order.end()), order.end());
  const auto run = [&](std::size_t begin, std::size_t end) {
    std::vector<NodeId> members;
    for (std::size_t i = begin; i < end; ++i) {
      const auto& fused_node = fused.members[index_of(order[i])];
      members.insert(members.end(), fused_node.begin(), fused_node.end());
    }
    std::sort(members.begin(), members.end());
    return members;
  };
  const auto fits = [&](std::size_t begin, std::size_t end) {
    return working_set_bytes(graph, run(begin, end)) <= memory_limit;
  };
  std::vector<std::vector<NodeId>> runs;
  for (std::size_t begin = 0; begin < order.size();) {
    if (!fits(begin, begin + 1)) {
      const NodeId id = fused.members[index_of(order[begin])].front();
      const auto bytes = working_set_bytes(graph, fused.members[index_of(order[begin])]);
      throw Error(
          ErrorCode::kInfeasible,
          "node '" + graph.node(id).name + "'" +
              (fused.members[index_of(order[begin])].size() > 1 ? " with its fusion group" : "") +
              " needs " + std::to_string(bytes) + " bytes alone; use --memory-limit " +
              std::to_string(bytes) + " or more",
          graph.location(id));
    }
    std::size_t step = 1;
    std::size_t end = begin + 1;
    while (end + step <= order.size() && fits(begin, end + step)) {
      end += step;
      step *= 2;
    }
    for (; step > 0; step /= 2) {
      if (end + step <= order.size() && fits(begin, end + step)) end += step;
    }
    runs.push_back(run(begin, end));
    begin = end;
  }
  return runs;
}

}  // namespace

PartitionPlan partition_with_max_partitions(Graph& graph, const Target& target,
                                            const CostModel& cost, std::int64_t max_partitions,
                                            const PartitionStrategy& strategy) {
  PartitionPlan plan = strategy(graph);
  const auto count = [&] { return static_cast<std::int64_t>(plan.partitions.size()); };
  if (max_partitions < 1 || count() <= max_partitions) return plan;
  const PlacementProblem problem = build_placement_problem(graph, target, cost);
  std::int64_t fewest = count();
  while (count() > max_partitions) {
    Assignment assignment = assignment_of(graph, target, problem);
    std::vector<Move> moves = MoveFinder(problem, assignment).find(graph, plan);
    if (moves.empty()) break;
    const std::int64_t excess = count() - max_partitions;
    const auto batch = static_cast<std::size_t>(std::max<std::int64_t>(1, excess / 8));
    std::vector<char> moved(problem.items, 0);
    for (std::size_t i = 0; i < std::min(batch, moves.size()); ++i) {
      for (const std::int32_t item : moves[i].items) {
        moved[index_of(item)] = 1;
        assignment[index_of(item)] = moves[i].device;
      }
    }
    move_item_nodes(graph, target, problem, moved, assignment);
    plan = strategy(graph);
    if (count() >= fewest) break;  // no progress: it would cycle
    fewest = count();
  }
  if (count() > max_partitions) {
    const Assignment assignment = fewest_partitions_assignment(problem);
    if (!assignment.empty()) {
      move_item_nodes(graph, target, problem, std::vector<char>(problem.items, 1), assignment);
      plan = strategy(graph);
      fewest = std::min(fewest, count());
    }
  }
  if (count() > max_partitions) {
    throw Error(ErrorCode::kInfeasible, "--max-partitions " + std::to_string(max_partitions) +
                                            ": the plan needs " + std::to_string(fewest) +
                                            " partitions; use --max-partitions " +
                                            std::to_string(fewest) + " or more");
  }
  return plan;
}

PartitionPlan split_by_memory(const Graph& graph, PartitionPlan plan, std::int64_t memory_limit) {
  if (memory_limit < 1) return plan;
  const FusedGraph fused = build_fused_graph(graph);
  std::vector<std::int32_t> position(fused.size());
  for (std::size_t i = 0; i < fused.order.size(); ++i) {
    position[index_of(fused.order[i])] = static_cast<std::int32_t>(i);
  }
  std::vector<Partition> parts;
  for (Partition& partition : plan.partitions) {
    if (working_set_bytes(graph, partition.nodes) <= memory_limit) {
      parts.push_back(partition);
      continue;
    }
    for (std::vector<NodeId>& run :
         runs_within(graph, fused, position, partition.nodes, memory_limit)) {
      parts.push_back({partition.device, std::move(run), {}});
    }
  }
  if (parts.size() == plan.partitions.size()) return plan;
  PartitionPlan result;
  result.strategy = plan.strategy;
  result.partitions = std::move(parts);
  connect_partitions(graph, result);
  return result;
}

}  // namespace npu
