// SPDX-License-Identifier: Apache-2.0
// Builds the plan document from what the planner found for every number of parts: names instead of
// indices, rounded times, totals over the layers. O(subgraphs + plans tried).
#include "gnn/plan/assemble_plan.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "gnn/plan/document/check_plan.hpp"
#include "gnn/plan/document/plan_crossings.hpp"
#include "npu/support/ids.hpp"
#include "support/text.hpp"

namespace npu::gnn {
namespace {

// Half of the predictions of such a table are off by more.
constexpr double kMostInterpolationError = 0.15;

// So much of a plan's time may rest on disturbed times: even if those are twice as long as they
// should be, the whole is off by 5 %.
constexpr double kMostDisturbed = 0.1;

double rounded(double ms) { return std::round(ms * 1e6) / 1e6; }
// A bound must not grow by rounding.
double rounded_down(double ms) { return std::floor(ms * 1e6) / 1e6; }

// How far above its bound a value is, as a share of the bound.
double gap_of(double value, double bound) {
  return rounded(bound > 0 ? std::max(0.0, value / bound - 1) : 0.0);
}

std::string relative_path(const std::string& path, const std::string& output) {
  if (path.empty() || output.empty() || std::filesystem::path(path).is_absolute()) return path;
  std::error_code error;
  const auto base = std::filesystem::path(output).parent_path();
  const auto result = std::filesystem::proximate(path, base.empty() ? "." : base, error);
  return error ? path : result.generic_string();
}

class Assembler {
 public:
  Assembler(const PlanInput& input, const MakePlanOptions& options,
            const std::vector<PartsPlan>& all, const PartsPlan& best)
      : input_(input), options_(options), all_(all), best_(best) {
    for (const ProfileDevice& device : input.profile.devices) names_.push_back(device.name);
  }

  PlanResult assemble() {
    add_inputs();
    add_subgraphs();
    double start_ms = 0;
    for (std::size_t l = 0; l < best_.layers.size(); ++l) {
      add_device_plans(l);
      add_assignments(l);
      add_schedule(l, start_ms);
      add_layer_totals(l);
      start_ms += best_.layers[l].simulation.makespan_ms;
    }
    add_totals();
    for (const PartsPlan& plan : all_) plan_.search.sweep.push_back(sweep_row(plan));
    plan_.choice.ranks = best_.ranks;
    if (!best_.covers.empty()) {
      plan_.choice.exchange = {.host = input_.settings.host, .parts = best_.covers, .layers = {}};
      plan_.choice.exchange->layers = count_crossings(plan_, *input_.model);
    }
    add_rejected();
    return {std::move(plan_), best_.partition.part_of, std::move(schedule_), {}};
  }

 private:
  void add_inputs() {
    PlanFiles& files = plan_.files;
    if (input_.model) {
      files.model = beside_output(options_.model);
      files.model_hash = input_.model->hash;
    }
    if (input_.graph) {
      const bool is_rewritten = !options_.csr_file.empty();
      files.graph = beside_output(is_rewritten ? options_.csr_file : options_.graph);
      files.graph_nodes = input_.graph->in_edges.node_count();
      files.graph_edges = input_.graph->in_edges.entry_count();
      files.node_count_given = !is_rewritten && options_.graph_options.node_count.has_value();
      files.undirected = !is_rewritten && options_.graph_options.undirected;
      files.one_loop = !is_rewritten && input_.model && input_.model->one_loop;
      plan_.choice.partition = {beside_output(partition_path(options_)),
                                best_.partition.hash,
                                best_.partition.seed,
                                best_.partition.edge_cut,
                                best_.partition.imbalance,
                                best_.partition.repaired_parts,
                                best_.levels,
                                best_.coarsest_nodes,
                                input_.found ? input_.found->partitioner : "",
                                input_.found ? input_.found->processes : 0};
    } else {
      files.subgraphs = beside_output(options_.subgraphs);
    }
    files.profile = beside_output(options_.profile);
    files.precision = input_.profile.precision;
    files.bandwidths = beside_output(options_.bandwidths);
    plan_.settings = options_.settings;
    const std::vector<double> switch_ms = input_.profile.switch_ms();
    for (std::size_t d = 0; d < switch_ms.size(); ++d) {
      const ProfileDevice& device = input_.profile.devices[d];
      plan_.devices.push_back(
          {device.name, device.resource, device.is_static, device.backend, switch_ms[d]});
    }
  }

