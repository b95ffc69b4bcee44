// SPDX-License-Identifier: Apache-2.0
// The metis strategy: k parts of about equal work with few bytes between them, which can run one
// after another.
//
// METIS cuts the graph of units (fusion groups), weighted with FLOPs and with the bytes of the
// tensors between them, but knows no direction: parts of its result usually wait for each other in
// a circle. The repair puts the parts in line by where their units stand in the graph, then moves
// units until no tensor runs against the line, in both directions of pushing. Another start cuts a
// topological order where the fewest bytes cross, by dynamic programming with the balance as a
// window. From each start, units at the borders move while that saves bytes and keeps line and
// balance (as Moreira, Popp and Schulz, "Evolutionary multi-level acyclic graph partitioning",
// 2018, do), and the best result is kept. Devices stay as they are tagged: a part with nodes of
// several devices becomes several partitions, by waves within the part. O((units + arcs) * (k +
// rounds)).
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>

#include "npu/graph/metis_partitioner.hpp"
#include "npu/ops/op_catalogue.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/support/checked.hpp"
#include "npu/support/text.hpp"
#include "partition/plan_builder.hpp"
#include "partition/unit_graph.hpp"
#include "partition/waves.hpp"

namespace npu {
namespace {

constexpr int kMostRounds = 30;

std::size_t index_of(std::int32_t value) { return static_cast<std::size_t>(value); }

/// A part for every unit.
using Parts = std::vector<std::int32_t>;

/// What the parts are made of.
struct WorkGraph {
  struct Tensor {
    std::int64_t bytes = 0;
    std::int32_t producer = 0;
    std::vector<std::int32_t> readers;  // other units, each once
  };
  std::vector<std::int64_t> work;  // by unit
  std::int64_t total = 0;
  std::vector<Tensor> tensors;
  std::vector<std::vector<std::int32_t>> touched;  // tensors, by unit
  std::vector<std::vector<std::int32_t>> predecessors;
  std::vector<std::int32_t> order;     // topological, as close to the list as that can be
  std::vector<std::int32_t> position;  // by unit
};

/// Topological, always the unit that stands first in the list next.
std::vector<std::int32_t> list_order(const UnitGraph& units) {
  std::vector<std::int32_t> waiting = units.predecessor_count;
  std::vector<std::int32_t> heap;
  const auto later = std::greater<>();
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (waiting[u] == 0) heap.push_back(static_cast<std::int32_t>(u));
  }
  std::make_heap(heap.begin(), heap.end(), later);
  std::vector<std::int32_t> order;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const std::int32_t unit = heap.back();
    heap.pop_back();
    order.push_back(unit);
    for (const std::int32_t next : units.successors(unit)) {
      if (--waiting[index_of(next)] != 0) continue;
      heap.push_back(next);
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
  return order;
}

WorkGraph weigh(const Graph& graph, const UnitGraph& units) {
  WorkGraph result;
  result.work.assign(units.size(), 0);
  std::vector<double> flops(units.size(), 0);
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const NodeId id : units.members[u]) flops[u] += node_flops(graph, graph.node(id));
  }
  const double sum = std::accumulate(flops.begin(), flops.end(), 0.0);
  for (std::size_t u = 0; u < units.size(); ++u) {
    // Without any arithmetic every node counts the same.
    result.work[u] = sum > 0 ? saturating_integer(flops[u] * std::min(1.0, 0x1p60 / sum))
                             : static_cast<std::int64_t>(units.members[u].size());
    result.total += result.work[u];
  }
  result.touched.resize(units.size());
  result.predecessors.resize(units.size());
  std::vector<std::int32_t> seen(units.size(), -1);
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const TensorInfo& info = graph.tensors()[t];
    if (!info.producer.valid()) continue;
    WorkGraph::Tensor tensor{.bytes = std::min(info.bytes(), std::int64_t{1} << 50),
                             .producer = units.unit_of[index_of(info.producer.value)],
                             .readers = {}};
    seen[index_of(tensor.producer)] = static_cast<std::int32_t>(t);
    for (const NodeId consumer : info.consumers) {
      const std::int32_t reader = units.unit_of[index_of(consumer.value)];
      if (seen[index_of(reader)] == static_cast<std::int32_t>(t)) continue;
      seen[index_of(reader)] = static_cast<std::int32_t>(t);
      tensor.readers.push_back(reader);
    }
    if (tensor.readers.empty()) continue;
    const auto index = static_cast<std::int32_t>(result.tensors.size());
    result.touched[index_of(tensor.producer)].push_back(index);
    for (const std::int32_t reader : tensor.readers) {
      result.touched[index_of(reader)].push_back(index);
    }
    result.tensors.push_back(std::move(tensor));
  }
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const std::int32_t next : units.successors(static_cast<std::int32_t>(u))) {
      result.predecessors[index_of(next)].push_back(static_cast<std::int32_t>(u));
    }
  }
  result.order = list_order(units);
  result.position.resize(units.size());
  for (std::size_t i = 0; i < result.order.size(); ++i) {
    result.position[index_of(result.order[i])] = static_cast<std::int32_t>(i);
  }
  return result;
}

