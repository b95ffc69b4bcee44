// SPDX-License-Identifier: Apache-2.0
// What the partitions of a plan offer to a device and hold there: parallelism, the largest working
// set, and what of it could be computed again instead of being kept.
//
// Parallelism is work over the longest chain of nodes that wait for each other, by predicted times:
// how many units of a device a partition could keep busy. Memory is that of one partition after
// another in list order, with memory that is free again used again; inputs and weights stay, and an
// alias has the memory of its operand. O(nodes + edges).
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "npu/partition/metrics.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

class WorkloadMeter {
 public:
  WorkloadMeter(const Graph& graph, const PartitionPlan& plan, const Target& target,
                const CostModel& cost)
      : graph_(graph),
        plan_(plan),
        target_(target),
        cost_(cost),
        partition_of_(graph.nodes().size(), -1),
        position_(graph.nodes().size(), 0),
        finish_us_(graph.nodes().size(), 0),
        storage_(graph.tensors().size()),
        last_use_(graph.tensors().size(), kNever),
        is_output_(graph.tensors().size(), 0) {
    for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
      const std::vector<NodeId>& nodes = plan.partitions[p].nodes;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        partition_of_[nodes[i]] = static_cast<std::int32_t>(p);
        position_[nodes[i]] = static_cast<std::int32_t>(i);
      }
    }
    for (const TensorId id : ids_of<TensorId>(graph.tensors())) storage_[id] = id;
    for (const TensorId id : graph.graph_outputs()) is_output_[id] = 1;
  }

  PlanWorkload measure() {
    double work = 0;
    double chains = 0;
    for (std::size_t p = 0; p < plan_.partitions.size(); ++p) {
      const auto [partition_work, chain] = work_and_chain(p);
      work += partition_work;
      chains += chain;
      if (chain > 0) {
        const double parallelism = partition_work / chain;
        result_.least_parallelism =
            has_work_ ? std::min(result_.least_parallelism, parallelism) : parallelism;
        has_work_ = true;
      }
      measure_memory(p);
    }
    if (chains > 0) result_.parallelism = work / chains;
    return result_;
  }

 private:
  static constexpr std::int32_t kNever = -1;
  static constexpr std::int32_t kToTheEnd = INT32_MAX;

  const std::vector<NodeId>& nodes_of(std::size_t p) const { return plan_.partitions[p].nodes; }
  bool is_inside(TensorId id, std::size_t p) const {
    const TensorInfo& tensor = graph_.tensor(id);
    return tensor.kind == TensorKind::kResult &&
           partition_of_[tensor.producer] == static_cast<std::int32_t>(p);
  }

  std::pair<double, double> work_and_chain(std::size_t p) {
    const Device* device = target_.find_device(plan_.partitions[p].device);
    double work = 0;
    double chain = 0;
    for (const NodeId id : nodes_of(p)) {
      double start = 0;
      for (const TensorId input : graph_.node(id).inputs) {
        if (is_inside(input, p)) start = std::max(start, finish_us_[graph_.tensor(input).producer]);
      }
      const double us = device == nullptr ? 0 : cost_.node_us(graph_, id, *device);
      finish_us_[id] = start + us;
      work += us;
      chain = std::max(chain, finish_us_[id]);
    }
    return {work, chain};
  }

  // Where each result of the partition was needed last; results of aliases count for what they
  // share memory with.
  void find_last_uses(std::size_t p) {
    for (const NodeId id : nodes_of(p)) {
      const Node& node = graph_.node(id);
      const bool is_alias = node.inputs.size() == 1 && is_alias_node(graph_, node);
      for (const TensorId output : node.outputs) {
        if (is_alias) storage_[output] = storage_[node.inputs.front()];
        std::int32_t last = is_output_[output] != 0 ? kToTheEnd : position_[id];
        for (const NodeId consumer : graph_.tensor(output).consumers) {
          const bool inside = partition_of_[consumer] == static_cast<std::int32_t>(p);
          last = std::max(last, inside ? position_[consumer] : kToTheEnd);
        }
        std::int32_t& of_storage = last_use_[storage_[output]];
        of_storage = std::max(of_storage, last);
      }
    }
  }

  std::int64_t bytes(TensorId id) const { return graph_.tensor(id).bytes(); }

  void measure_memory(std::size_t p) {
    find_last_uses(p);
    const SubgraphBoundary& boundary = plan_.partitions[p].boundary;
    std::int64_t live = 0;
    for (const TensorId id : boundary.inputs) live = saturating_add(live, bytes(id));
    for (const TensorId id : boundary.weights) live = saturating_add(live, bytes(id));
    std::int64_t peak = live;
    std::int32_t peak_at = kNever;
    const std::vector<NodeId>& nodes = nodes_of(p);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = graph_.node(nodes[i]);
      for (const TensorId output : node.outputs) {
        if (storage_[output] == output) live = saturating_add(live, bytes(output));
      }
      if (live > peak) {
        peak = live;
        peak_at = static_cast<std::int32_t>(i);
      }
      const auto release = [&](TensorId id) {
        const TensorId place = storage_[id];
        if (!is_inside(place, p) || last_use_[place] != static_cast<std::int32_t>(i)) return;
        live -= bytes(place);
        freed_.push_back(place);
        last_use_[place] = kNever;  // once
      };
      for (const TensorId input : node.inputs) release(input);
      for (const TensorId output : node.outputs) release(output);
      for (const TensorId place : freed_) last_use_[place] = static_cast<std::int32_t>(i);
      freed_.clear();
    }
    if (peak <= result_.peak_bytes) return;
    result_.peak_bytes = peak;
    result_.recomputable_bytes = 0;
    result_.recompute_flops = 0;
    if (peak_at != kNever) find_recomputable(p, peak_at);
  }

  // Results that wait while node `at` runs, made by ops of one kernel without a sum.
  void find_recomputable(std::size_t p, std::int32_t at) {
    const std::vector<NodeId>& nodes = nodes_of(p);
    std::unordered_set<std::int32_t> read;
    for (const TensorId input : graph_.node(nodes[index_of(at)]).inputs) {
      read.insert(storage_[input].value);
    }
    for (std::int32_t i = 0; i < at; ++i) {
      const NodeId id = nodes[index_of(i)];
      const Node& node = graph_.node(id);
      const OpInfo* op = find_op(node.op_type);
      if (op == nullptr || node.outputs.size() != 1 ||
          (op->kind != OpKind::kElementwise && op->kind != OpKind::kBroadcast)) {
        continue;
      }
      const TensorId result = node.outputs.front();
      if (storage_[result] != result || last_use_[result] <= at || last_use_[result] == kToTheEnd ||
          read.contains(result.value)) {
        continue;
      }
      const bool can_read =
          std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId input) {
            return !is_inside(storage_[input], p) ||
                   last_use_[storage_[input]] >= last_use_[result];
          });
      if (!can_read) continue;
      result_.recomputable_bytes = saturating_add(result_.recomputable_bytes, bytes(result));
      result_.recompute_flops += node_flops(graph_, node);
    }
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  const Target& target_;
  const CostModel& cost_;
  IdVector<NodeId, std::int32_t> partition_of_;
  IdVector<NodeId, std::int32_t> position_;  // in its partition
  IdVector<NodeId, double> finish_us_;
  IdVector<TensorId, TensorId> storage_;
  IdVector<TensorId, std::int32_t> last_use_;
  IdVector<TensorId, char> is_output_;
  std::vector<TensorId> freed_;
  PlanWorkload result_;
  bool has_work_ = false;
};

}  // namespace

PlanWorkload plan_workload(const Graph& graph, const PartitionPlan& plan, const Target& target,
                           const CostModel& cost) {
  return WorkloadMeter(graph, plan, target, cost).measure();
}

}  // namespace npu