  std::string beside_output(const std::string& path) const {
    return relative_path(path, options_.output);
  }

  void add_subgraphs() {
    plan_.choice.k = best_.k;
    plan_.choice.pad = best_.pad;
    for (const SubgraphSize& size : best_.sizes) {
      plan_.choice.subgraphs.push_back(
          {size, padded_size(size.n, best_.pad), padded_size(size.m, best_.pad)});
    }
  }

  // The device plans of a layer in the order in which its clusters need them, and the clusters.
  void add_device_plans(std::size_t l) {
    const LayerPlan& layer = best_.layers[l];
    const std::int32_t number = input_.layers[l].number;
    ids_.clear();
    for (const Cluster& cluster : layer.clusters) {
      const auto [found, is_new] =
          ids_.emplace(cluster.key, static_cast<std::int64_t>(plan_.choice.device_plans.size()));
      if (is_new) {
        const DevicePlan& device_plan = layer.chosen[index_of(cluster.members.front())].device_plan;
        plan_.choice.device_plans.push_back(
            {found->second, number, cluster.key, named_segments(device_plan)});
      }
      PlanCluster& planned = plan_.choice.clusters.emplace_back();
      planned.layer = number;
      planned.device_plan = found->second;
      for (const std::int32_t i : cluster.members) {
        planned.subgraphs.push_back(best_.sizes[index_of(i)].id);
      }
    }
  }

  std::vector<PlannedSegment> named_segments(const DevicePlan& device_plan) const {
    std::vector<PlannedSegment> segments;
    for (const StageSegment& segment : device_plan.segments) {
      PlannedSegment& named = segments.emplace_back();
      named.first = segment.first;
      named.last = segment.last;
      for (const GroupShare& share : segment.shares) {
        named.shares.push_back({names_[index_of(share.device)], share.percent / 100.0});
      }
    }
    return segments;
  }

  void add_assignments(std::size_t l) {
    const LayerPlan& layer = best_.layers[l];
    for (std::size_t i = 0; i < best_.sizes.size(); ++i) {
      const DevicePlanCost& cost = layer.chosen[i].cost;
      PlanAssignment& assignment = plan_.choice.assignments.emplace_back();
      assignment.layer = input_.layers[l].number;
      assignment.subgraph = best_.sizes[i].id;
      assignment.device_plan = ids_.at(layer.keys[i]);
      for (std::size_t d = 0; d < names_.size(); ++d) {
        if (cost.device_ms[d] > 0) {
          assignment.device_ms.emplace_back(names_[d], rounded(cost.device_ms[d]));
        }
      }
      assignment.latency_ms = rounded(cost.latency_ms);
      assignment.transfer_ms = rounded(cost.transfer_ms);
      assignment.extrapolated = cost.extrapolated;
      assignment.disturbed = cost.disturbed;
    }
  }

  void add_schedule(std::size_t l, double start_ms) {
    const LayerPlan& layer = best_.layers[l];
    for (const SimTask& task : layer.simulation.tasks) {
      const auto i = index_of(layer.order[index_of(task.item)]);
      const StageSegment& segment = layer.chosen[i].device_plan.segments[index_of(task.segment)];
      schedule_.push_back(
          {input_.layers[l].number, best_.sizes[i].id, layer.keys[i],
           "[" + std::to_string(segment.first) + "-" + std::to_string(segment.last) + "]",
           names_[index_of(task.device)], start_ms + task.start_ms, start_ms + task.end_ms});
    }
  }