/// Bytes between parts, each tensor once for each part that reads it from outside. `seen` is as
/// long as there are parts, and zero.
std::int64_t tensor_cut(const WorkGraph::Tensor& tensor, const Parts& parts,
                        std::vector<char>& seen) {
  std::int64_t cut = 0;
  const std::int32_t own = parts[index_of(tensor.producer)];
  for (const std::int32_t reader : tensor.readers) {
    const std::int32_t part = parts[index_of(reader)];
    if (part == own || seen[index_of(part)] != 0) continue;
    seen[index_of(part)] = 1;
    cut += tensor.bytes;
  }
  for (const std::int32_t reader : tensor.readers) seen[index_of(parts[index_of(reader)])] = 0;
  return cut;
}

std::int64_t cut_of(const WorkGraph& graph, const Parts& parts, std::int32_t k) {
  std::int64_t cut = 0;
  std::vector<char> seen(index_of(k), 0);
  for (const WorkGraph::Tensor& tensor : graph.tensors) {
    cut = saturating_add(cut, tensor_cut(tensor, parts, seen));
  }
  return cut;
}

std::vector<std::int64_t> loads_of(const WorkGraph& graph, const Parts& parts, std::int32_t k) {
  std::vector<std::int64_t> loads(index_of(k), 0);
  for (std::size_t u = 0; u < parts.size(); ++u) loads[index_of(parts[u])] += graph.work[u];
  return loads;
}

/// Heaviest part above the mean, as a share of it.
double imbalance_of_parts(const WorkGraph& graph, const Parts& parts, std::int32_t k) {
  const auto loads = loads_of(graph, parts, k);
  const double mean = static_cast<double>(graph.total) / k;
  return mean > 0 ? static_cast<double>(*std::max_element(loads.begin(), loads.end())) / mean - 1
                  : 0;
}

