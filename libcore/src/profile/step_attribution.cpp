// SPDX-License-Identifier: Apache-2.0
// Charges the time of each kernel of a compiled partition to nodes and tensors.
//
// Input:  the backend's report of a blob (npu/backend.h, blob_report), and times by kernel or by
//         node.
// Output: times by node, and by tensor for kernels that only exist because a tensor comes from or
//         goes to another device. A layout conversion at a boundary that is not one between devices
//         (a graph input, a result that another partition of the device reads) is charged to the
//         node that needs it.
//
// The report is untrusted: the time of a kernel with unknown names or undocumented members is
// charged to the partition as a whole. O(kernels + nodes).
#include "profile/step_attribution.hpp"

#include <algorithm>
#include <string>

#include "ops/op_catalogue.hpp"

namespace npu {
namespace {

double microseconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

class Attribution {
 public:
  Attribution(const Graph& graph, const Partition& partition)
      : graph_(graph), partition_(partition) {
    times_.node_us.assign(partition.nodes.size(), 0);
  }

  PartitionTimes by_step(const Json& steps, std::span<const std::uint64_t> ns) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double us = microseconds(ns[i]);
      if (!add_border(steps[i], us) && !add_nodes(steps[i], us)) times_.rest_us += us;
    }
    return std::move(times_);
  }

  PartitionTimes by_node(std::span<const std::uint64_t> ns) {
    for (std::size_t i = 0; i < ns.size(); ++i) times_.node_us[i] = microseconds(ns[i]);
    return std::move(times_);
  }

  PartitionTimes shared(double whole_us) {
    std::vector<std::size_t> all(partition_.nodes.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    share(all, whole_us);
    return std::move(times_);
  }

  std::vector<std::size_t> positions(const Json& step) const {
    std::vector<std::size_t> result;
    const auto add = [&](const Json& name) {
      const std::size_t at = position(name);
      if (at < partition_.nodes.size()) result.push_back(at);
    };
    if (const Json* nodes = find_member(step, "nodes"); nodes != nullptr && nodes->is_array()) {
      for (const Json& name : *nodes) add(name);
    }
    if (!result.empty()) return result;
    if (const Json* node = find_member(step, "node")) add(*node);
    return result;
  }

 private:
  /// Past the end if the partition has no node of this name.
  std::size_t position(const Json& name) const {
    if (!name.is_string()) return partition_.nodes.size();
    const NodeId id = graph_.find_node(name.get_ref<const std::string&>());
    const auto found = std::lower_bound(partition_.nodes.begin(), partition_.nodes.end(), id);
    if (found == partition_.nodes.end() || *found != id) return partition_.nodes.size();
    return static_cast<std::size_t>(found - partition_.nodes.begin());
  }

  bool elsewhere(NodeId node) const { return graph_.node(node).device != partition_.device; }

  bool add_border(const Json& step, double us) {
    for (const char* key : {"reads", "writes"}) {
      const Json* name = find_member(step, key);
      if (name == nullptr || !name->is_string()) continue;
      const TensorId id = graph_.find_tensor(name->get_ref<const std::string&>());
      if (!id.valid()) continue;
      const TensorInfo& tensor = graph_.tensor(id);
      if (tensor.kind != TensorKind::kResult) continue;
      if (*key == 'r') {
        if (!elsewhere(tensor.producer)) continue;
        times_.reads_us[id] += us;
      } else {
        if (std::none_of(tensor.consumers.begin(), tensor.consumers.end(),
                         [&](NodeId consumer) { return elsewhere(consumer); })) {
          continue;
        }
        times_.writes_us[id] += us;
      }
      return true;
    }
    return false;
  }

  bool add_nodes(const Json& step, double us) {
    const std::vector<std::size_t> nodes = positions(step);
    if (nodes.empty()) return false;
    share(nodes, us);
    return true;
  }

  void share(const std::vector<std::size_t>& nodes, double us) {
    const auto node = [&](std::size_t i) -> const Node& {
      return graph_.node(partition_.nodes[nodes[i]]);
    };
    std::vector<double> work(nodes.size());
    double sum = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) sum += work[i] = node_flops(graph_, node(i));
    if (!(sum > 0)) {
      for (std::size_t i = 0; i < nodes.size(); ++i) sum += work[i] = node_bytes(graph_, node(i));
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const double part = sum > 0 ? work[i] / sum : 1 / static_cast<double>(nodes.size());
      times_.node_us[nodes[i]] += us * part;
    }
  }

  const Graph& graph_;
  const Partition& partition_;
  PartitionTimes times_;
};

const Json* steps_of(const Json& report) {
  const Json* steps = find_member(report, "steps");
  return steps != nullptr && steps->is_array() ? steps : nullptr;
}

double sum_of(const PartitionTimes& times) {
  double sum = times.rest_us;
  for (const double us : times.node_us) sum += us;
  for (const auto* borders : {&times.reads_us, &times.writes_us}) {
    for (const auto& [tensor, us] : *borders) sum += us;
  }
  return sum;
}

}  // namespace

PartitionTimes attribute_times(const Graph& graph, const Partition& partition, const Json& report,
                               std::span<const std::uint64_t> step_ns,
                               std::span<const std::uint64_t> node_ns, double whole_us) {
  Attribution attribution(graph, partition);
  PartitionTimes times;
  const Json* steps = steps_of(report);
  if (steps != nullptr && !step_ns.empty() && step_ns.size() == steps->size()) {
    times = attribution.by_step(*steps, step_ns);
  } else if (!node_ns.empty() && node_ns.size() == partition.nodes.size()) {
    times = attribution.by_node(node_ns);
  } else {
    return attribution.shared(whole_us);
  }
  times.rest_us += std::max(0.0, whole_us - sum_of(times));
  return times;
}

std::vector<NodeId> kernels_of_nodes(const Graph& graph, const Partition& partition,
                                     const Json& report) {
  std::vector<NodeId> first = partition.nodes;
  const Json* steps = steps_of(report);
  if (steps == nullptr) return first;
  const Attribution attribution(graph, partition);
  for (const Json& step : *steps) {
    const std::vector<std::size_t> nodes = attribution.positions(step);
    if (nodes.size() < 2) continue;
    for (const std::size_t i : nodes) first[i] = partition.nodes[nodes.front()];
  }
  return first;
}

}  // namespace npu
