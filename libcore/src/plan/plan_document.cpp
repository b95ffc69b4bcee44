// SPDX-License-Identifier: Apache-2.0
// Writes a plan as a document of kind "plan". O(subgraphs + plans tried).
#include "plan_document.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace npu {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

double rounded(double ms) { return std::round(ms * 1e6) / 1e6; }
// A bound must not grow by rounding.
double rounded_down(double ms) { return std::floor(ms * 1e6) / 1e6; }

std::string relative_path(const std::string& path, const std::string& output) {
  if (path.empty() || output.empty() || std::filesystem::path(path).is_absolute()) return path;
  std::error_code error;
  const auto base = std::filesystem::path(output).parent_path();
  const auto result = std::filesystem::proximate(path, base.empty() ? "." : base, error);
  return error ? path : result.generic_string();
}

class DocumentWriter {
 public:
  DocumentWriter(const PlanInput& input, const PlanGnnOptions& options)
      : input_(input), options_(options) {
    for (const ProfileDevice& device : input.profile.devices) names_.push_back(device.name);
  }

  GnnPlan write(std::vector<KPlan>& plans) {
    std::size_t best = plans.size();
    for (std::size_t p = 0; p < plans.size(); ++p) {
      if (!plans[p].infeasible.empty()) continue;
      if (best == plans.size() || plans[p].makespan_ms < plans[best].makespan_ms) best = p;
    }
    KPlan& plan = plans[best];
    GnnPlan result;
    Json& json = result.document;
    json["npu"] = {{"version", 1}, {"kind", "plan"}};
    write_inputs(json, plan);
    json["k"] = plan.k;
    if (input_.graph) {
      json["partition"] = {{"file", relative_path(partition_path(options_), options_.output)},
                           {"hash", plan.partition.hash},
                           {"seed", plan.partition.seed},
                           {"edge_cut", plan.partition.edge_cut},
                           {"imbalance", plan.partition.imbalance}};
      if (plan.partition.repaired_parts > 0) {
        json["partition"]["repaired_parts"] = plan.partition.repaired_parts;
      }
      result.part_of = plan.partition.part_of;
    }
    json["pad"] = plan.pad;
    write_subgraphs(json, plan);
    write_layers(json, plan, result.schedule);
    write_totals(json, plan, plans);
    write_sweep(json, plans);
    write_rejected(json);
    return result;
  }

 private:
  void write_inputs(Json& json, const KPlan&) const {
    if (input_.model) {
      json["model"] = relative_path(options_.model, options_.output);
      json["model_hash"] = input_.model->hash;
    }
    if (input_.graph) {
      json["graph"] = relative_path(options_.graph, options_.output);
      json["graph_nodes"] = input_.graph->in_edges.node_count();
      json["graph_edges"] = input_.graph->in_edges.entry_count();
      if (options_.graph_options.node_count) json["graph_node_count_option"] = true;
      if (options_.graph_options.undirected) json["graph_undirected"] = true;
    } else {
      json["subgraphs_file"] = relative_path(options_.subgraphs, options_.output);
    }
    json["profile"] = relative_path(options_.profile, options_.output);
    if (!options_.bandwidths.empty()) {
      json["bandwidths"] = relative_path(options_.bandwidths, options_.output);
    }
    Json options = {{"select", options_.greedy ? "greedy" : "optimal"},
                    {"transfers", options_.transfers},
                    {"interpolation",
                     options_.interpolation == Interpolation::kBilinear ? "bilinear" : "nearest"},
                    {"ratios", options_.ratios},
                    {"max_segments", options_.max_segments},
                    {"top_k", options_.top_k},
                    {"target", options_.target},
                    {"devices", options_.devices},
                    {"exclude", options_.excludes},
                    {"memory", options_.memory},
                    {"resource", options_.resources}};
    json["options"] = std::move(options);
    Json& devices = json["devices"] = Json::array();
    for (const ProfileDevice& device : input_.profile.devices) {
      devices.push_back(
          {{"name", device.name}, {"resource", device.resource}, {"static", device.is_static}});
    }
  }

  static void write_subgraphs(Json& json, const KPlan& plan) {
    Json& list = json["subgraphs"] = Json::array();
    const auto padded = [&](std::int64_t value) {
      return std::max<std::int64_t>(1, (value + plan.pad - 1) / plan.pad) * plan.pad;
    };
    for (const SubgraphSize& size : plan.sizes) {
      list.push_back({{"id", size.id},
                      {"n", size.n},
                      {"m", size.m},
                      {"halo", size.halo},
                      {"n_pad", padded(size.n)},
                      {"m_pad", padded(size.m)},
                      {"cut_edges", size.cut_edges}});
    }
  }

