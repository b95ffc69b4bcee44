// SPDX-License-Identifier: Apache-2.0
// Turns measured placements into one table whose entries add up to each of them.
//
// A node's time on a device comes from the placement in which the device has all nodes that it can
// run: there the node is beside its neighbours, fused and in their layout as far as possible. If it
// takes longer in another placement, where an operand comes from another device (and is cold, or in
// memory that an op must not overwrite), the difference belongs to the border: it is paid only if
// the tensor crosses. So does the rest of a placement's time. Tensors that never crossed get their
// time from a line fitted to those that did, or to plain copies. The first placement in which a
// tensor crosses fixes its time. O(placements * (nodes + tensors)).
#include "profile/node_table_builder.hpp"

#include <algorithm>
#include <map>

#include "cost/measured_cost.hpp"
#include "npu/partition/metrics.hpp"
#include "profile/step_attribution.hpp"

namespace npu {
namespace {

std::size_t index_of(std::int32_t value) { return static_cast<std::size_t>(value); }

constexpr double kSmallBytes = 4096;
constexpr double kClearly = 0.03;  // of the whole time: more than a machine's noise

}  // namespace

/// Least squares of the errors per byte.
LinkFit fitted(std::string from, std::string to, const std::vector<CopySample>& samples) {
  LinkFit fit{.from = std::move(from),
              .to = std::move(to),
              .latency_us = 0,
              .bytes_per_s = 0,
              .samples = static_cast<std::int32_t>(samples.size())};
  double w = 0;
  double wb = 0;
  double wbb = 0;
  double wu = 0;
  double wbu = 0;
  for (const CopySample& sample : samples) {
    const double weight = 1 / ((sample.bytes + kSmallBytes) * (sample.bytes + kSmallBytes));
    w += weight;
    wb += weight * sample.bytes;
    wbb += weight * sample.bytes * sample.bytes;
    wu += weight * sample.us;
    wbu += weight * sample.bytes * sample.us;
  }
  if (!(w > 0)) return fit;
  const double determinant = w * wbb - wb * wb;
  double slope = determinant > 1e-9 * w * wbb ? (w * wbu - wb * wu) / determinant : 0;
  double latency = (wu - slope * wb) / w;
  if (slope < 0) {
    slope = 0;
    latency = wu / w;
  } else if (latency < 0) {
    latency = 0;
    slope = wbb > 0 ? wbu / wbb : 0;
  }
  fit.latency_us = latency;
  fit.bytes_per_s = slope > 0 ? std::min(1e6 / slope, 1e18) : 0;
  return fit;
}

namespace {

class Builder {
 public:
  Builder(const std::vector<MeasuredPlacement>& placements, const std::vector<CopySample>& copies,
          const Target& target, NodeTable& table)
      : placements_(placements), copies_(copies), target_(target), table_(table) {}

  void build() {
    add_starts();
    add_nodes();
    add_borders();
    add_links();
    add_placements();
  }

 private:
  using Row = std::map<std::string, MeasuredTime>;  // by device

  void add_starts() {
    for (NodeTableDevice& device : table_.devices) {
      double sum = 0;
      double count = 0;
      for (const MeasuredPlacement& placement : placements_) {
        const auto found = placement.summary.start_us.find(device.name);
        if (found == placement.summary.start_us.end()) continue;
        const auto partitions = static_cast<double>(
            std::count_if(placement.plan->partitions.begin(), placement.plan->partitions.end(),
                          [&](const Partition& p) { return p.device == device.name; }));
        sum += found->second * partitions;
        count += partitions;
      }
      device.partition_us = count > 0 ? sum / count : 0;
    }
  }

  void add_nodes() {
    const std::size_t nodes = placements_.front().graph->nodes().size();
    base_.assign(nodes, {});
    std::vector<std::map<std::string, NodeId>> kernels(nodes);
    for (const bool only_base : {true, false}) {
      for (const MeasuredPlacement& placement : placements_) {
        for (std::size_t p = 0; p < placement.plan->partitions.size(); ++p) {
          const Partition& partition = placement.plan->partitions[p];
          if (only_base && placement.base_of != partition.device) continue;
          const std::vector<NodeId> first =
              kernels_of_nodes(*placement.graph, partition, *(*placement.partitions)[p].report);
          for (std::size_t i = 0; i < partition.nodes.size(); ++i) {
            const std::size_t n = index_of(partition.nodes[i].value);
            const bool is_new =
                base_[n].emplace(partition.device, placement.summary.nodes[n]).second;
            if (is_new) kernels[n].emplace(partition.device, first[i]);
          }
        }
      }
    }
    const Graph& graph = *placements_.front().graph;
    for (std::size_t n = 0; n < nodes; ++n) {
      for (const NodeTableDevice& device : table_.devices) {
        const auto found = base_[n].find(device.name);
        if (found == base_[n].end()) continue;
        const NodeId first = kernels[n].at(device.name);
        table_.nodes.push_back(
            {.node = graph.nodes()[n].name,
             .device = device.name,
             .time = found->second,
             .kernel = index_of(first.value) == n ? std::string() : graph.node(first).name});
      }
    }
  }

  using BorderKey = std::pair<TensorId, std::pair<std::string, std::string>>;  // from, to

