// SPDX-License-Identifier: Apache-2.0
// The metis strategy: k parts of about equal work with few bytes between them, which can run one
// after another.
//
// METIS cuts the fused graph (a node is a fusion group), weighted with FLOPs and with the bytes of
// the tensors between them, but ignores direction: the parts of its result usually depend on each
// other in a cycle. The repair orders the parts by the mean position of their nodes in the graph,
// then moves nodes until no tensor goes to an earlier part, once pushing nodes down and once up.
// Another start cuts a topological order where the fewest bytes cross, by dynamic programming with
// the balance as a window. From each start, boundary nodes move while that saves bytes and keeps
// order and balance (as Moreira, Popp and Schulz, "Evolutionary multi-level acyclic graph
// partitioning", 2018, do), and the best result is kept. Devices stay as tagged: a part with nodes
// of several devices becomes several partitions, one for each run on one device within the part.
// O((nodes + edges) * (k + rounds)). METIS itself is behind csr/metis_partitioner.cpp.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>

#include "csr/metis_partitioner.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "partition/device_runs.hpp"
#include "partition/fused_graph.hpp"
#include "partition/plan_builder.hpp"
#include "support/checked.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr int kMaxRounds = 30;

/// A part for every fused node.
using Parts = std::vector<std::int32_t>;

/// The fused graph as METIS and the refinement need it.
struct WorkGraph {
  struct Tensor {
    std::int64_t bytes = 0;
    std::int32_t producer = 0;
    std::vector<std::int32_t> readers;  // other fused nodes, each once
  };
  std::vector<std::int64_t> work;  // by fused node
  std::int64_t total = 0;
  std::vector<Tensor> tensors;
  std::vector<std::vector<std::int32_t>> touched;  // tensors, by fused node
  std::vector<std::vector<std::int32_t>> predecessors;
  std::vector<std::int32_t> order;     // topological, as close to the list as possible
  std::vector<std::int32_t> position;  // by fused node
};

