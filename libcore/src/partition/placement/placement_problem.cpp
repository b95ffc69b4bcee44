// SPDX-License-Identifier: Apache-2.0
// Turns a tagged graph and a target into numbers: the cost of each item on each device, and of each
// tensor on each link.
//
// A node may run on the device that it has and on every other one that supports it, unless its
// device_reason is fixed (by hand, by a limit) or says that another device failed to compile it (it
// is off the first device although that supports it, and not by preference); such nodes stay. Graph
// inputs and weights cost no transfer: as in npu-run, they are loaded directly to each device that
// reads them, and outputs are fetched from where they were computed.
// O(nodes * devices + edges).
#include "partition/placement/placement_problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/device_reason.hpp"
#include "ir/states_section.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "partition/plan_builder.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

constexpr double kLargestTotal = 0x1p60;

class Builder {
 public:
  Builder(const Graph& graph, const Target& target, const CostModel& cost)
      : graph_(graph), target_(target), cost_(cost) {}

  PlacementProblem build() {
    problem_.fused = build_fused_graph(graph_);
    problem_.devices = target_.devices.size();
    if (problem_.devices > 64) {
      throw Error(ErrorCode::kUnsupported,
                  "target '" + target_.name + "' has more than 64 devices");
    }
    rename_devices();
    find_node_devices();
    join_items();
    find_tensors();
    measure();
    return std::move(problem_);
  }

 private:
  // Fused nodes number devices themselves; from here on the target's indices are used.
  void rename_devices() {
    std::vector<std::int32_t> index;
    for (const std::string& name : problem_.fused.device_names) {
      const Device* device = target_.find_device(name);
      if (device == nullptr) {
        throw Error(ErrorCode::kInvalidGraph, "device '" + name + "' is not in target '" +
                                                  target_.name + "'; run npu-tag again");
      }
      index.push_back(static_cast<std::int32_t>(device - target_.devices.data()));
    }
    for (std::int32_t& device : problem_.fused.device) device = index[index_of(device)];
    problem_.fused.device_names.clear();
    for (const Device& device : target_.devices) {
      problem_.fused.device_names.push_back(device.name);
    }
  }