  // One placement after the other: each gives the times of tensors that crossed in none before it,
  // with the others' times fixed. So the table predicts every placement as it was measured.
  void add_borders() {
    std::map<BorderKey, BorderTime> known;
    for (const MeasuredPlacement& placement : placements_) {
      std::map<BorderKey, BorderTime> fresh;
      std::vector<BorderTime*> seen;
      for (const auto& [crossing, time] : placement.summary.borders) {
        const TensorInfo& tensor = placement.graph->tensor(crossing.first);
        if (!tensor.producer.valid()) continue;
        const std::string& from = *placement.graph->node(tensor.producer).device;
        if (from == crossing.second) continue;
        const BorderKey key{crossing.first, {from, crossing.second}};
        if (const auto found = known.find(key); found != known.end()) {
          found->second.time.runs += time.runs;
          seen.push_back(&found->second);
        } else {
          fresh.emplace(key, BorderTime{tensor.name, from, crossing.second, tensor.bytes(), time});
        }
      }
      add_excess(placement, fresh);
      add_rest(placement, fresh, seen);
      known.merge(fresh);
    }
    for (auto& [key, entry] : known) table_.borders.push_back(std::move(entry));
  }

  const MeasuredTime& base_of(const MeasuredPlacement& placement, std::size_t n) const {
    const auto base = base_[n].find(*placement.graph->nodes()[n].device);
    return base == base_[n].end() ? placement.summary.nodes[n] : base->second;
  }

  // The extra time of nodes after a border goes to the tensors that they read across it, by bytes.
  void add_excess(const MeasuredPlacement& placement, std::map<BorderKey, BorderTime>& borders) {
    const Graph& graph = *placement.graph;
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const Node& node = graph.nodes()[n];
      const MeasuredTime& base = base_of(placement, n);
      const MeasuredTime& here = placement.summary.nodes[n];
      // Differences within the noise would add up over many borders.
      const double excess = here.us - base.us;
      if (excess <= std::max(here.mad_us, base.mad_us)) continue;
      std::vector<BorderTime*> crossed;
      double bytes = 0;
      for (const TensorId id : node.inputs) {
        const NodeId producer = graph.tensor(id).producer;
        if (!producer.valid()) continue;
        const auto border = borders.find({id, {*graph.node(producer).device, *node.device}});
        if (border == borders.end()) continue;
        crossed.push_back(&border->second);
        bytes += weight(border->second);
      }
      for (BorderTime* border : crossed) border->time.us += excess * weight(*border) / bytes;
    }
  }

  // The remaining time of the whole, positive or negative, goes to the borders by their bytes: even
  // nodes that read nothing across a border find caches filled by the other device's kernels. If
  // all borders were known before, that happens only if the placement takes clearly longer than
  // predicted: rather predict a placement too slow than one that is not as fast as it seems.
  void add_rest(const MeasuredPlacement& placement, std::map<BorderKey, BorderTime>& fresh,
                const std::vector<BorderTime*>& seen) {
    double rest = placement.summary.whole.us;
    for (const Partition& partition : placement.plan->partitions) {
      rest -= table_.devices[index_of(table_.find_device(partition.device))].partition_us;
    }
    for (std::size_t n = 0; n < base_.size(); ++n) rest -= base_of(placement, n).us;
    for (const BorderTime* border : seen) rest -= border->time.us;
    double bytes = 0;
    for (const auto& [key, border] : fresh) {
      rest -= border.time.us;
      bytes += weight(border);
    }
    for (auto& [key, border] : fresh) {
      // The copy and the layout conversions take time, whatever the noise of the whole.
      const double least = placement.summary.borders.at({key.first, border.to}).us / 2;
      border.time.us = std::max(least, border.time.us + rest * weight(border) / bytes);
    }
    if (!fresh.empty() || rest < kClearly * placement.summary.whole.us) return;
    for (const BorderTime* border : seen) bytes += weight(*border);
    for (BorderTime* border : seen) border->time.us += rest * weight(*border) / bytes;
  }

  static double weight(const BorderTime& border) { return static_cast<double>(border.bytes) + 1; }

  void add_links() {
    for (const NodeTableDevice& from : table_.devices) {
      for (const NodeTableDevice& to : table_.devices) {
        if (from.name == to.name) continue;
        std::vector<CopySample> samples;
        for (const BorderTime& border : table_.borders) {
          if (border.from != from.name || border.to != to.name) continue;
          samples.push_back(
              {from.name, to.name, static_cast<double>(border.bytes), border.time.us});
        }
        if (samples.empty()) {
          for (const CopySample& copy : copies_) {
            if (copy.from == from.name && copy.to == to.name) samples.push_back(copy);
          }
        }
        if (!samples.empty()) table_.links.push_back(fitted(from.name, to.name, samples));
      }
    }
  }

  void add_placements() {
    const MeasuredCost cost(table_, *placements_.front().graph, target_);
    for (const MeasuredPlacement& placement : placements_) {
      const PlanMetrics metrics = plan_metrics(*placement.graph, *placement.plan, target_, cost);
      table_.placements.push_back({.name = placement.name,
                                   .partitions = metrics.partitions,
                                   .copied_tensors = metrics.copied_tensors,
                                   .predicted_us = metrics.predicted_us,
                                   .time = placement.summary.whole});
    }
  }

  const std::vector<MeasuredPlacement>& placements_;
  const std::vector<CopySample>& copies_;
  const Target& target_;
  NodeTable& table_;
  std::vector<Row> base_;  // by node
};

}  // namespace

void build_node_table(const std::vector<MeasuredPlacement>& placements,
                      const std::vector<CopySample>& copies, const Target& target,
                      NodeTable& table) {
  Builder(placements, copies, target, table).build();
}

}  // namespace npu
