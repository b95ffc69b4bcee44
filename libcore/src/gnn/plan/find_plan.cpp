// SPDX-License-Identifier: Apache-2.0
// Plans a graph neural network over a big graph.
//
// For each number of parts k (1 is always tried): a cut with two balance constraints, sizes with
// halo, every legal plan of every subgraph with its balanced split, selection by load, then a
// search for the order and the changes of plans that give the shortest schedule in a simulation of
// the workers. The k with the smallest makespan wins. A barrier separates layers, so each is
// planned by itself and their times add up.
//
// Cost for each k: the cut (csr/partition_sweep.cpp), then O(subgraphs * plans) estimates, the
// selection, and the search, which simulates a fixed number of tasks. Nothing depends on a clock:
// the same input gives the same plan.
#include "gnn/plan/find_plan.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "csr/finish_partition.hpp"
#include "gnn/exchange/nested_parts.hpp"
#include "gnn/exchange/part_covers.hpp"
#include "gnn/graph/symmetrize.hpp"
#include "gnn/model/edge_sums.hpp"
#include "gnn/plan/assemble_plan.hpp"
#include "gnn/plan/part_counts.hpp"
#include "gnn/plan/rank_makespan.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// Tasks that the searches for short schedules may simulate: all numbers of parts and layers
// together, but each of them some.
constexpr std::int64_t kScheduleWork = 30'000'000;
constexpr std::int64_t kMinWork = 2'000'000;

// Of a graph whose parts are made for ranks, which takes some twenty times METIS's time.
constexpr std::int64_t kMostEdgesToNest = 500'000;

// Why sums must not cross; empty if they may.
std::string refusal_of_sums(const PlanInput& input, const EdgeSums& sums) {
  return input.profile.precision.empty()
             ? sums.refusal
             : "sums of features of " + input.profile.precision + " would be rounded to it";
}

// The quantum with the least padded work of the largest block that a static device can take, plus
// compiles.
std::int64_t choose_pad(const PlanInput& input, const std::vector<SubgraphSize>& sizes) {
  std::int64_t best_pad = 1000;
  double best = -1;
  for (const std::int64_t pad : {64, 128, 250, 500, 1000, 2000, 4000, 8000, 16000, 32000}) {
    CostSettings settings = input.settings;
    settings.pad = pad;
    double total = 0;
    bool any = false;
    for (const PlanLayer& layer : input.layers) {
      const DevicePlanCosts costs(input.profile, layer, settings);
      for (std::size_t d = 0; d < input.profile.devices.size(); ++d) {
        if (!input.profile.devices[d].is_static) continue;
        const auto device = static_cast<std::int32_t>(d);
        // Longest runs of stages that the device takes.
        for (std::int32_t first = 1; first <= layer.stage_count; ++first) {
          if (!layer.refusals[d][index_of(first - 1)].empty()) continue;
          std::int32_t last = first;
          while (last < layer.stage_count && layer.refusals[d][index_of(last)].empty()) ++last;
          std::set<std::pair<double, double>> shapes;
          for (const SubgraphSize& size : sizes) {
            const auto work = costs.work_size(device, first, last, size, 100);
            const Estimate time = input.profile.time_ms(device, layer.number, first, last, work.n,
                                                        work.m, settings.interpolation);
            if (!time.known) continue;
            any = true;
            total += time.value;
            shapes.emplace(work.n, work.m);
          }
          const double compile = input.profile.compile_ms(device, layer.number, first, last);
          total += static_cast<double>(shapes.size()) * compile;
          first = last;
        }
      }
    }
    if (any && (best < 0 || total < best)) {
      best = total;
      best_pad = pad;
    }
  }
  return best_pad;
}

// What all numbers of parts share: METIS or the coarse graphs, and what is read of a cut.
SweepOptions sweep_options(const PlanInput& input, const MakePlanOptions& options) {
  SweepOptions sweep;
  sweep.partitioner = options.partitioner;
  sweep.threads = options.threads;
  MetisOptions& metis = sweep.metis;
  metis.seed = options.seed;
  metis.seed_count = options.seed_count;
  metis.max_imbalance = {options.node_imbalance, options.edge_imbalance};
  metis.minimize_volume = options.minimize_volume;
  // METIS counts each end of an undirected edge; what is read is the halo of the directed graph.
  metis.volume_of = [&input](const std::vector<std::int32_t>& part_of) {
    const std::int32_t parts = *std::max_element(part_of.begin(), part_of.end()) + 1;
    std::int64_t halo = 0;
    for (const SubgraphSize& size : subgraph_sizes(input.graph->in_edges, part_of, parts)) {
      halo += size.halo;
    }
    return halo;
  };
  // The second half is for devices and schedules.
  sweep.progress = [&options](double done, const std::string& what) {
    return !options.progress || options.progress(0.5 * done, what);
  };
  return sweep;
}

