// SPDX-License-Identifier: Apache-2.0
// Checks a plan against its inputs without the code that found it.
//
// Sizes are counted again with sets, structure and legality are checked by definition, loads by
// summing, the makespan by replaying the clusters event by event (replay_clusters.cpp), and the
// bound by evaluating the stored multipliers over all candidates. A bound that a search raised
// above that of the multipliers is proven again by another search (verify_selection.cpp); one that
// would take too long is reported as not proven here. O(edges log nodes) for the sizes, O(tasks^2)
// for the replay.
#include "gnn/plan/verify/verify_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "csr/metis_partitioner.hpp"
#include "gnn/exchange/part_covers.hpp"
#include "gnn/graph/partition_file.hpp"
#include "gnn/model/edge_sums.hpp"
#include "gnn/plan/costs/cluster_costs.hpp"
#include "gnn/plan/costs/count_sizes.hpp"
#include "gnn/plan/document/check_plan.hpp"
#include "gnn/plan/document/plan_document.hpp"
#include "gnn/plan/plan_input.hpp"
#include "gnn/plan/search/replay_clusters.hpp"
#include "gnn/plan/search/selection.hpp"
#include "gnn/plan/verify/verify_exchange.hpp"
#include "gnn/plan/verify/verify_ranks.hpp"
#include "gnn/plan/verify/verify_selection.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

bool is_close(double a, double b) {
  return std::abs(a - b) <= 1e-5 + 1e-6 * std::max(std::abs(a), std::abs(b));
}