/// METIS's parts, without regard to direction, in line by the mean place of their units.
Parts metis_parts(const UnitGraph& units, const WorkGraph& graph, const PartitionOptions& options) {
  std::vector<WeightedEdge> edges;
  for (const WorkGraph::Tensor& tensor : graph.tensors) {
    for (const std::int32_t reader : tensor.readers) {
      edges.push_back({tensor.producer, reader, std::max<std::int64_t>(tensor.bytes, 1)});
    }
  }
  CsrGraph csr = build_undirected_graph(static_cast<std::int32_t>(units.size()), edges);
  csr.node_weights = graph.work;
  MetisOptions metis;
  metis.part_count = options.parts;
  metis.max_imbalance = {1 + options.imbalance};
  metis.seed = options.seed;
  metis.seed_count = 4;
  const GraphPartition result = partition_with_metis(csr, metis);
  std::vector<double> place(index_of(options.parts), 0);
  std::vector<double> count(index_of(options.parts), 0);
  for (std::size_t u = 0; u < units.size(); ++u) {
    place[index_of(result.part_of[u])] += graph.position[u];
    count[index_of(result.part_of[u])] += 1;
  }
  std::vector<std::int32_t> line(index_of(options.parts));
  std::iota(line.begin(), line.end(), 0);
  std::stable_sort(line.begin(), line.end(), [&](std::int32_t a, std::int32_t b) {
    return place[index_of(a)] * count[index_of(b)] < place[index_of(b)] * count[index_of(a)];
  });
  std::vector<std::int32_t> rank(line.size());
  for (std::size_t i = 0; i < line.size(); ++i)
    rank[index_of(line[i])] = static_cast<std::int32_t>(i);
  Parts parts;
  for (const std::int32_t part : result.part_of) parts.push_back(rank[index_of(part)]);
  return parts;
}

bool runs_against_line(const WorkGraph& graph, const Parts& parts) {
  for (const WorkGraph::Tensor& tensor : graph.tensors) {
    for (const std::int32_t reader : tensor.readers) {
      if (parts[index_of(reader)] < parts[index_of(tensor.producer)]) return true;
    }
  }
  return false;
}

/// Every unit behind what it reads.
Parts pushed_down(const UnitGraph& units, const WorkGraph& graph, Parts parts) {
  for (const std::int32_t unit : graph.order) {
    for (const std::int32_t next : units.successors(unit)) {
      parts[index_of(next)] = std::max(parts[index_of(next)], parts[index_of(unit)]);
    }
  }
  return parts;
}

/// Every unit in front of what reads it.
Parts pushed_up(const WorkGraph& graph, Parts parts) {
  for (std::size_t i = graph.order.size(); i-- > 0;) {
    const std::int32_t unit = graph.order[i];
    for (const std::int32_t before : graph.predecessors[index_of(unit)]) {
      parts[index_of(before)] = std::min(parts[index_of(before)], parts[index_of(unit)]);
    }
  }
  return parts;
}

/// The list cut where the shares of the work are full: what a plain split does.
Parts plain_split(const WorkGraph& graph, std::int32_t k) {
  Parts parts(graph.order.size());
  std::int64_t before = 0;
  for (const std::int32_t unit : graph.order) {
    const double middle =
        static_cast<double>(before) + static_cast<double>(graph.work[index_of(unit)]) / 2;
    const double share = graph.total > 0 ? middle / static_cast<double>(graph.total) : 0;
    parts[index_of(unit)] = std::min(k - 1, static_cast<std::int32_t>(share * k));
    before += graph.work[index_of(unit)];
  }
  return parts;
}

