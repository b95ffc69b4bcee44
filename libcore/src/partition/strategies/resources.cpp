// SPDX-License-Identifier: Apache-2.0
// The resources strategy: partitions that fit into a device's on-chip memory, with the least
// traffic between them.
//
// A partition is an interval of a topological order of the fused nodes (fusion groups, or single
// nodes), all on one device. Its working set is the peak of the memory that is live at once: a live
// range extends from where a tensor is produced or first read to its last reader inside. Inside a
// fused node nothing is stored; a view stands for the memory that it views. The limits are the
// device's on_chip_bytes and max_partition_flops; a fused node that exceeds one by itself becomes a
// separate partition, and the report says how to tile it.
//
// Every interval that fits is considered: as the end of the interval moves on by one node, the cost
// of all starts changes by range additions, so a range-minimum tree finds the best start. Working
// sets never shrink when an interval grows, so the first start that fits only moves forward. Exact
// for the given order; O((nodes + edges) log nodes). The order itself is not optimised, and halos
// of tiles are ignored. First fit, which adds up sizes without reuse, is computed for comparison.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "npu/partition/strategies.hpp"
#include "npu/support/ids.hpp"
#include "partition/fused_graph.hpp"
#include "partition/plan_builder.hpp"
#include "partition/strategies/memory_timeline.hpp"
#include "partition/strategies/tiling_advice.hpp"

namespace npu {
namespace {

/// Range additions and range minima of (bytes, partitions) pairs; the first of equal ones wins.
class CostTree {
 public:
  struct Cost {
    double bytes = std::numeric_limits<double>::infinity();
    std::int32_t partitions = 0;
    std::int32_t at = -1;
    bool operator<(const Cost& other) const {
      if (bytes != other.bytes) return bytes < other.bytes;
      if (partitions != other.partitions) return partitions < other.partitions;
      return at < other.at;
    }
  };

  explicit CostTree(std::size_t size) {
    while (leaves_ < size) leaves_ *= 2;
    least_.resize(2 * leaves_);
    added_.assign(2 * leaves_, 0);
  }
  void set(std::int32_t at, Cost cost) {
    cost.at = at;
    std::size_t v = leaves_ + index_of(at);
    for (std::size_t above = v / 2; above > 0; above /= 2) cost.bytes -= added_[above];
    least_[v] = cost;
    for (v /= 2; v > 0; v /= 2) pull(v);
  }
  void add(std::int32_t first, std::int32_t last, double bytes) {
    if (first <= last && bytes != 0) add(1, 0, leaves_, index_of(first), index_of(last) + 1, bytes);
  }
  Cost least(std::int32_t first, std::int32_t last) const {
    return least(1, 0, leaves_, index_of(first), index_of(last) + 1);
  }

 private:
  void pull(std::size_t v) {
    least_[v] = std::min(least_[2 * v], least_[2 * v + 1]);
    least_[v].bytes += added_[v];
  }
  void add(std::size_t v, std::size_t low, std::size_t high, std::size_t first, std::size_t end,
           double bytes) {
    if (first >= high || end <= low) return;
    if (first <= low && high <= end) {
      least_[v].bytes += bytes;
      added_[v] += bytes;
      return;
    }
    const std::size_t middle = (low + high) / 2;
    add(2 * v, low, middle, first, end, bytes);
    add(2 * v + 1, middle, high, first, end, bytes);
    pull(v);
  }
  Cost least(std::size_t v, std::size_t low, std::size_t high, std::size_t first,
             std::size_t end) const {
    if (first >= high || end <= low) return {};
    if (first <= low && high <= end) return least_[v];
    const std::size_t middle = (low + high) / 2;
    Cost best =
        std::min(least(2 * v, low, middle, first, end), least(2 * v + 1, middle, high, first, end));
    best.bytes += added_[v];
    return best;
  }

  std::size_t leaves_ = 1;
  std::vector<Cost> least_;
  std::vector<double> added_;
};

/// Working sets of intervals whose ends only move forward. at(t) is the memory that is live while
/// fused node t runs: what it touches, and what was touched before and will be again.
class WorkingSet {
 public:
  WorkingSet(const Timeline& line) : line_(line) {
    while (leaves_ < line.order.size()) leaves_ *= 2;
    most_.assign(2 * leaves_, 0);
    added_.assign(2 * leaves_, 0);
    previous_.assign(line.storages.size(), -1);
    next_touch_.resize(line.order.size());
  }