  void write_layers(Json& json, const KPlan& plan, std::vector<ScheduledTask>& schedule) const {
    Json peps = Json::array();
    Json clusters = Json::array();
    Json assignments = Json::array();
    double start = 0;
    for (std::size_t l = 0; l < plan.layers.size(); ++l) {
      const LayerPlan& layer = plan.layers[l];
      const std::int32_t number = input_.layers[l].number;
      std::map<std::string, std::int64_t> pep_ids;
      for (const Cluster& cluster : layer.clusters) {
        const auto first = at(cluster.members.front());
        const auto [found, is_new] =
            pep_ids.emplace(cluster.key, static_cast<std::int64_t>(peps.size()));
        const std::int64_t id = found->second;
        Json segments = Json::array();
        for (const PepSegment& segment : layer.chosen[first].pep.segments) {
          Json shares = Json::array();
          for (const GroupShare& share : segment.shares) {
            shares.push_back(
                {{"device", names_[at(share.device)]}, {"ratio", share.percent / 100.0}});
          }
          segments.push_back(
              {{"first", segment.first}, {"last", segment.last}, {"devices", std::move(shares)}});
        }
        if (is_new) {
          peps.push_back({{"id", id},
                          {"layer", number},
                          {"key", cluster.key},
                          {"segments", std::move(segments)}});
        }
        Json members = Json::array();
        for (const std::int32_t i : cluster.members) members.push_back(plan.sizes[at(i)].id);
        clusters.push_back({{"layer", number}, {"pep", id}, {"subgraphs", std::move(members)}});
      }
      for (std::size_t i = 0; i < plan.sizes.size(); ++i) {
        const PepCost& cost = layer.chosen[i].cost;
        Json device_ms = Json::object();
        for (std::size_t d = 0; d < names_.size(); ++d) {
          if (cost.device_ms[d] > 0) device_ms[names_[d]] = rounded(cost.device_ms[d]);
        }
        Json item = {{"layer", number},
                     {"subgraph", plan.sizes[i].id},
                     {"pep", pep_ids.at(layer.keys[i])},
                     {"device_ms", std::move(device_ms)},
                     {"latency_ms", rounded(cost.latency_ms)},
                     {"transfer_ms", rounded(cost.transfer_ms)}};
        if (cost.extrapolated) item["extrapolated"] = true;
        assignments.push_back(std::move(item));
      }
      for (const SimTask& task : layer.simulation.tasks) {
        const auto i = at(layer.order[at(task.item)]);
        const PepSegment& segment = layer.chosen[i].pep.segments[at(task.segment)];
        schedule.push_back(
            {number, plan.sizes[i].id, layer.keys[i],
             "[" + std::to_string(segment.first) + "-" + std::to_string(segment.last) + "]",
             names_[at(task.device)], start + task.start_ms, start + task.end_ms});
      }
      start += layer.simulation.makespan_ms;
    }
    json["peps"] = std::move(peps);
    json["clusters"] = std::move(clusters);
    json["assignments"] = std::move(assignments);
  }