// What crosses between the devices of a plan for one process.
enum class Crossing : std::uint8_t { kFeatures, kSums, kLargest };

Crossing device_crossing(const PlanInput& input, const MakePlanOptions& options,
                         Diagnostics& diagnostics) {
  if (!options.device_cover) return Crossing::kFeatures;
  const EdgeSums sums = edge_sums(*input.model);
  const std::string because = refusal_of_sums(input, sums);
  if (because.empty()) return sums.is_max ? Crossing::kLargest : Crossing::kSums;
  diagnostics.note({.file = options.model}, "only features cross between devices: " + because);
  return Crossing::kFeatures;
}

// `shortest_ms`: the makespan of the best plan so far. A number of parts that cannot be better than
// that gets no search for a shorter schedule.
void plan_parts(const PlanInput& input, const MakePlanOptions& options, Crossing crossing,
                double shortest_ms, PhaseTimes& times, PartsPlan& plan) {
  if (input.graph) {
    const PhaseTimes::Scope phase(times, "halo");
    plan.sizes = subgraph_sizes(input.graph->in_edges, plan.partition.part_of, plan.k);
    if (crossing == Crossing::kSums || crossing == Crossing::kLargest) {
      const bool is_max = crossing == Crossing::kLargest;
      plan.covers = cover_parts(input.graph->in_edges, plan.partition.part_of, plan.k, is_max);
      set_saved_rows(plan.covers, is_max, plan.sizes);
    }
  } else {
    plan.sizes = input.subgraphs;
  }
  CostSettings settings = input.settings;
  settings.whole_graph = plan.sizes.size() == 1;
  settings.pad = options.pad > 0 ? options.pad : choose_pad(input, plan.sizes);
  plan.pad = settings.pad;
  std::deque<DevicePlanCosts> costs;
  std::deque<LayerPlanner> planners;
  for (const PlanLayer& layer : input.layers) {
    costs.emplace_back(input.profile, layer, settings);
    const std::vector<DevicePlan> legal = legal_structures(
        costs.back(), layer, static_cast<std::int32_t>(input.profile.devices.size()),
        options.settings.max_segments);
    if (legal.empty()) {
      plan.infeasible = no_structure_reason(costs.back(), layer, input.profile);
      return;
    }
    planners.emplace_back(costs.back(), input.profile, plan.sizes, options, times);
    if (!planners.back().select(legal, plan.layers.emplace_back(), plan.infeasible)) return;
    plan.lower_bound_ms += plan.layers.back().lower_bound_ms;
  }
  const bool searches = !options.settings.greedy && plan.lower_bound_ms < shortest_ms;
  const std::size_t numbers = input.graph ? options.part_counts.size() + 1 : 1;
  const auto searched = static_cast<std::int64_t>(planners.size() * numbers);
  const std::int64_t work = std::max(kMinWork, kScheduleWork / searched);
  std::map<std::string, std::int32_t> single_layers;
  for (std::size_t l = 0; l < planners.size(); ++l) {
    planners[l].schedule(plan.layers[l], searches ? work : 0);
    plan.makespan_ms += plan.layers[l].simulation.makespan_ms;
    for (std::size_t d = 0; d < input.profile.devices.size(); ++d) {
      const auto ms = planners[l].single_device_ms(static_cast<std::int32_t>(d));
      if (!ms) continue;
      plan.single_ms[input.profile.devices[d].name] += *ms;
      ++single_layers[input.profile.devices[d].name];
    }
  }
  for (const auto& [name, count] : single_layers) {
    if (index_of(count) != input.layers.size()) plan.single_ms.erase(name);
  }
}