  void push(std::int32_t p) {
    add(p, p, line_.own_bytes[index_of(p)]);
    next_touch_[index_of(p)].assign(line_.touches[index_of(p)].size(), -1);
    for (std::size_t i = 0; i < line_.touches[index_of(p)].size(); ++i) {
      const std::int32_t s = line_.touches[index_of(p)][i].storage;
      const std::int32_t before = previous_[index_of(s)];
      if (before >= 0) {
        const auto& touches = line_.touches[index_of(before)];
        for (std::size_t k = 0; k < touches.size(); ++k) {
          if (touches[k].storage == s) next_touch_[index_of(before)][k] = p;
        }
        if (before >= first_) add(before + 1, p - 1, line_.storages[index_of(s)].bytes);
      }
      previous_[index_of(s)] = p;
    }
    end_ = p + 1;
  }
  // Removes the first fused node.
  void pop() {
    const auto& touches = line_.touches[index_of(first_)];
    for (std::size_t k = 0; k < touches.size(); ++k) {
      const std::int32_t next = next_touch_[index_of(first_)][k];
      if (next >= 0) {
        add(first_ + 1, next - 1, -line_.storages[index_of(touches[k].storage)].bytes);
      }
    }
    add(first_, first_, -line_.own_bytes[index_of(first_)]);
    ++first_;
  }
  double bytes() const { return most_[1]; }
  std::int32_t first() const { return first_; }

 private:
  void add(std::int32_t first, std::int32_t last, double bytes) {
    if (first <= last && bytes != 0) add(1, 0, leaves_, index_of(first), index_of(last) + 1, bytes);
  }
  void add(std::size_t v, std::size_t low, std::size_t high, std::size_t first, std::size_t end,
           double bytes) {
    if (first >= high || end <= low) return;
    if (first <= low && high <= end) {
      most_[v] += bytes;
      added_[v] += bytes;
      return;
    }
    const std::size_t middle = (low + high) / 2;
    add(2 * v, low, middle, first, end, bytes);
    add(2 * v + 1, middle, high, first, end, bytes);
    most_[v] = std::max(most_[2 * v], most_[2 * v + 1]) + added_[v];
  }

  const Timeline& line_;
  std::size_t leaves_ = 1;
  std::vector<double> most_;
  std::vector<double> added_;
  std::vector<std::int32_t> previous_;  // by storage: where it was touched last
  std::vector<std::vector<std::int32_t>> next_touch_;
  std::int32_t first_ = 0;
  std::int32_t end_ = 0;
};

struct Limits {
  double bytes = std::numeric_limits<double>::infinity();
  double flops = std::numeric_limits<double>::infinity();
};

Limits limits_of(const Device& device) {
  Limits limits;
  if (device.on_chip_bytes > 0) limits.bytes = static_cast<double>(device.on_chip_bytes);
  if (device.max_partition_flops > 0) limits.flops = device.max_partition_flops;
  return limits;
}

/// Splits [0, n) into intervals, by their first positions.
using Cuts = std::vector<std::int32_t>;

class Splitter {
 public:
  Splitter(const Graph& graph, const FusedGraph& fused, const Target& target)
      : line(graph, fused), fused_(fused) {
    for (const std::string& name : fused.device_names) {
      limits_.push_back(limits_of(*target.find_device(name)));
    }
  }

  std::int32_t size() const { return static_cast<std::int32_t>(line.order.size()); }
  std::int32_t device(std::int32_t p) const {
    return fused_.device[index_of(line.order[index_of(p)])];
  }
  const Limits& limits(std::int32_t p) const { return limits_[index_of(device(p))]; }
  bool oversize(std::int32_t p) const {
    return line.own_bytes[index_of(p)] > limits(p).bytes ||
           line.flops[index_of(p)] > limits(p).flops;
  }

  Cuts best() const {
    const std::int32_t n = size();
    CostTree tree(static_cast<std::size_t>(n) + 1);
    WorkingSet alive(line);
    std::vector<CostTree::Cost> best(static_cast<std::size_t>(n) + 1);
    std::vector<std::int32_t> touched(line.storages.size(), -1);
    best[0] = {0, 0, -1};
    double flops = 0;
    std::int32_t barrier = 0;  // no interval begins before it
    for (std::int32_t p = 0; p < n; ++p) {
      tree.set(p, {best[index_of(p)].bytes, best[index_of(p)].partitions + 1, p});
      price(p, touched, tree);
      if (p > 0 && (device(p) != device(p - 1) || oversize(p) || oversize(p - 1))) barrier = p;
      alive.push(p);
      flops += line.flops[index_of(p)];
      while (alive.first() < p && (alive.first() < barrier || alive.bytes() > limits(p).bytes ||
                                   flops > limits(p).flops)) {
        flops -= line.flops[index_of(alive.first())];
        alive.pop();
      }
      best[index_of(p) + 1] = tree.least(alive.first(), p);
    }
    Cuts cuts;
    for (std::int32_t end = n; end > 0; end = best[index_of(end)].at) {
      cuts.push_back(best[index_of(end)].at);
    }
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  }

  // Adds up sizes and starts a new partition when the sum exceeds a limit.
  Cuts first_fit() const {
    Cuts cuts;
    double bytes = 0;
    double flops = 0;
    for (std::int32_t p = 0; p < size(); ++p) {
      const bool starts = cuts.empty() || device(p) != device(p - 1) ||
                          bytes + line.own_bytes[index_of(p)] > limits(p).bytes ||
                          flops + line.flops[index_of(p)] > limits(p).flops;
      if (starts) {
        cuts.push_back(p);
        bytes = flops = 0;
      }
      bytes += line.own_bytes[index_of(p)];
      flops += line.flops[index_of(p)];
    }
    return cuts;
  }