/// The order cut into k runs within the limit at places where the fewest bytes cross in sum.
std::optional<Parts> cheapest_split(const WorkGraph& graph, std::int32_t k, std::int64_t limit) {
  const std::size_t count = graph.order.size();
  std::vector<std::int64_t> crossing(count + 1, 0);  // bytes that are needed behind place i
  for (const WorkGraph::Tensor& tensor : graph.tensors) {
    const std::int32_t from = graph.position[index_of(tensor.producer)];
    std::int32_t last = from;
    for (const std::int32_t reader : tensor.readers) {
      last = std::max(last, graph.position[index_of(reader)]);
    }
    crossing[index_of(from) + 1] += tensor.bytes;
    if (index_of(last) + 1 <= count) crossing[index_of(last) + 1] -= tensor.bytes;
  }
  std::partial_sum(crossing.begin(), crossing.end(), crossing.begin());
  std::vector<std::int64_t> sum(count + 1, 0);
  for (std::size_t i = 0; i < count; ++i) {
    sum[i + 1] = sum[i] + graph.work[index_of(graph.order[i])];
  }
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max() / 4;
  std::vector<std::int64_t> best(count + 1, kNone);
  best[0] = 0;
  std::vector<std::vector<std::int32_t>> came_from(index_of(k),
                                                   std::vector<std::int32_t>(count + 1, -1));
  for (std::int32_t part = 0; part < k; ++part) {
    std::vector<std::int64_t> next(count + 1, kNone);
    std::deque<std::size_t> window;  // starts of the run that ends at i, cheapest first
    const auto price = [&](std::size_t i) {
      return best[i] == kNone ? kNone : best[i] + (part == 0 ? 0 : crossing[i]);
    };
    for (std::size_t i = 1; i <= count; ++i) {
      while (!window.empty() && price(window.back()) >= price(i - 1)) window.pop_back();
      window.push_back(i - 1);
      while (!window.empty() && sum[i] - sum[window.front()] > limit) window.pop_front();
      if (window.empty() || price(window.front()) == kNone) continue;
      next[i] = price(window.front());
      came_from[index_of(part)][i] = static_cast<std::int32_t>(window.front());
    }
    best = std::move(next);
  }
  if (best[count] == kNone) return std::nullopt;
  Parts parts(count);
  std::size_t end = count;
  for (std::int32_t part = k; part-- > 0;) {
    const auto begin = index_of(came_from[index_of(part)][end]);
    for (std::size_t i = begin; i < end; ++i) parts[index_of(graph.order[i])] = part;
    end = begin;
  }
  return parts;
}

/// Moves units between parts of the line while that saves bytes, or balances what is too heavy.
class Refiner {
 public:
  Refiner(const UnitGraph& units, const WorkGraph& graph, std::int32_t k, std::int64_t limit)
      : units_(units), graph_(graph), k_(k), limit_(limit), seen_(index_of(k), 0) {}

  Parts refine(Parts parts) {
    parts_ = std::move(parts);
    loads_ = loads_of(graph_, parts_, k_);
    sizes_.assign(index_of(k_), 0);
    for (const std::int32_t part : parts_) ++sizes_[index_of(part)];
    for (int round = 0; round < kMostRounds; ++round) {
      bool moved = false;
      for (const std::int32_t unit : graph_.order) moved = improve(unit) || moved;
      for (std::size_t i = graph_.order.size(); i-- > 0;) {
        moved = improve(graph_.order[i]) || moved;
      }
      if (!moved) break;
    }
    return std::move(parts_);
  }

 private:
  std::int64_t excess(std::int64_t load) const { return std::max<std::int64_t>(0, load - limit_); }

  bool improve(std::int32_t unit) {
    const std::int32_t from = parts_[index_of(unit)];
    if (sizes_[index_of(from)] == 1) return false;  // no part stays empty
    std::int32_t first = 0;
    std::int32_t last = k_ - 1;
    for (const std::int32_t before : graph_.predecessors[index_of(unit)]) {
      first = std::max(first, parts_[index_of(before)]);
    }
    for (const std::int32_t next : units_.successors(unit)) {
      last = std::min(last, parts_[index_of(next)]);
    }
    const std::int64_t work = graph_.work[index_of(unit)];
    const std::int64_t now = cost_of(unit);
    std::int32_t best = from;
    std::pair<std::int64_t, std::int64_t> best_change{0, 0};  // overload, bytes
    for (std::int32_t to = first; to <= last; ++to) {
      if (to == from) continue;
      const std::int64_t overload = excess(loads_[index_of(from)] - work) +
                                    excess(loads_[index_of(to)] + work) -
                                    excess(loads_[index_of(from)]) - excess(loads_[index_of(to)]);
      if (overload > 0) continue;
      parts_[index_of(unit)] = to;
      const std::pair<std::int64_t, std::int64_t> change{overload, cost_of(unit) - now};
      if (change < best_change) {
        best_change = change;
        best = to;
      }
    }
    parts_[index_of(unit)] = best;
    if (best == from) return false;
    loads_[index_of(from)] -= work;
    loads_[index_of(best)] += work;
    --sizes_[index_of(from)];
    ++sizes_[index_of(best)];
    return true;
  }