/// A topological order that always takes the ready fused node that comes first in the list.
std::vector<std::int32_t> order_by_list(const FusedGraph& fused) {
  std::vector<std::int32_t> waiting = fused.predecessor_count;
  std::vector<std::int32_t> heap;
  const auto later = std::greater<>();
  for (std::size_t u = 0; u < fused.size(); ++u) {
    if (waiting[u] == 0) heap.push_back(static_cast<std::int32_t>(u));
  }
  std::make_heap(heap.begin(), heap.end(), later);
  std::vector<std::int32_t> order;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const std::int32_t fused_node = heap.back();
    heap.pop_back();
    order.push_back(fused_node);
    for (const std::int32_t next : fused.successors(fused_node)) {
      if (--waiting[index_of(next)] != 0) continue;
      heap.push_back(next);
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
  return order;
}

WorkGraph weigh(const Graph& graph, const FusedGraph& fused) {
  WorkGraph result;
  result.work.assign(fused.size(), 0);
  std::vector<double> flops(fused.size(), 0);
  for (std::size_t u = 0; u < fused.size(); ++u) {
    for (const NodeId id : fused.members[u]) flops[u] += node_flops(graph, graph.node(id));
  }
  const double sum = std::accumulate(flops.begin(), flops.end(), 0.0);
  for (std::size_t u = 0; u < fused.size(); ++u) {
    // Without any FLOPs every node counts the same.
    result.work[u] = sum > 0 ? saturating_integer(flops[u] * std::min(1.0, 0x1p60 / sum))
                             : static_cast<std::int64_t>(fused.members[u].size());
    result.total += result.work[u];
  }
  result.touched.resize(fused.size());
  result.predecessors.resize(fused.size());
  std::vector<std::int32_t> seen(fused.size(), -1);
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const TensorInfo& info = graph.tensors()[t];
    if (!info.producer.valid()) continue;
    WorkGraph::Tensor tensor{.bytes = std::min(info.bytes(), std::int64_t{1} << 50),
                             .producer = fused.fused_node_of[index_of(info.producer.value)],
                             .readers = {}};
    seen[index_of(tensor.producer)] = static_cast<std::int32_t>(t);
    for (const NodeId consumer : info.consumers) {
      const std::int32_t reader = fused.fused_node_of[index_of(consumer.value)];
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
  for (std::size_t u = 0; u < fused.size(); ++u) {
    for (const std::int32_t next : fused.successors(static_cast<std::int32_t>(u))) {
      result.predecessors[index_of(next)].push_back(static_cast<std::int32_t>(u));
    }
  }
  result.order = order_by_list(fused);
  result.position.resize(fused.size());
  for (std::size_t i = 0; i < result.order.size(); ++i) {
    result.position[index_of(result.order[i])] = static_cast<std::int32_t>(i);
  }
  return result;
}

/// Bytes between parts, each tensor once for each other part that reads it. `seen` has one entry
/// per part, all zero.
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

/// By what share the heaviest part exceeds the mean.
double imbalance_of_parts(const WorkGraph& graph, const Parts& parts, std::int32_t k) {
  const auto loads = loads_of(graph, parts, k);
  const double mean = static_cast<double>(graph.total) / k;
  return mean > 0 ? static_cast<double>(*std::max_element(loads.begin(), loads.end())) / mean - 1
                  : 0;
}

/// METIS's parts, which ignore direction, ordered by the mean position of their fused nodes.
Parts metis_parts(const FusedGraph& fused, const WorkGraph& graph,
                  const PartitionOptions& options) {
  std::vector<WeightedEdge> edges;
  for (const WorkGraph::Tensor& tensor : graph.tensors) {
    for (const std::int32_t reader : tensor.readers) {
      edges.push_back({tensor.producer, reader, std::max<std::int64_t>(tensor.bytes, 1)});
    }
  }
  CsrGraph csr = build_undirected_graph(static_cast<std::int32_t>(fused.size()), edges);
  csr.node_weights = graph.work;
  MetisOptions metis;
  metis.part_count = options.parts;
  metis.max_imbalance = {1 + options.imbalance};
  metis.seed = options.seed;
  metis.seed_count = 4;
  const GraphPartition result = partition_with_metis(csr, metis);
  std::vector<double> place(index_of(options.parts), 0);
  std::vector<double> count(index_of(options.parts), 0);
  for (std::size_t u = 0; u < fused.size(); ++u) {
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

/// Moves every fused node to the part of its producers or a later one.
Parts pushed_down(const FusedGraph& fused, const WorkGraph& graph, Parts parts) {
  for (const std::int32_t fused_node : graph.order) {
    for (const std::int32_t next : fused.successors(fused_node)) {
      parts[index_of(next)] = std::max(parts[index_of(next)], parts[index_of(fused_node)]);
    }
  }
  return parts;
}

/// Moves every fused node to the part of its readers or an earlier one.
Parts pushed_up(const WorkGraph& graph, Parts parts) {
  for (std::size_t i = graph.order.size(); i-- > 0;) {
    const std::int32_t fused_node = graph.order[i];
    for (const std::int32_t before : graph.predecessors[index_of(fused_node)]) {
      parts[index_of(before)] = std::min(parts[index_of(before)], parts[index_of(fused_node)]);
    }
  }
  return parts;
}

/// A plain split: the list cut into equal shares of the work.
Parts plain_split(const WorkGraph& graph, std::int32_t k) {
  Parts parts(graph.order.size());
  std::int64_t before = 0;
  for (const std::int32_t fused_node : graph.order) {
    const double middle =
        static_cast<double>(before) + static_cast<double>(graph.work[index_of(fused_node)]) / 2;
    const double share = graph.total > 0 ? middle / static_cast<double>(graph.total) : 0;
    parts[index_of(fused_node)] = std::min(k - 1, static_cast<std::int32_t>(share * k));
    before += graph.work[index_of(fused_node)];
  }
  return parts;
}

/// The order cut into k runs within the limit such that the fewest bytes cross in total.
std::optional<Parts> cheapest_split(const WorkGraph& graph, std::int32_t k, std::int64_t limit) {
  const std::size_t count = graph.order.size();
  std::vector<std::int64_t> crossing(count + 1, 0);  // bytes that are needed after place i
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

/// Moves fused nodes between the ordered parts while that saves bytes or
/// relieves a part that is too heavy.
class Refiner {
 public:
  Refiner(const FusedGraph& fused, const WorkGraph& graph, std::int32_t k, std::int64_t limit)
      : fused_(fused), graph_(graph), k_(k), limit_(limit), seen_(index_of(k), 0) {}

  Parts refine(Parts parts) {
    parts_ = std::move(parts);
    loads_ = loads_of(graph_, parts_, k_);
    sizes_.assign(index_of(k_), 0);
    for (const std::int32_t part : parts_) ++sizes_[index_of(part)];
    for (int round = 0; round < kMaxRounds; ++round) {
      bool moved = false;
      for (const std::int32_t fused_node : graph_.order) moved = improve(fused_node) || moved;
      for (std::size_t i = graph_.order.size(); i-- > 0;) {
        moved = improve(graph_.order[i]) || moved;
      }
      if (!moved) break;
    }
    return std::move(parts_);
  }

 private:
  std::int64_t excess(std::int64_t load) const { return std::max<std::int64_t>(0, load - limit_); }

  bool improve(std::int32_t fused_node) {
    const std::int32_t from = parts_[index_of(fused_node)];
    if (sizes_[index_of(from)] == 1) return false;  // no part stays empty
    std::int32_t first = 0;
    std::int32_t last = k_ - 1;
    for (const std::int32_t before : graph_.predecessors[index_of(fused_node)]) {
      first = std::max(first, parts_[index_of(before)]);
    }
    for (const std::int32_t next : fused_.successors(fused_node)) {
      last = std::min(last, parts_[index_of(next)]);
    }
    const std::int64_t work = graph_.work[index_of(fused_node)];
    const std::int64_t now = cost_of(fused_node);
    std::int32_t best = from;
    std::pair<std::int64_t, std::int64_t> best_change{0, 0};  // overload, bytes
    for (std::int32_t to = first; to <= last; ++to) {
      if (to == from) continue;
      const std::int64_t overload = excess(loads_[index_of(from)] - work) +
                                    excess(loads_[index_of(to)] + work) -
                                    excess(loads_[index_of(from)]) - excess(loads_[index_of(to)]);
      if (overload > 0) continue;
      parts_[index_of(fused_node)] = to;
      const std::pair<std::int64_t, std::int64_t> change{overload, cost_of(fused_node) - now};
      if (change < best_change) {
        best_change = change;
        best = to;
      }
    }
    parts_[index_of(fused_node)] = best;
    if (best == from) return false;
    loads_[index_of(from)] -= work;
    loads_[index_of(best)] += work;
    --sizes_[index_of(from)];
    ++sizes_[index_of(best)];
    return true;
  }

  std::int64_t cost_of(std::int32_t fused_node) {
    std::int64_t cost = 0;
    for (const std::int32_t t : graph_.touched[index_of(fused_node)]) {
      cost += tensor_cut(graph_.tensors[index_of(t)], parts_, seen_);
    }
    return cost;
  }

  const FusedGraph& fused_;
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

void check_part_count(const Graph& graph, const FusedGraph& fused, std::int32_t parts) {
  if (fused.size() == 0 || (parts >= 1 && static_cast<std::size_t>(parts) <= fused.size())) return;
  const bool has_groups = fused.size() != graph.nodes().size();
  throw Error(ErrorCode::kInfeasible,
              std::to_string(parts) + " parts requested but the graph has " +
                  std::to_string(fused.size()) + (has_groups ? " fusion groups" : " nodes") +
                  "; use -k " + std::to_string(fused.size()) + " or fewer");
}

struct Candidate {
  Parts parts;
  std::int64_t excess = 0;  // of the heaviest part, above the limit
  std::int64_t cut_bytes = 0;
};

/// The best of the refined starts; without parts if every start leaves a part empty.
Candidate best_of(std::vector<Parts> starts, const FusedGraph& fused, const WorkGraph& work,
                  std::int32_t k, std::int64_t limit) {
  Refiner refiner(fused, work, k, limit);
  Candidate best;
  for (Parts& start : starts) {
    if (has_empty_part(start, k)) continue;
    Parts parts = refiner.refine(std::move(start));
    const auto loads = loads_of(work, parts, k);
    const std::int64_t excess =
        std::max<std::int64_t>(0, *std::max_element(loads.begin(), loads.end()) - limit);
    const std::int64_t cut = cut_of(work, parts, k);
    if (!best.parts.empty() && std::pair(excess, cut) >= std::pair(best.excess, best.cut_bytes)) {
      continue;
    }
    best = {std::move(parts), excess, cut};
  }
  return best;
}

/// The work of the heaviest part that would do: the least bottleneck of the order, or what was
/// found.
std::int64_t needed_limit(const WorkGraph& work, const Candidate& best, std::int32_t k,
                          std::int64_t limit) {
  std::int64_t low = limit;
  std::int64_t high = best.parts.empty() ? work.total : std::min(work.total, limit + best.excess);
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    (cheapest_split(work, k, middle) ? high : low) = middle;
  }
  return high;
}

/// Says which imbalance is needed, as an error or, for --best-effort, of the parts that are made.
void report_imbalance(double needed, const PartitionOptions& options, Diagnostics& diagnostics) {
  const std::string text = fixed_text(std::ceil(needed * 1000) / 1000, 3);
  const std::string fault = "--imbalance " + Json(options.imbalance).dump() + ": " +
                            std::to_string(options.parts) +
                            " parts that can run one after another need " + text;
  if (!options.best_effort) {
    throw Error(ErrorCode::kInfeasible,
                fault + "; use --imbalance " + text + ", --best-effort or another -k");
  }
  diagnostics.warning({}, fault + "; the parts are as even as was possible");
}

/// Each part as one partition for each run on one device.
PartitionPlan plan_of_parts(const Graph& graph, const FusedGraph& fused, const WorkGraph& work,
                            const Parts& parts, std::int32_t k) {
  std::vector<std::vector<std::int32_t>> members(index_of(k));
  for (const std::int32_t fused_node : work.order) {
    members[index_of(parts[index_of(fused_node)])].push_back(fused_node);
  }
  PartitionPlan plan;
  plan.strategy = "metis";
  std::vector<std::int32_t> local(fused.size(), -1);
  for (const std::vector<std::int32_t>& part : members) {
    const FusedGraph own = induced_fused_graph(fused, part, local);
    append_runs(plan, own, fewest_device_runs(own));
  }
  connect_partitions(graph, plan);
  return plan;
}

}  // namespace

StrategyOutcome partition_metis(Graph& graph, const Target& /*target*/,
                                const PartitionOptions& options, Diagnostics& diagnostics) {
  const FusedGraph fused = build_fused_graph(graph);
  const std::int32_t k = options.parts;
  check_part_count(graph, fused, k);
  StrategyOutcome outcome;
  outcome.plan.strategy = "metis";
  if (fused.size() == 0) return outcome;
  const WorkGraph work = weigh(graph, fused);
  const double mean = static_cast<double>(work.total) / k;
  const auto limit = static_cast<std::int64_t>(
      std::min(std::floor(mean * (1 + options.imbalance) + 1e-6), 0x1p61));

  const Parts raw = metis_parts(fused, work, options);
  const Parts plain = plain_split(work, k);
  std::vector<Parts> starts{pushed_down(fused, work, raw), pushed_up(work, raw)};
  if (!has_empty_part(plain, k)) starts.push_back(plain);
  if (auto split = cheapest_split(work, k, limit)) starts.push_back(*std::move(split));
  Candidate best = best_of(std::move(starts), fused, work, k, limit);
  if (best.parts.empty() || best.excess > 0) {
    const std::int64_t needed = needed_limit(work, best, k, limit);
    report_imbalance(mean > 0 ? static_cast<double>(needed) / mean - 1 : 0, options, diagnostics);
    starts = {std::move(best.parts)};
    if (auto split = cheapest_split(work, k, needed)) starts.push_back(*std::move(split));
    std::erase(starts, Parts{});
    best = best_of(std::move(starts), fused, work, k, needed);
  }

  outcome.plan = plan_of_parts(graph, fused, work, best.parts, k);
  const auto split = [&](const Parts& parts) {
    return MetisFacts::Split{cut_of(work, parts, k), imbalance_of_parts(work, parts, k)};
  };
  outcome.facts = MetisFacts{.parts = k,
                             .split = split(best.parts),
                             .metis = split(raw),
                             .metis_cyclic = runs_against_line(work, raw),
                             .contiguous = split(plain)};
  return outcome;
}

}  // namespace npu