  // Sums are rounded once, at the end.
  void add_layer_totals(std::size_t l) {
    const LayerPlan& layer = best_.layers[l];
    device_ms_.resize(names_.size(), 0);
    for (const PlanCandidate& candidate : layer.chosen) {
      for (std::size_t d = 0; d < names_.size(); ++d) device_ms_[d] += candidate.cost.device_ms[d];
      if (candidate.cost.extrapolated) ++plan_.predicted.extrapolated;
      if (candidate.cost.disturbed) ++plan_.predicted.disturbed;
      compute_ms_ += candidate.cost.compute_ms;
      disturbed_ms_ += candidate.cost.disturbed_ms;
    }
    max_load_ms_ += layer.selection.max_load;
    least_load_ms_ += layer.least_load_ms;
    load_bound_ms_ += layer.selection.bound;
    compile_ms_ += layer.compile_ms;
    plan_.predicted.plan_switches += layer.simulation.switches;
    switching_ms_ += layer.simulation.switching_ms;
    ungrouped_ms_ += layer.ungrouped_ms;
    plan_.predicted.programs.insert(plan_.predicted.programs.end(), layer.programs.begin(),
                                    layer.programs.end());
    plan_.proof.layers.push_back(
        {input_.layers[l].number, layer.selection.multipliers,
         rounded_down(layer.selection.dual_bound), rounded_down(layer.selection.bound),
         rounded(layer.least_load_ms), rounded(layer.selection.max_load),
         rounded(layer.simulation.makespan_ms), layer.selection.search_finished});
  }

  void add_totals() {
    for (std::size_t d = 0; d < names_.size(); ++d) {
      plan_.predicted.loads_ms.emplace_back(names_[d],
                                            rounded(d < device_ms_.size() ? device_ms_[d] : 0));
    }
    plan_.predicted.max_load_ms = rounded(max_load_ms_);
    plan_.proof.load_bound_ms = rounded_down(load_bound_ms_);
    plan_.proof.load_gap = gap_of(max_load_ms_, load_bound_ms_);
    plan_.proof.least_load_ms = rounded(least_load_ms_);
    plan_.proof.least_load_gap = gap_of(least_load_ms_, load_bound_ms_);
    plan_.predicted.makespan_ms = rounded(best_.makespan_ms);
    plan_.proof.lower_bound_ms = rounded_down(best_.lower_bound_ms);
    plan_.proof.gap = gap_of(best_.makespan_ms, best_.lower_bound_ms);
    plan_.predicted.program_count = static_cast<std::int64_t>(plan_.predicted.programs.size());
    plan_.predicted.compile_ms = rounded(compile_ms_);
    if (plan_.switches_cost()) {
      plan_.predicted.switching_ms = rounded(switching_ms_);
      plan_.predicted.ungrouped_ms = rounded(ungrouped_ms_);
    }
    add_best_single_device();
    add_uncertainty();
  }

  // What a reader of the prediction has to know of the table.
  void add_uncertainty() {
    const std::string all =
        " of " + std::to_string(plan_.choice.assignments.size()) + " assignments ";
    if (plan_.predicted.extrapolated > 0) {
      double largest = 0;
      for (const ProfileEntry& entry : input_.profile.entries) {
        largest = std::max(largest, entry.n);
      }
      plan_.predicted.uncertain.push_back(
          std::to_string(plan_.predicted.extrapolated) + all +
          "lie outside of what was measured (up to " +
          std::to_string(static_cast<std::int64_t>(largest)) +
          " nodes): npu-profile --graph measures at the sizes of a graph");
    }
    if (disturbed_ms_ > kMostDisturbed * compute_ms_) {
      plan_.predicted.uncertain.push_back(std::to_string(plan_.predicted.disturbed) + all +
                                          "go by times that other work on the machine disturbed: "
                                          "npu-profile measures those again");
    }
    if (const auto held = input_.profile.stated_hold_out()) {
      if (held->points == 0) {
        plan_.predicted.uncertain.push_back("how well the table interpolates is not known");
      } else if (held->median_error > kMostInterpolationError) {
        plan_.predicted.uncertain.push_back("the table misses points that are left out of it by " +
                                            fixed_text(100 * held->median_error, 0) +
                                            " % (median)");
      }
    }
  }