// As the document writes it; whole numbers without ".0".
std::string number_text(double value) {
  const std::string text = Json(value).dump();
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

// What the plan was made with.
MakePlanOptions options_of(const GnnPlan& plan, const std::string& path) {
  MakePlanOptions options;
  options.graph = path_beside(path, plan.files.graph);
  options.subgraphs = path_beside(path, plan.files.subgraphs);
  options.model = path_beside(path, plan.files.model);
  options.profile = path_beside(path, plan.files.profile);
  options.bandwidths = path_beside(path, plan.files.bandwidths);
  options.settings = plan.settings;
  options.pad = 1;  // the plan's own is checked with its sizes
  if (plan.files.node_count_given) options.graph_options.node_count = plan.files.graph_nodes;
  options.graph_options.undirected = plan.files.undirected;
  options.graph_options.one_loop = plan.files.one_loop;
  return options;
}

class Verifier {
 public:
  Verifier(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics), plan_(read_plan(path)) {}

  PlanCheck run() {
    if (plan_.choice.pad < 1) complain("/pad", "expected a positive quantum");
    Diagnostics ignored;
    input_ = read_plan_input(options_of(plan_, path_), ignored);
    input_->settings.pad = std::max<std::int64_t>(1, plan_.choice.pad);
    for (const ProfileDevice& device : input_->profile.devices) names_.push_back(device.name);
    if (input_->model && input_->model->hash != plan_.files.model_hash) {
      complain("/model_hash", "the model has another hash: " + input_->model->hash);
    }
    check_sizes();
    check_pad();
    check_exchange();
    check_ranks();
    input_->settings.whole_graph = sizes_.size() == 1;
    PlanCheck sums;
    BoundSums bounds;
    std::map<std::string, double> loads;
    for (const PlanLayer& layer : input_->layers) {
      const DevicePlanCosts costs(input_->profile, layer, input_->settings);
      check_assignments(layer, costs, loads, sums.max_load_ms);
      replay(layer, costs, sums.makespan_ms);
      const LayerBound bound = check_bound(layer, costs);
      sums.dual_bound_ms += bound.dual_ms;
      bounds.load_ms += bound.load_ms;
      bounds.makespan_ms += bound.makespan_ms;
      sums.proofs.push_back({layer.number, bound.proof});
    }
    check_totals(sums, bounds, loads);
    check_switches();
    sums.load_bound_ms = plan_.proof.load_bound_ms;
    sums.ok = !diagnostics_.has_errors();
    return sums;
  }

 private:
  // Of what the layers' bounds say, each rounded down by itself.
  struct BoundSums {
    double load_ms = 0;
    double makespan_ms = 0;
  };

  void complain(const std::string& pointer, const std::string& text) {
    diagnostics_.error({.file = path_, .pointer = pointer}, text);
  }

  void compare(const char* key, double stated, double value) {
    if (is_close(stated, value)) return;
    complain("/" + std::string(key),
             "recomputed as " + std::to_string(value) + ", the plan says " + number_text(stated));
  }

  void check_at_most(const char* key, double stated, double sum) {
    if (stated <= sum + 1e-5) return;
    complain("/" + std::string(key), "the bounds of the layers add up to " + std::to_string(sum) +
                                         " ms, the plan says " + number_text(stated));
  }

  void check_totals(const PlanCheck& sums, const BoundSums& bounds,
                    const std::map<std::string, double>& loads) {
    for (const auto& [name, stated] : plan_.predicted.loads_ms) {
      const auto found = loads.find(name);
      const double load = found == loads.end() ? 0 : found->second;
      if (!is_close(load, stated)) {
        complain("/loads_ms/" + name, "the load of '" + name + "' is " + std::to_string(load) +
                                          " ms, the plan says " + number_text(stated));
      }
    }
    compare("makespan_ms", plan_.predicted.makespan_ms, sums.makespan_ms);
    compare("max_load_ms", plan_.predicted.max_load_ms, sums.max_load_ms);
    const double lower = plan_.proof.lower_bound_ms;
    if (lower > sums.makespan_ms + 1e-5) {
      complain("/lower_bound_ms", "the bound is above the makespan");
    }
    if (plan_.proof.load_bound_ms > sums.max_load_ms + 1e-5) {
      complain("/load_bound_ms", "the bound is above the largest load");
    }
    if (plan_.proof.least_load_ms + 1e-5 < plan_.proof.load_bound_ms) {
      complain("/least_load_ms",
               "the load is below its bound of " + std::to_string(plan_.proof.load_bound_ms));
    }
    check_at_most("load_bound_ms", plan_.proof.load_bound_ms, bounds.load_ms);
    check_at_most("lower_bound_ms", lower, bounds.makespan_ms);
    // Both times are rounded to the nanosecond, of which short plans have few.
    const double gap = lower > 0 ? std::max(0.0, sums.makespan_ms / lower - 1) : 0.0;
    if (lower > 0 && std::abs(plan_.proof.gap - gap) > 2e-6 / lower)
      compare("gap", plan_.proof.gap, gap);
  }

  std::map<std::int64_t, SubgraphSize> expected_sizes() {
    std::map<std::int64_t, SubgraphSize> expected;
    if (!input_->graph) {
      for (const SubgraphSize& size : input_->subgraphs) expected[size.id] = size;
      return expected;
    }
    const CsrGraph& graph = input_->graph->in_edges;
    const std::string file = path_beside(path_, plan_.choice.partition->file);
    const auto part_of = parse_partition(read_file(file), file, graph.node_count());
    if (partition_hash(part_of) != plan_.choice.partition->hash) {
      complain("/partition/hash", "the partition in " + file + " has another hash");
    }
    part_of_ = part_of;
    return count_sizes(graph, part_of);
  }

  // Costs are then those of parts that are as small as the covers make them.
  void check_exchange() {
    if (!plan_.choice.exchange || diagnostics_.has_errors()) return;
    if (!input_->graph || !input_->model || plan_.choice.ranks) {
      return complain("/exchange", "the plan has ranks, or no graph, or no model");
    }
    verify_exchange(plan_, input_->graph->in_edges, part_of_, *input_->model, input_->settings.host,
                    [&](const std::string& pointer, const std::string& text) {
                      complain("/exchange" + pointer, text);
                    });
    set_saved_rows(plan_.choice.exchange->parts, edge_sums(*input_->model).is_max, sizes_);
  }

  void check_ranks() {
    if (!plan_.choice.ranks || diagnostics_.has_errors()) return;
    if (!input_->graph || !input_->model) {
      complain("/ranks", "the plan has ranks, but no graph or no model");
      return;
    }
    if (std::any_of(part_of_.begin(), part_of_.end(),
                    [&](std::int32_t part) { return part < 0 || part >= plan_.choice.k; })) {
      complain("/partition", "a part is not below k");
      return;
    }
    if (const std::string refusal = edge_sums(*input_->model).refusal;
        plan_.choice.ranks->sums && !refusal.empty()) {
      complain("/ranks/exchange", "only features may cross: " + refusal);
    }
    verify_ranks(*plan_.choice.ranks, input_->graph->in_edges, part_of_, row_widths(*input_->model),
                 [&](const std::string& pointer, const std::string& text) {
                   complain("/ranks" + pointer, text);
                 });
  }

  void check_sizes() {
    const std::map<std::int64_t, SubgraphSize> expected = expected_sizes();
    if (plan_.choice.subgraphs.size() != expected.size() ||
        index_of(plan_.choice.k) != expected.size()) {
      complain("/subgraphs", "the plan has " + std::to_string(plan_.choice.subgraphs.size()) +
                                 " subgraphs, its input " + std::to_string(expected.size()));
    }
    for (std::size_t i = 0; i < plan_.choice.subgraphs.size(); ++i) {
      const std::string pointer = "/subgraphs/" + std::to_string(i);
      const PlanSubgraph& stated = plan_.choice.subgraphs[i];
      const auto found = expected.find(stated.size.id);
      if (found == expected.end() || !index_.emplace(stated.size.id, sizes_.size()).second) {
        complain(pointer,
                 "subgraph " + std::to_string(stated.size.id) + " is unknown or listed twice");
        continue;
      }
      const SubgraphSize& size = found->second;
      sizes_.push_back(size);
      const auto check_value = [&](const char* key, std::int64_t said, std::int64_t value) {
        if (said == value) return;
        complain(pointer + "/" + key,
                 "counted as " + std::to_string(value) + ", the plan says " + std::to_string(said));
      };
      const std::int64_t pad = input_->settings.pad;
      check_value("n", stated.size.n, size.n);
      check_value("m", stated.size.m, size.m);
      check_value("halo", stated.size.halo, size.halo);
      check_value("cut_edges", stated.size.cut_edges, size.cut_edges);
      check_value("n_pad", stated.padded_nodes, padded_size(size.n, pad));
      check_value("m_pad", stated.padded_edges, padded_size(size.m, pad));
    }
  }

  void check_pad() {
    std::int64_t nodes = 0;
    std::int64_t edges = 0;
    for (const SubgraphSize& size : sizes_) {
      nodes = std::max(nodes, size.n);
      edges = std::max(edges, size.m);
    }
    const std::int64_t most = largest_pad(nodes, edges);
    if (plan_.choice.pad > most) complain("/pad", "expected at most " + std::to_string(most));
  }

  // The devices of a segment by index; empty if one of them is not in the profile.
  std::vector<GroupShare> check_shares(const PlannedSegment& segment, const PlanLayer& layer,
                                       const std::string& pointer, std::set<std::int32_t>& used) {
    std::vector<GroupShare> shares;
    std::int32_t percents = 0;
    for (const PlannedShare& share : segment.shares) {
      const std::int32_t device = input_->profile.find_device(share.device);
      if (device < 0) {
        complain(pointer, "device '" + share.device + "' is not in the profile");
        return {};
      }
      if (!used.insert(device).second) {
        complain(pointer, "device '" + share.device + "' is used twice");
      }
      shares.push_back({device, static_cast<std::int32_t>(std::lround(share.ratio * 100))});
      percents += shares.back().percent;
      for (std::int32_t s = segment.first; s <= std::min(segment.last, layer.stage_count); ++s) {
        const std::string& refusal = layer.refusals[index_of(device)][index_of(s - 1)];
        if (refusal.empty()) continue;
        complain(pointer,
                 share.device + " does not run stage " + std::to_string(s) + ": " + refusal);
      }
    }
    if (percents != 100) complain(pointer, "the ratios of a segment do not sum up to 1");
    return shares;
  }

  // A device plan of the document, checked against the rules; without segments if it breaks one
  // that leaves nothing to compute with.
  DevicePlan check_device_plan(const PlannedStages& stated, const PlanLayer& layer,
                               const std::string& pointer) {
    DevicePlan device_plan;
    std::set<std::int32_t> used;
    std::int32_t next = 1;
    for (const PlannedSegment& segment : stated.segments) {
      if (segment.first != next || segment.last < segment.first) {
        complain(pointer, "segments are not contiguous from stage " + std::to_string(next));
      }
      next = segment.last + 1;
      std::vector<GroupShare> shares = check_shares(segment, layer, pointer, used);
      if (shares.empty()) return {};
      device_plan.segments.push_back({segment.first, segment.last, std::move(shares)});
    }
    if (next != layer.stage_count + 1 || device_plan.segments.empty()) {
      complain(pointer,
               "the segments do not cover the " + std::to_string(layer.stage_count) + " stages");
      return {};
    }
    if (device_plan.segments.size() > index_of(plan_.settings.max_segments)) {
      complain(pointer, "too many segments");
    }
    return device_plan;
  }

  void check_assignments(const PlanLayer& layer, const DevicePlanCosts& costs,
                         std::map<std::string, double>& loads, double& max_load) {
    chosen_.assign(sizes_.size(), {});
    chosen_index_.assign(sizes_.size(), -1);
    std::vector<char> seen(sizes_.size(), 0);
    std::map<std::int32_t, double> resource_ms;
    for (std::size_t i = 0; i < plan_.choice.assignments.size(); ++i) {
      const PlanAssignment& assignment = plan_.choice.assignments[i];
      if (assignment.layer != layer.number) continue;
      const std::string pointer = "/assignments/" + std::to_string(i);
      const auto found = index_.find(assignment.subgraph);
      const std::size_t index = index_of(assignment.device_plan);
      if (found == index_.end() || index >= plan_.choice.device_plans.size() ||
          seen[found->second] != 0) {
        complain(pointer, "an unknown subgraph or plan, or a subgraph that is assigned twice");
        continue;
      }
      const std::size_t s = found->second;
      seen[s] = 1;
      chosen_index_[s] = assignment.device_plan;
      chosen_[s] = check_device_plan(plan_.choice.device_plans[index], layer,
                                     "/peps/" + std::to_string(index));
      if (chosen_[s].segments.empty()) continue;
      const DevicePlanCost cost = costs.cost(chosen_[s], sizes_[s]);
      if (!cost.refusal.empty()) complain(pointer, cost.refusal);
      if (!is_close(cost.latency_ms, assignment.latency_ms)) {
        complain(pointer + "/latency_ms", "recomputed as " + std::to_string(cost.latency_ms));
      }
      for (std::size_t d = 0; d < names_.size(); ++d) {
        loads[names_[d]] += cost.device_ms[d];
        resource_ms[costs.resource_of(static_cast<std::int32_t>(d))] += cost.device_ms[d];
      }
    }
    for (std::size_t s = 0; s < seen.size(); ++s) {
      if (seen[s] != 0) continue;
      complain("/assignments", "subgraph " + std::to_string(sizes_[s].id) +
                                   " has no plan in layer " + std::to_string(layer.number));
    }
    double largest = 0;
    for (const auto& [resource, ms] : resource_ms) largest = std::max(largest, ms);
    max_load += largest;
  }

  // Adds the makespan of a layer, from its clusters.
  void replay(const PlanLayer& layer, const DevicePlanCosts& costs, double& makespan_ms) {
    std::vector<ReplayTask> tasks;
    std::set<std::size_t> seen;
    std::vector<std::int64_t> part_at;  // by position
    for (std::size_t c = 0; c < plan_.choice.clusters.size(); ++c) {
      const PlanCluster& cluster = plan_.choice.clusters[c];
      if (cluster.layer != layer.number) continue;
      const std::string pointer = "/clusters/" + std::to_string(c);
      for (const std::int64_t id : cluster.subgraphs) {
        const auto found = index_.find(id);
        if (found == index_.end() || !seen.insert(found->second).second) {
          complain(pointer, "subgraph " + std::to_string(id) + " is unknown or in two clusters");
          continue;
        }
        const std::size_t s = found->second;
        if (chosen_[s].segments.empty()) continue;
        if (cluster.device_plan != chosen_index_[s]) {
          complain(pointer + "/pep", "subgraph " + std::to_string(id) + " is assigned to plan " +
                                         std::to_string(chosen_index_[s]) + ", not to " +
                                         std::to_string(cluster.device_plan));
        }
        add_tasks(s, part_at.size(), cluster.device_plan, costs, tasks);
        part_at.push_back(id);
      }
    }
    if (seen.size() != sizes_.size()) {
      complain("/clusters", "layer " + std::to_string(layer.number) + " has clusters for " +
                                std::to_string(seen.size()) + " of " +
                                std::to_string(sizes_.size()) + " subgraphs");
    }
    const std::vector<double> switch_ms = input_->profile.switch_ms();
    const ReplayResult grouped = replay_clusters(tasks, switch_ms);
    makespan_ms += grouped.makespan_ms;
    if (plan_.choice.ranks && !diagnostics_.has_errors()) {
      verify_compute(*plan_.choice.ranks, index_of(layer.number - 1), tasks, part_at, switch_ms,
                     [&](const auto& at, const auto& text) { complain("/ranks" + at, text); });
    }
    switches_.switches += grouped.switches;
    switches_.switching_ms += grouped.switching_ms;
    if (!plan_.switches_cost()) return;
    for (ReplayTask& task : tasks) task.cluster = static_cast<std::int64_t>(task.position);
    ungrouped_ms_ += replay_clusters(tasks, switch_ms).makespan_ms;
  }

  // What switching costs, and what grouping saves of it.
  void check_switches() {
    const std::vector<double> switch_ms = input_->profile.switch_ms();
    for (std::size_t d = 0; d < plan_.devices.size(); ++d) {
      const std::string pointer = "/devices/" + std::to_string(d);
      const std::int32_t device = input_->profile.find_device(plan_.devices[d].name);
      if (device < 0) {
        complain(pointer, "device '" + plan_.devices[d].name + "' is not in the profile");
      } else if (!is_close(switch_ms[index_of(device)], plan_.devices[d].switch_ms)) {
        complain(pointer + "/switch_ms",
                 "the inputs say " + number_text(switch_ms[index_of(device)]) + ", the plan " +
                     number_text(plan_.devices[d].switch_ms));
      }
    }
    if (!plan_.switches_cost()) return;
    compare("plan_switches", plan_.predicted.plan_switches, switches_.switches);
    compare("switching_ms", plan_.predicted.switching_ms, switches_.switching_ms);
    compare("ungrouped_ms", plan_.predicted.ungrouped_ms, ungrouped_ms_);
  }

  void add_tasks(std::size_t subgraph, std::size_t position, std::int64_t cluster,
                 const DevicePlanCosts& costs, std::vector<ReplayTask>& tasks) const {
    const DevicePlan& device_plan = chosen_[subgraph];
    const DevicePlanCost cost = costs.cost(device_plan, sizes_[subgraph]);
    for (std::size_t s = 0; s < device_plan.segments.size(); ++s) {
      for (std::size_t i = 0; i < device_plan.segments[s].shares.size(); ++i) {
        const std::int32_t device = device_plan.segments[s].shares[i].device;
        tasks.push_back(
            {position, s, device, costs.resource_of(device), cluster, cost.share_ms[s][i]});
      }
    }
  }

  struct LayerBound {
    double dual_ms = 0;
    double load_ms = 0;
    double makespan_ms = 0;  // at least the load, and no subgraph is faster than its fastest plan
    std::string proof;
  };

  LayerBound check_bound(const PlanLayer& layer, const DevicePlanCosts& costs) {
    const auto found =
        std::find_if(plan_.proof.layers.rbegin(), plan_.proof.layers.rend(),
                     [&](const LayerProof& proof) { return proof.layer == layer.number; });
    if (found == plan_.proof.layers.rend()) {
      complain("/bounds", "layer " + std::to_string(layer.number) + " has no bound");
      return {};
    }
    const std::vector<double>& multipliers = found->multipliers;
    double sum = 0;
    bool negative = false;
    for (const double multiplier : multipliers) {
      sum += multiplier;
      negative = negative || multiplier < 0;
    }
    if (multipliers.size() != index_of(costs.resource_count()) || negative ||
        std::abs(sum - 1) > 1e-9) {
      complain("/bounds", "the multipliers are no weights of the resources");
      return {};
    }
    const auto lists = candidates_of(layer, costs);
    const SelectionProblem problem = problem_of(lists, costs);
    const double value = lagrangian_bound(problem, multipliers);
    if (found->dual_bound_ms > value * (1 + 1e-9) + 1e-6) {
      complain("/bounds", "the multipliers prove " + std::to_string(value) + " ms, the plan says " +
                              number_text(found->dual_bound_ms));
    }
    LayerBound bound;
    bound.dual_ms = std::min(value, found->max_load_ms);
    bound.makespan_ms = bound.load_ms = found->load_bound_ms;
    for (const auto& candidates : problem.items) {
      double fastest = std::numeric_limits<double>::infinity();
      for (const LoadCandidate& candidate : candidates) {
        fastest = std::min(fastest, candidate.latency_ms);
      }
      bound.makespan_ms = std::max(bound.makespan_ms, fastest);
    }
    bound.makespan_ms = std::max(bound.makespan_ms, clustered_bound(lists, costs, multipliers));
    bound.proof = prove(problem, *found, value);
    return bound;
  }

  // A bound that counts the switches that no choice avoids; candidates that --top-k has left out
  // are none.
  double clustered_bound(const std::vector<std::vector<PlanCandidate>>& candidates,
                         const DevicePlanCosts& costs,
                         const std::vector<double>& multipliers) const {
    if (!plan_.switches_cost()) return 0;
    std::vector<std::int32_t> resource_of;
    for (std::size_t d = 0; d < names_.size(); ++d) {
      resource_of.push_back(costs.resource_of(static_cast<std::int32_t>(d)));
    }
    const std::vector<double> switch_ms = input_->profile.switch_ms();
    ClusterCosts clusters(switch_ms, resource_of);
    if (!ClusterCosts::is_affordable(candidates)) return 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      clusters.add_item();
      for (const PlanCandidate& candidate : candidates[i]) {
        std::string key = device_plan_text(candidate.device_plan, names_);
        for (const std::string& program : costs.static_programs(candidate.device_plan, sizes_[i])) {
          key += " " + program;
        }
        clusters.add(key, candidate);
      }
    }
    return clusters.best_bound_ms(multipliers);
  }

  // Which of the ways to prove a load bound does; `value` is what the multipliers prove.
  std::string prove(const SelectionProblem& problem, const LayerProof& stated, double value) {
    // Sums in another order differ in the last digits.
    const double claim = stated.load_bound_ms * (1 - 1e-9) - 1e-6;
    if (claim <= value) return "lagrangian";
    switch (check_load_bound(problem, claim, stated.multipliers)) {
      case BoundCheck::kHolds:
        return "search";
      case BoundCheck::kFails:
        complain("/bounds", "some choice has loads below the bound of " +
                                number_text(stated.load_bound_ms) + " ms of layer " +
                                std::to_string(stated.layer));
        return "none";
      case BoundCheck::kUnknown:
        break;
    }
    diagnostics_.warning({.file = path_, .pointer = "/bounds"},
                         "the bound of layer " + std::to_string(stated.layer) +
                             " takes too long to prove anew; the multipliers prove " +
                             std::to_string(value) + " ms");
    return "unchecked";
  }

  static SelectionProblem problem_of(const std::vector<std::vector<PlanCandidate>>& candidates,
                                     const DevicePlanCosts& costs) {
    SelectionProblem problem;
    problem.resource_count = costs.resource_count();
    for (const auto& list : candidates) {
      auto& item = problem.items.emplace_back();
      for (const PlanCandidate& candidate : list) {
        item.push_back({candidate.cost.resource_ms, candidate.cost.latency_ms});
      }
    }
    return problem;
  }

  // What each subgraph may run under.
  std::vector<std::vector<PlanCandidate>> candidates_of(const PlanLayer& layer,
                                                        const DevicePlanCosts& costs) const {
    const std::vector<DevicePlan> legal = legal_structures(
        costs, layer, static_cast<std::int32_t>(names_.size()), plan_.settings.max_segments);
    const std::int32_t top_k = plan_.settings.top_k;
    std::vector<std::vector<PlanCandidate>> lists;
    for (const SubgraphSize& size : sizes_) {
      auto candidates = plan_candidates(costs, legal, size, nullptr);
      // With --top-k the bound is one for the fastest candidates and those on one device.
      std::vector<std::size_t> rank(candidates.size());
      std::iota(rank.begin(), rank.end(), std::size_t{0});
      std::stable_sort(rank.begin(), rank.end(), [&](std::size_t a, std::size_t b) {
        return candidates[a].cost.latency_ms < candidates[b].cost.latency_ms;
      });
      auto& list = lists.emplace_back();
      for (std::size_t i = 0; i < rank.size(); ++i) {
        PlanCandidate& candidate = candidates[rank[i]];
        if (top_k > 0 && i >= index_of(top_k) && !candidate.is_single_device()) continue;
        list.push_back(std::move(candidate));
      }
    }
    return lists;
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  const GnnPlan plan_;
  std::unique_ptr<PlanInput> input_;
  std::vector<std::string> names_;
  std::vector<std::int32_t> part_of_;  // by node
  std::vector<SubgraphSize> sizes_;
  std::map<std::int64_t, std::size_t> index_;  // by id
  std::vector<DevicePlan> chosen_;             // by subgraph
  std::vector<std::int64_t> chosen_index_;     // by subgraph: into the plan's device plans; or -1
  ReplayResult switches_;                      // of all layers; without the makespan
  double ungrouped_ms_ = 0;
};

}  // namespace

PlanCheck verify_plan(const std::string& path, Diagnostics& diagnostics) {
  return Verifier(path, diagnostics).run();
}

Json to_json(const PlanCheck& check) {
  Json json = {{"ok", check.ok},
               {"makespan_ms", check.makespan_ms},
               {"max_load_ms", check.max_load_ms},
               {"dual_bound_ms", check.dual_bound_ms},
               {"load_bound_ms", check.load_bound_ms}};
  Json& proofs = json["bound_proofs"] = Json::array();
  for (const BoundProof& proof : check.proofs) {
    proofs.push_back({{"layer", proof.layer}, {"proof", proof.proof}});
  }
  return json;
}

}  // namespace npu::gnn