  void write_totals(Json& json, const KPlan& plan, const std::vector<KPlan>& plans) const {
    std::vector<double> device_ms(names_.size(), 0);
    double max_load = 0;
    double least_load = 0;
    double load_bound = 0;
    std::int64_t extrapolated = 0;
    std::int32_t switches = 0;
    double compile_ms = 0;
    Json programs = Json::array();
    Json bounds = Json::array();
    for (std::size_t l = 0; l < plan.layers.size(); ++l) {
      const LayerPlan& layer = plan.layers[l];
      for (const PlanCandidate& candidate : layer.chosen) {
        for (std::size_t d = 0; d < names_.size(); ++d) {
          device_ms[d] += candidate.cost.device_ms[d];
        }
        if (candidate.cost.extrapolated) ++extrapolated;
      }
      max_load += layer.selection.max_load;
      least_load += layer.least_load_ms;
      load_bound += layer.selection.bound;
      switches += layer.simulation.switches;
      compile_ms += layer.compile_ms;
      for (const std::string& program : layer.programs) programs.push_back(program);
      bounds.push_back({{"layer", input_.layers[l].number},
                        {"multipliers", layer.selection.multipliers},
                        {"dual_bound_ms", rounded_down(layer.selection.dual_bound)},
                        {"load_bound_ms", rounded_down(layer.selection.bound)},
                        {"least_load_ms", rounded(layer.least_load_ms)},
                        {"max_load_ms", rounded(layer.selection.max_load)},
                        {"makespan_ms", rounded(layer.simulation.makespan_ms)},
                        {"search_finished", layer.selection.search_finished}});
    }
    Json& loads = json["loads_ms"] = Json::object();
    for (std::size_t d = 0; d < names_.size(); ++d) loads[names_[d]] = rounded(device_ms[d]);
    const auto gap = [](double value, double bound) {
      return bound > 0 ? std::max(0.0, value / bound - 1) : 0.0;
    };
    json["max_load_ms"] = rounded(max_load);
    json["load_bound_ms"] = rounded_down(load_bound);
    json["load_gap"] = rounded(gap(max_load, load_bound));
    json["least_load_ms"] = rounded(least_load);
    json["least_load_gap"] = rounded(gap(least_load, load_bound));
    json["makespan_ms"] = rounded(plan.makespan_ms);
    json["lower_bound_ms"] = rounded_down(plan.lower_bound_ms);
    json["gap"] = rounded(gap(plan.makespan_ms, plan.lower_bound_ms));
    std::string best_device;
    double best_ms = 0;
    std::int32_t best_k = 0;
    for (const KPlan& other : plans) {
      for (const auto& [name, ms] : other.single_ms) {
        if (best_device.empty() || ms < best_ms) {
          best_device = name;
          best_ms = ms;
          best_k = other.k;
        }
      }
    }
    if (best_device.empty()) {
      json["best_single_device"] = nullptr;
    } else {
      json["best_single_device"] = {
          {"device", best_device}, {"ms", rounded(best_ms)}, {"k", best_k}};
      json["speedup"] = rounded(plan.makespan_ms > 0 ? best_ms / plan.makespan_ms : 1);
    }
    json["plan_switches"] = switches;
    json["extrapolated"] = extrapolated;
    json["compiles"] = {{"count", programs.size()},
                        {"predicted_ms", rounded(compile_ms)},
                        {"programs", std::move(programs)}};
    json["bounds"] = std::move(bounds);
  }

  static void write_sweep(Json& json, const std::vector<KPlan>& plans) {
    Json& sweep = json["sweep"] = Json::array();
    for (const KPlan& plan : plans) {
      std::int64_t halo = 0;
      for (const SubgraphSize& size : plan.sizes) halo += size.halo;
      Json row = {{"k", plan.k}, {"edge_cut", plan.partition.edge_cut}, {"halo", halo}};
      if (!plan.infeasible.empty()) {
        row["infeasible"] = plan.infeasible;
        sweep.push_back(std::move(row));
        continue;
      }
      row["pad"] = plan.pad;
      row["makespan_ms"] = rounded(plan.makespan_ms);
      row["lower_bound_ms"] = rounded_down(plan.lower_bound_ms);
      row["gap"] = rounded(
          plan.lower_bound_ms > 0 ? std::max(0.0, plan.makespan_ms / plan.lower_bound_ms - 1) : 0);
      Json singles = Json::object();
      for (const auto& [name, ms] : plan.single_ms) singles[name] = rounded(ms);
      row["single_device_ms"] = std::move(singles);
      sweep.push_back(std::move(row));
    }
  }

  void write_rejected(Json& json) const {
    Json& rejected = json["rejected"] = Json::array();
    std::int64_t legal = 0;
    for (const PlanLayer& layer : input_.layers) {
      const PepCosts costs(input_.profile, layer, input_.settings);
      for (const Pep& pep :
           enumerate_peps(layer.stage_count, static_cast<std::int32_t>(names_.size()),
                          options_.max_segments)) {
        const std::string reason = costs.structure_refusal(pep);
        if (reason.empty()) {
          ++legal;
          continue;
        }
        rejected.push_back(
            {{"layer", layer.number}, {"pep", pep_text(pep, names_)}, {"reason", reason}});
      }
    }
    json["legal_classes"] = legal;
  }

  const PlanInput& input_;
  const PlanGnnOptions& options_;
  std::vector<std::string> names_;
};

}  // namespace

std::string partition_path(const PlanGnnOptions& options) {
  if (!options.partition_file.empty()) return options.partition_file;
  if (options.output.empty()) return {};
  return std::filesystem::path(options.output).replace_extension(".part").string();
}

GnnPlan write_plan(const PlanInput& input, const PlanGnnOptions& options,
                   std::vector<KPlan>& plans) {
  return DocumentWriter(input, options).write(plans);
}

}  // namespace npu