  void add_best_single_device() {
    const double* best_ms = nullptr;
    std::set<std::string> seen;
    for (const PartsPlan& plan : all_) {
      for (const auto& [name, ms] : plan.single_ms) {
        // In as few parts as it can have the graph in: more of them only add work.
        if (!seen.insert(name).second || (best_ms != nullptr && ms >= *best_ms)) continue;
        best_ms = &ms;
        plan_.predicted.best_single_device = {name, rounded(ms), plan.k};
      }
    }
    if (best_ms == nullptr) return;
    plan_.predicted.speedup = rounded(best_.makespan_ms > 0 ? *best_ms / best_.makespan_ms : 1);
  }

  static SweepRow sweep_row(const PartsPlan& plan) {
    SweepRow row;
    row.k = plan.k;
    row.edge_cut = plan.partition.edge_cut;
    for (const SubgraphSize& size : plan.sizes) row.halo += size.halo;
    row.infeasible = plan.infeasible;
    if (!row.infeasible.empty()) return row;
    row.pad = plan.pad;
    row.passed_over = plan.passed_over;
    row.makespan_ms = rounded(plan.makespan_ms);
    row.lower_bound_ms = rounded_down(plan.lower_bound_ms);
    row.gap = gap_of(plan.makespan_ms, plan.lower_bound_ms);
    if (plan.ranks) row.ranks_makespan_ms = plan.ranks->makespan_ms();
    for (const auto& [name, ms] : plan.single_ms) {
      row.single_device_ms.emplace_back(name, rounded(ms));
    }
    return row;
  }

  void add_rejected() {
    for (const PlanLayer& layer : input_.layers) {
      const DevicePlanCosts costs(input_.profile, layer, input_.settings);
      for (const DevicePlan& device_plan :
           enumerate_device_plans(layer.stage_count, static_cast<std::int32_t>(names_.size()),
                                  options_.settings.max_segments)) {
        const std::string reason = costs.structure_refusal(device_plan);
        if (reason.empty()) {
          ++plan_.search.legal_classes;
        } else {
          plan_.search.rejected.push_back(
              {layer.number, device_plan_text(device_plan, names_), reason});
        }
      }
    }
  }

  const PlanInput& input_;
  const MakePlanOptions& options_;
  const std::vector<PartsPlan>& all_;
  const PartsPlan& best_;
  std::vector<std::string> names_;
  GnnPlan plan_;
  std::vector<ScheduledTask> schedule_;
  std::map<std::string, std::int64_t> ids_;  // of the layer's device plans, by key
  std::vector<double> device_ms_;
  double max_load_ms_ = 0;
  double compute_ms_ = 0;
  double disturbed_ms_ = 0;
  double least_load_ms_ = 0;
  double load_bound_ms_ = 0;
  double compile_ms_ = 0;
  double switching_ms_ = 0;
  double ungrouped_ms_ = 0;
};

}  // namespace

std::string partition_path(const MakePlanOptions& options) {
  if (!options.partition_file.empty()) return options.partition_file;
  if (options.output.empty()) return {};
  return std::filesystem::path(options.output).replace_extension(".part").string();
}

PlanResult assemble_plan(const PlanInput& input, const MakePlanOptions& options,
                         const std::vector<PartsPlan>& plans) {
  const PartsPlan* best = nullptr;
  for (const PartsPlan& plan : plans) {
    if (!plan.is_eligible()) continue;
    if (best == nullptr || plan.whole_ms() < best->whole_ms()) best = &plan;
  }
  if (best == nullptr) throw std::logic_error("assemble_plan: no plan is eligible");
  return Assembler(input, options, plans, *best).assemble();
}

}  // namespace npu::gnn