// The only device that a plan uses; nothing if there are several.
std::optional<std::int32_t> only_device(const PartsPlan& plan) {
  std::set<std::int32_t> used;
  for (const LayerPlan& layer : plan.layers) {
    for (const PlanCandidate& candidate : layer.chosen) {
      for (const StageSegment& segment : candidate.device_plan.segments) {
        for (const GroupShare& share : segment.shares) used.insert(share.device);
      }
    }
  }
  return used.size() == 1 ? std::optional(*used.begin()) : std::nullopt;
}

// Cutting a graph adds work: halo rows, and rows that are picked and put back. A device that could
// have the graph in one part gains nothing by it, whatever the noise of a table says.
void pass_over_cuts_for_one(const PlanInput& input, const PartsPlan& whole, PartsPlan& plan) {
  if (plan.k == 1 || !plan.infeasible.empty()) return;
  const std::optional<std::int32_t> device = only_device(plan);
  if (!device) return;
  const std::string& name = input.profile.devices[index_of(*device)].name;
  if (whole.k != 1 || !whole.infeasible.empty() || !whole.single_ms.contains(name)) return;
  plan.passed_over = "all on " + name + ", which can have the graph in one part";
}

// Which ranks keep their rows in files.
std::string streaming_note(const RankPlan& plan) {
  std::string ranks;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.streams(r)) ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
  }
  return ranks.empty() ? ranks
                       : "more than --rank-memory in rank " + ranks +
                             ": rows of nodes stay in files there, which are read part by part";
}

RankRequest rank_request(const PlanInput& input, const MakePlanOptions& options,
                         Diagnostics& diagnostics) {
  RankRequest request{.rank_count = options.rank_count, .sums = !options.features_only};
  request.link = options.rank_link;
  request.links = input.rank_links;
  request.memory_limit = options.rank_memory;
  if (request.sums) {
    request.features_because = refusal_of_sums(input, edge_sums(*input.model));
    request.sums = request.features_because.empty();
  }
  if (!request.features_because.empty()) {
    diagnostics.note({.file = options.model},
                     "only features cross between ranks: " + request.features_because);
  }
  return request;
}

// Spreads the parts of every number of them over the ranks: which one is taken depends on what all
// ranks take together. A number by which a rank has to hold too much has no plan.
void add_ranks(const PlanInput& input, const MakePlanOptions& options,
               std::vector<PartsPlan>& plans, Diagnostics& diagnostics) {
  RankRequest request = rank_request(input, options, diagnostics);
  const RowWidths widths = row_widths(*input.model);
  for (PartsPlan& plan : plans) {
    if (!plan.is_eligible()) continue;
    request.in_order = plan.nested;
    try {
      plan.ranks =
          plan_ranks(input.graph->in_edges, plan.partition.part_of, plan.k, widths, request);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInfeasible) throw;
      plan.infeasible = error.message();
      continue;
    }
    predict_compute(input, plan, *plan.ranks);
  }
}

// If no number of parts has a plan, what is in the way of the last one.
void check_feasible(const std::vector<PartsPlan>& plans) {
  if (std::any_of(plans.begin(), plans.end(),
                  [](const PartsPlan& plan) { return plan.infeasible.empty(); })) {
    return;
  }
  throw Error(ErrorCode::kInfeasible, "no k has a plan; k = " + std::to_string(plans.back().k) +
                                          ": " + plans.back().infeasible);
}

// The simple undirected graph of the input with two weights a node: one, and its in-edges, which is
// what aggregation costs.
CsrGraph graph_to_cut(const PlanInput& input, const MakePlanOptions& options,
                      Diagnostics& diagnostics) {
  SymmetrizedGraph simple = symmetrize(input.graph->in_edges);
  if (const std::string note = simple.note(); !note.empty()) {
    diagnostics.note({.file = options.graph},
                     std::string(input.found ? "for PT-Scotch: " : "for METIS: ") + note);
  }
  CsrGraph& graph = simple.graph;
  graph.node_weight_count = 2;
  graph.node_weights.clear();
  graph.node_weights.reserve(2 * index_of(graph.node_count()));
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    graph.node_weights.push_back(1);
    graph.node_weights.push_back(input.graph->in_edges.degree(v));
  }
  return std::move(graph);
}

// Whether ranks get parts that were made for them: METIS's own take less time on large graphs, and
// who asks for METIS gets those.
bool nests_parts(const CsrGraph& graph, const PlanInput& input, const MakePlanOptions& options) {
  return options.rank_count > 0 && !input.found && !options.minimize_volume &&
         options.partitioner == Partitioner::kAutomatic &&
         graph.entry_count() / 2 < kMostEdgesToNest;
}