  // Bytes of activations that the intervals read and write.
  double traffic(const Cuts& cuts) const {
    double bytes = 0;
    std::vector<std::int32_t> read_in(line.storages.size(), -1);
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      const std::int32_t end = c + 1 < cuts.size() ? cuts[c + 1] : size();
      for (std::int32_t p = cuts[c]; p < end; ++p) {
        for (const Touch& touch : line.touches[index_of(p)]) {
          const Storage& storage = line.storages[index_of(touch.storage)];
          if (storage.weight) continue;
          if (touch.writes) {
            if (storage.leaves || storage.last_use >= end) bytes += storage.bytes;
          } else if (storage.made_at < cuts[c] &&
                     read_in[index_of(touch.storage)] != static_cast<std::int32_t>(c)) {
            read_in[index_of(touch.storage)] = static_cast<std::int32_t>(c);
            bytes += storage.bytes;
          }
        }
      }
    }
    return bytes;
  }

  std::vector<double> working_sets(const Cuts& cuts) const {
    std::vector<double> sets;
    WorkingSet alive(line);
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      while (alive.first() < cuts[c]) alive.pop();
      const std::int32_t end = c + 1 < cuts.size() ? cuts[c + 1] : size();
      for (std::int32_t p = cuts[c]; p < end; ++p) alive.push(p);
      sets.push_back(alive.bytes());
    }
    return sets;
  }

  const Timeline line;

 private:
  // Adds what fused node p contributes to the traffic of every interval that ends with it.
  void price(std::int32_t p, std::vector<std::int32_t>& touched, CostTree& tree) const {
    for (const Touch& touch : line.touches[index_of(p)]) {
      const Storage& storage = line.storages[index_of(touch.storage)];
      if (storage.weight) continue;
      std::int32_t& before = touched[index_of(touch.storage)];
      if (touch.writes) {
        tree.add(0, p, storage.bytes);  // written out until its last reader is inside
      } else {
        tree.add(before + 1, p, storage.bytes);  // read in if nothing inside touched it yet
        if (storage.last_use == p && !storage.leaves) tree.add(0, storage.made_at, -storage.bytes);
      }
      before = p;
    }
  }

  const FusedGraph& fused_;
  std::vector<Limits> limits_;
};

std::vector<ResourcesFacts::Oversize> find_oversize(const Graph& graph, const FusedGraph& fused,
                                                    const Splitter& splitter) {
  std::vector<ResourcesFacts::Oversize> result;
  BoundaryFinder boundaries(graph);
  for (std::int32_t p = 0; p < splitter.size(); ++p) {
    if (!splitter.oversize(p)) continue;
    const auto members = fused.members[index_of(splitter.line.order[index_of(p)])];
    ResourcesFacts::Oversize& entry = result.emplace_back();
    entry.nodes.assign(members.begin(), members.end());
    entry.device = fused.device_names[index_of(splitter.device(p))];
    entry.bytes = splitter.line.own_bytes[index_of(p)];
    entry.limit = splitter.limits(p).bytes;
    entry.breaks_memory = entry.bytes > entry.limit;
    if (entry.breaks_memory) {
      entry.tiles = advise_tiling(graph, boundaries, entry.nodes, entry.limit);
    }
  }
  return result;
}

}  // namespace

StrategyOutcome partition_resources(Graph& graph, const Target& target, const PartitionOptions&,
                                    Diagnostics& diagnostics) {
  const FusedGraph fused = build_fused_graph(graph);
  const bool limited =
      std::any_of(target.devices.begin(), target.devices.end(),
                  [](const Device& d) { return d.on_chip_bytes > 0 || d.max_partition_flops > 0; });
  if (!limited) {
    diagnostics.warning({}, "no device of target '" + target.name +
                                "' has on_chip_bytes or max_partition_flops, so nothing limits the "
                                "partitions of --strategy resources");
  }
  const Splitter splitter(graph, fused, target);
  const Cuts cuts = splitter.best();
  const Cuts naive = splitter.first_fit();
  StrategyOutcome outcome;
  outcome.plan.strategy = "resources";
  for (std::size_t c = 0; c < cuts.size(); ++c) {
    const std::int32_t end = c + 1 < cuts.size() ? cuts[c + 1] : splitter.size();
    Partition& partition = outcome.plan.partitions.emplace_back();
    partition.device = fused.device_names[index_of(splitter.device(cuts[c]))];
    for (std::int32_t p = cuts[c]; p < end; ++p) {
      const auto members = fused.members[index_of(splitter.line.order[index_of(p)])];
      partition.nodes.insert(partition.nodes.end(), members.begin(), members.end());
    }
    std::sort(partition.nodes.begin(), partition.nodes.end());
  }
  connect_partitions(graph, outcome.plan);
  const auto split = [&](const Cuts& at) {
    return ResourcesFacts::Split{static_cast<std::int64_t>(at.size()), splitter.traffic(at)};
  };
  outcome.facts = ResourcesFacts{.split = split(cuts),
                                 .first_fit = split(naive),
                                 .working_sets = splitter.working_sets(cuts),
                                 .oversize = find_oversize(graph, fused, splitter)};
  return outcome;
}

}  // namespace npu