  std::int64_t cost_of(std::int32_t unit) {
    std::int64_t cost = 0;
    for (const std::int32_t t : graph_.touched[index_of(unit)]) {
      cost += tensor_cut(graph_.tensors[index_of(t)], parts_, seen_);
    }
    return cost;
  }

  const UnitGraph& units_;
  const WorkGraph& graph_;
  std::int32_t k_;
  std::int64_t limit_;
  std::vector<char> seen_;
  Parts parts_;
  std::vector<std::int64_t> loads_;
  std::vector<std::int32_t> sizes_;
};

bool has_empty_part(const Parts& parts, std::int32_t k) {
  std::vector<char> used(index_of(k), 0);
  for (const std::int32_t part : parts) used[index_of(part)] = 1;
  return std::count(used.begin(), used.end(), 1) != k;
}

/// The units of one part as a graph of their own.
UnitGraph units_of_part(const UnitGraph& units, const WorkGraph& graph, const Parts& parts,
                        const std::vector<std::int32_t>& members, std::int32_t part,
                        std::vector<std::int32_t>& local) {
  UnitGraph result;
  result.device_names = units.device_names;
  std::vector<std::int32_t> own(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    local[index_of(members[i])] = static_cast<std::int32_t>(i);
  }
  result.offsets.assign(1, 0);
  result.predecessor_count.assign(members.size(), 0);
  for (const std::int32_t unit : members) {
    result.members.push_back(units.members[index_of(unit)]);
    result.device.push_back(units.device[index_of(unit)]);
    for (const std::int32_t next : units.successors(unit)) {
      if (parts[index_of(next)] != part) continue;
      result.targets.push_back(local[index_of(next)]);
      ++result.predecessor_count[index_of(local[index_of(next)])];
    }
    result.offsets.push_back(static_cast<std::int64_t>(result.targets.size()));
  }
  std::iota(own.begin(), own.end(), 0);
  std::sort(own.begin(), own.end(), [&](std::int32_t a, std::int32_t b) {
    return graph.position[index_of(members[index_of(a)])] <
           graph.position[index_of(members[index_of(b)])];
  });
  result.order = std::move(own);
  return result;
}

double rounded_share(double value) { return std::round(value * 1e6) / 1e6; }

}  // namespace