  void find_node_devices() {
    problem_.node_devices.resize(graph_.nodes().size());
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const NodeId id{static_cast<std::int32_t>(n)};
      const std::int32_t own = problem_.fused.device[index_of(problem_.fused.fused_node_of[n])];
      std::uint64_t bits = std::uint64_t{1} << own;
      const DeviceReason reason = DeviceReason::of(graph_.node(id));
      if (!reason.is_fixed()) {
        for (std::size_t d = 0; d < problem_.devices; ++d) {
          if ((bits >> d & 1U) != 0) continue;
          if (!check_tagged_support(graph_, id, target_.devices[d]).supported) continue;
          bits |= std::uint64_t{1} << d;
        }
      }
      // Not lack of support keeps it off the first device, but for example a failure to compile.
      const bool stays = own != 0 && (bits & 1U) != 0 && !reason.is_preference();
      problem_.node_devices[n] = stays ? std::uint64_t{1} << own : bits;
    }
  }

  // A list of tensors cannot be sent from device to device: a getitem stays with its producer. Nor
  // is a state to be: those that read and write it stay together.
  void join_items() {
    const FusedGraph& fused = problem_.fused;
    std::vector<std::int32_t> leader(fused.size());
    std::iota(leader.begin(), leader.end(), 0);
    const auto find = [&](std::int32_t fused_node) {
      while (leader[index_of(fused_node)] != fused_node) fused_node = leader[index_of(fused_node)];
      return fused_node;
    };
    const auto join = [&](NodeId x, NodeId y) {
      const std::int32_t a = find(fused.fused_node_of[index_of(x.value)]);
      const std::int32_t b = find(fused.fused_node_of[index_of(y.value)]);
      // A document whose tags were edited by hand keeps them.
      if (fused.device[index_of(a)] != fused.device[index_of(b)]) return;
      leader[index_of(std::max(a, b))] = std::min(a, b);
    };
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (node.op_type != kGetitem || node.inputs.empty()) continue;
      const TensorInfo& tensor = graph_.tensor(node.inputs.front());
      if (tensor.producer.valid()) join(tensor.producer, {static_cast<std::int32_t>(n)});
    }
    for (const std::vector<NodeId>& nodes : nodes_of_states()) {
      for (const NodeId node : nodes) join(nodes.front(), node);
    }
    problem_.item_of.resize(fused.size());
    for (std::size_t u = 0; u < fused.size(); ++u) {
      const auto fused_node = static_cast<std::int32_t>(u);
      if (find(fused_node) == fused_node) {
        problem_.item_of[u] = static_cast<std::int32_t>(problem_.items++);
        problem_.first_node.push_back(fused.members[u].front());
        problem_.tagged.push_back(fused.device[u]);
      } else {
        problem_.item_of[u] = problem_.item_of[index_of(find(fused_node))];
      }
    }
  }

  // By state: who writes it, and who reads what it was or becomes, through views too.
  std::vector<std::vector<NodeId>> nodes_of_states() const {
    Diagnostics known;  // the reader has told them
    std::vector<std::vector<NodeId>> nodes;
    for (const State& state : read_states(graph_, known)) {
      std::vector<NodeId>& own = nodes.emplace_back();
      std::vector<TensorId> views;
      for (const std::string& name : {state.output, state.input}) {
        const TensorId id = graph_.find_tensor(name);
        if (!id.valid()) continue;
        if (graph_.tensor(id).producer.valid()) own.push_back(graph_.tensor(id).producer);
        views.push_back(id);
      }
      while (!views.empty()) {
        const TensorId read = views.back();
        views.pop_back();
        for (const NodeId reader : graph_.tensor(read).consumers) {
          own.push_back(reader);
          const Node& node = graph_.node(reader);
          if (!is_alias_node(graph_, node) || node.inputs.front() != read) continue;
          views.insert(views.end(), node.outputs.begin(), node.outputs.end());
        }
      }
    }
    return nodes;
  }

  std::int32_t item_of(NodeId node) const {
    return problem_.item_of[index_of(problem_.fused.fused_node_of[index_of(node.value)])];
  }

  void find_tensors() {
    std::vector<std::int32_t> seen_by(problem_.items, -1);
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
      const TensorInfo& tensor = graph_.tensors()[t];
      if (!tensor.producer.valid()) continue;
      PlacementProblem::Tensor entry{.id = {static_cast<std::int32_t>(t)},
                                     .producer = item_of(tensor.producer),
                                     .begin = static_cast<std::int32_t>(problem_.readers.size())};
      seen_by[index_of(entry.producer)] = entry.id.value;
      for (const NodeId consumer : tensor.consumers) {
        const std::int32_t reader = item_of(consumer);
        if (seen_by[index_of(reader)] == entry.id.value) continue;
        seen_by[index_of(reader)] = entry.id.value;
        problem_.readers.push_back(reader);
      }
      entry.end = static_cast<std::int32_t>(problem_.readers.size());
      if (entry.end > entry.begin) problem_.tensors.push_back(entry);
    }
  }

  void measure() {
    const std::size_t devices = problem_.devices;
    std::vector<std::uint64_t> allowed(problem_.items, ~std::uint64_t{0});
    std::vector<double> cost(problem_.items * devices, 0);
    std::vector<double> node_us(devices);
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const NodeId id{static_cast<std::int32_t>(n)};
      const std::size_t item = index_of(item_of(id));
      allowed[item] &= problem_.node_devices[n];
      cost_.node_us_on_each(graph_, id, target_.devices, node_us);
      for (std::size_t d = 0; d < devices; ++d) {
        if ((problem_.node_devices[n] >> d & 1U) != 0) cost[item * devices + d] += node_us[d];
      }
    }
    std::vector<double> transfer;
    transfer.reserve(problem_.tensors.size() * devices * devices);
    for (const PlacementProblem::Tensor& tensor : problem_.tensors) {
      for (const Device& from : target_.devices) {
        for (const Device& to : target_.devices) {
          transfer.push_back(
              &from == &to ? 0 : cost_.tensor_us(graph_, tensor.id, target_, from.name, to.name));
        }
      }
    }
    std::vector<double> launch;
    for (const Device& device : target_.devices) launch.push_back(cost_.launch_us(device));

    const double total = std::accumulate(cost.begin(), cost.end(), 0.0) +
                         2 * std::accumulate(transfer.begin(), transfer.end(), 0.0) +
                         4 * static_cast<double>(problem_.fused.size() + 1) *
                             std::accumulate(launch.begin(), launch.end(), 0.0);
    if (!std::isfinite(total)) {
      throw Error(ErrorCode::kUnsupported,
                  "predicted times are not finite with the rates of target '" + target_.name + "'");
    }
    // Coarser only if times add up to ten days.
    int exponent = 6;
    while (total * std::pow(10.0, exponent) > kLargestTotal) --exponent;
    problem_.ticks_per_us = std::pow(10.0, exponent);
    const auto ticks = [&](double us) {
      return static_cast<std::int64_t>(std::llround(us * problem_.ticks_per_us));
    };
    for (std::size_t i = 0; i < problem_.items; ++i) {
      for (std::size_t d = 0; d < devices; ++d) {
        const bool runs = (allowed[i] >> d & 1U) != 0;
        problem_.cost.push_back(runs ? ticks(cost[i * devices + d]) : kNever);
      }
    }
    for (const double us : transfer) problem_.transfer.push_back(ticks(us));
    for (const double us : launch) problem_.launch.push_back(ticks(us));
  }

  const Graph& graph_;
  const Target& target_;
  const CostModel& cost_;
  PlacementProblem problem_;
};

}  // namespace

PlacementProblem build_placement_problem(const Graph& graph, const Target& target,
                                         const CostModel& cost) {
  return Builder(graph, target, cost).build();
}

std::int64_t tensor_cost(const PlacementProblem& problem, const Assignment& assignment,
                         std::size_t t) {
  const PlacementProblem::Tensor& tensor = problem.tensors[t];
  const std::int32_t from = assignment[index_of(tensor.producer)];
  std::uint64_t sent = std::uint64_t{1} << from;
  std::int64_t cost = 0;
  for (const std::int32_t reader : problem.readers_of(tensor)) {
    const std::int32_t to = assignment[index_of(reader)];
    if ((sent >> to & 1U) != 0) continue;
    sent |= std::uint64_t{1} << to;
    cost += problem.transfer_of(t, from, to);
  }
  return cost;
}

std::int64_t placement_cost(const PlacementProblem& problem, const Assignment& assignment) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < problem.items; ++i) {
    const std::int64_t cost = problem.cost_of(static_cast<std::int32_t>(i), assignment[i]);
    if (cost == kNever) return kNever;
    total += cost;
  }
  for (std::size_t t = 0; t < problem.tensors.size(); ++t) {
    total += tensor_cost(problem, assignment, t);
  }
  return total;
}

}  // namespace npu