// Puts parts for ranks in the place of METIS's, unless these are better balanced.
void nest_parts(const CsrGraph& graph, const PlanInput& input, const MakePlanOptions& options,
                PhaseTimes& times, PartsPlan& plan) {
  const PhaseTimes::Scope phase(times, "parts for ranks");
  NestedOptions nested{sweep_options(input, options).metis, true, options.threads};
  nested.metis.part_count = plan.k;
  nested.sums = !options.features_only && refusal_of_sums(input, edge_sums(*input.model)).empty();
  auto part_of = nested_parts(input.graph->in_edges, graph, nested);
  if (!part_of) return;
  GraphPartition found = finish_partition(graph, plan.k, std::move(*part_of), options.seed);
  if (partition_rank(graph, nested.metis, plan.partition).first <
      partition_rank(graph, nested.metis, found).first) {
    return;
  }
  plan.partition = std::move(found);
  plan.nested = true;
}

// One for each number of parts that the graph has nodes for, with nothing but its partition.
std::vector<PartsPlan> cut_graph(const PlanInput& input, const MakePlanOptions& options,
                                 Diagnostics& diagnostics, PhaseTimes& times) {
  CsrGraph graph;
  {
    const PhaseTimes::Scope phase(times, "symmetrize");
    graph = graph_to_cut(input, options, diagnostics);
  }
  SweepOptions sweep = sweep_options(input, options);
  sweep.part_counts = counts_to_try(options, graph.node_count(), diagnostics);
  PartitionSweep cuts = input.found ? sweep_of_found(graph, sweep, input.found->parts, times)
                                    : partition_sweep(graph, sweep, times);
  std::vector<PartsPlan> plans(cuts.partitions.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    plans[i].k = sweep.part_counts[i];
    plans[i].partition = std::move(cuts.partitions[i]);
    plans[i].levels = cuts.levels;
    plans[i].coarsest_nodes = cuts.coarsest_nodes;
    if (plans[i].k > 1 && nests_parts(graph, input, options)) {
      nest_parts(graph, input, options, times, plans[i]);
    }
  }
  return plans;
}

}  // namespace

PlanResult find_plan(const PlanInput& input, const MakePlanOptions& options,
                     Diagnostics& diagnostics) {
  PhaseTimes times = input.times;
  report_progress(options.progress, 0, "read");
  std::vector<PartsPlan> plans;
  if (input.graph) {
    plans = cut_graph(input, options, diagnostics, times);
  } else {
    plans.emplace_back().k = static_cast<std::int32_t>(input.subgraphs.size());
  }
  const Crossing crossing = device_crossing(input, options, diagnostics);
  double shortest_ms = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (input.graph) {
      report_progress(options.progress,
                      0.5 + 0.5 * static_cast<double>(i) / static_cast<double>(plans.size()),
                      "k = " + std::to_string(plans[i].k));
    }
    plan_parts(input, options, crossing, shortest_ms, times, plans[i]);
    if (!input.graph) continue;
    pass_over_cuts_for_one(input, plans.front(), plans[i]);
    if (plans[i].is_eligible()) shortest_ms = std::min(shortest_ms, plans[i].makespan_ms);
  }
  if (plans.empty()) {
    throw Error(ErrorCode::kUsage,
                "the graph has " + std::to_string(input.graph->in_edges.node_count()) +
                    " nodes, fewer than any number of --parts that is tried",
                {.file = options.graph});
  }
  check_feasible(plans);
  if (options.rank_count > 0) {
    const PhaseTimes::Scope phase(times, "ranks");
    add_ranks(input, options, plans, diagnostics);
    check_feasible(plans);
  }
  report_progress(options.progress, 1, "write");
  PlanResult result;
  {
    const PhaseTimes::Scope phase(times, "write");
    result = assemble_plan(input, options, plans);
  }
  if (result.plan.choice.ranks) {
    if (const std::string note = streaming_note(*result.plan.choice.ranks); !note.empty()) {
      diagnostics.note({.file = options.graph}, note);
    }
  }
  result.times = std::move(times);
  for (const std::string& reason : result.plan.predicted.uncertain) {
    diagnostics.warning({.file = options.profile}, "predicted times are uncertain: " + reason);
  }
  return result;
}

}  // namespace npu::gnn