StrategyOutcome partition_metis(Graph& graph, const Target& /*target*/,
                                const PartitionOptions& options, Diagnostics& /*diagnostics*/) {
  const UnitGraph units = build_unit_graph(graph);
  const std::int32_t k = options.parts;
  if (units.size() > 0 && (k < 1 || static_cast<std::size_t>(k) > units.size())) {
    const bool fused = units.size() != graph.nodes().size();
    throw Error(ErrorCode::kInfeasible, std::to_string(k) + " blocks requested but the graph has " +
                                            std::to_string(units.size()) +
                                            (fused ? " fusion groups" : " nodes") + "; use -k " +
                                            std::to_string(units.size()) + " or fewer");
  }
  StrategyOutcome outcome;
  outcome.plan.strategy = "metis";
  if (units.size() == 0) return outcome;
  const WorkGraph work = weigh(graph, units);
  const double mean = static_cast<double>(work.total) / k;
  const auto limit = static_cast<std::int64_t>(
      std::min(std::floor(mean * (1 + options.imbalance) + 1e-6), 0x1p61));

  const Parts raw = metis_parts(units, work, options);
  const bool had_cycle = runs_against_line(work, raw);
  const Parts plain = plain_split(work, k);
  Refiner refiner(units, work, k, limit);
  std::vector<Parts> starts{pushed_down(units, work, raw), pushed_up(work, raw)};
  if (!has_empty_part(plain, k)) starts.push_back(plain);
  if (auto split = cheapest_split(work, k, limit)) starts.push_back(*std::move(split));
  Parts best;
  std::pair<double, std::int64_t> best_score{};  // imbalance beyond the limit, bytes
  for (Parts& start : starts) {
    if (has_empty_part(start, k)) continue;
    Parts parts = refiner.refine(std::move(start));
    const auto loads = loads_of(work, parts, k);
    const std::int64_t over =
        std::max<std::int64_t>(0, *std::max_element(loads.begin(), loads.end()) - limit);
    const std::pair<double, std::int64_t> score{static_cast<double>(over), cut_of(work, parts, k)};
    if (!best.empty() && score >= best_score) continue;
    best = std::move(parts);
    best_score = score;
  }
  const double found = best.empty() ? 0 : imbalance_of_parts(work, best, k);
  if (best.empty() || best_score.first > 0) {
    // The least bottleneck of the order says what would do.
    std::int64_t low = limit;
    std::int64_t high = work.total;
    while (low + 1 < high) {
      const std::int64_t middle = low + (high - low) / 2;
      (cheapest_split(work, k, middle) ? high : low) = middle;
    }
    double needed = mean > 0 ? static_cast<double>(high) / mean - 1 : 0;
    if (!best.empty()) needed = std::min(needed, found);
    throw Error(ErrorCode::kInfeasible,
                "--imbalance " + Json(options.imbalance).dump() + ": " + std::to_string(k) +
                    " parts that can run one after another need " +
                    fixed_text(std::ceil(needed * 1000) / 1000, 3) + "; use --imbalance " +
                    fixed_text(std::ceil(needed * 1000) / 1000, 3) + " or another -k");
  }

  std::vector<std::vector<std::int32_t>> members(index_of(k));
  for (std::size_t u = 0; u < units.size(); ++u) {
    members[index_of(best[u])].push_back(static_cast<std::int32_t>(u));
  }
  std::vector<std::int32_t> local(units.size(), -1);
  for (std::int32_t part = 0; part < k; ++part) {
    const UnitGraph own = units_of_part(units, work, best, members[index_of(part)], part, local);
    for (const Wave& wave : fewest_waves(own)) {
      Partition& partition = outcome.plan.partitions.emplace_back();
      partition.device = own.device_names[index_of(wave.device)];
      for (const std::int32_t unit : wave.units) {
        const auto& nodes = own.members[index_of(unit)];
        partition.nodes.insert(partition.nodes.end(), nodes.begin(), nodes.end());
      }
      std::sort(partition.nodes.begin(), partition.nodes.end());
    }
  }
  connect_partitions(graph, outcome.plan);

  const std::int64_t raw_cut = cut_of(work, raw, k);
  const std::int64_t plain_cut = cut_of(work, plain, k);
  outcome.metrics["parts"] = k;
  outcome.metrics["cut_bytes"] = best_score.second;
  outcome.metrics["imbalance"] = rounded_share(found);
  outcome.metrics["metis_cut_bytes"] = raw_cut;
  outcome.metrics["metis_imbalance"] = rounded_share(imbalance_of_parts(work, raw, k));
  outcome.metrics["metis_cyclic"] = had_cycle ? 1 : 0;
  outcome.metrics["contiguous_cut_bytes"] = plain_cut;
  outcome.metrics["contiguous_imbalance"] = rounded_share(imbalance_of_parts(work, plain, k));
  const auto row = [&](const std::string& name, const Parts& parts, std::int64_t cut, bool cyclic) {
    return std::vector<std::string>{name, std::to_string(k), bytes_text(static_cast<double>(cut)),
                                    fixed_text(imbalance_of_parts(work, parts, k), 3),
                                    cyclic ? "yes" : "no"};
  };
  outcome.report = "\n" + table_text({{"split", ">parts", ">cut", ">imbalance", "cyclic"},
                                      row("metis", raw, raw_cut, had_cycle),
                                      row("repaired", best, best_score.second, false),
                                      row("contiguous by FLOPs", plain, plain_cut, false)});
  return outcome;
}

}  // namespace npu
