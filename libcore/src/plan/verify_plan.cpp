// SPDX-License-Identifier: Apache-2.0
// Checks a plan against its inputs without the code that found it.
//
// Sizes are counted anew with sets, structure and legality by definition, loads by summing, the
// makespan by replaying the clusters event by event, and the bound by evaluating the stored
// multipliers over all candidates. A bound that a search raised above that of the multipliers is
// proven anew by another search (verify_selection.cpp); one that would take too long is reported as
// not proven here. O(edges log nodes) for the sizes, O(tasks^2) for the replay.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "npu/plan/plan_gnn.hpp"
#include "npu/support/file_io.hpp"

namespace npu {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

class Verifier {
 public:
  Verifier(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics) {}

  Json run() {
    plan_ = parse_json(read_file(path_), path_);
    const Json* npu = find_member(plan_, "npu");
    const Json* kind = npu == nullptr ? nullptr : find_member(*npu, "kind");
    if (kind == nullptr || *kind != "plan") {
      throw Error(ErrorCode::kParse, "expected a document of kind 'plan'",
                  {.file = path_, .pointer = "/npu/kind"});
    }
    try {
      return check();
    } catch (const Json::exception& error) {
      throw Error(ErrorCode::kParse, std::string("the plan is not complete: ") + error.what(),
                  {.file = path_});
    }
  }

 private:
  void complain(const std::string& pointer, const std::string& text) {
    diagnostics_.error({.file = path_, .pointer = pointer}, text);
  }

  std::string resolve(const char* key) const {
    const Json* member = find_member(plan_, key);
    if (member == nullptr) return {};
    const std::filesystem::path file(member->get<std::string>());
    if (file.empty() || file.is_absolute()) return file.string();
    return (std::filesystem::path(path_).parent_path() / file).string();
  }

  bool close(double a, double b) const {
    return std::abs(a - b) <= 1e-5 + 1e-6 * std::max(std::abs(a), std::abs(b));
  }

  Json check() {
    PlanGnnOptions options;
    options.graph = resolve("graph");
    options.subgraphs = resolve("subgraphs_file");
    options.model = resolve("model");
    options.profile = resolve("profile");
    options.bandwidths = resolve("bandwidths");
    const Json& stored = plan_.at("options");
    options.transfers = stored.at("transfers").get<bool>();
    options.interpolation = stored.at("interpolation") == "nearest" ? Interpolation::kNearest
                                                                    : Interpolation::kBilinear;
    options.ratios = stored.at("ratios").get<std::vector<double>>();
    options.max_segments = stored.at("max_segments").get<std::int32_t>();
    options.top_k = stored.at("top_k").get<std::int32_t>();
    options.target = stored.at("target").get<std::string>();
    options.devices = stored.at("devices").get<std::vector<std::string>>();
    options.excludes = stored.at("exclude").get<std::vector<std::string>>();
    options.memory = stored.at("memory").get<std::vector<std::string>>();
    options.resources = stored.at("resource").get<std::vector<std::string>>();
    options.pad = plan_.at("pad").get<std::int64_t>();
    if (options.pad < 1) complain("/pad", "expected a positive quantum");
    if (plan_.contains("graph_node_count_option")) {
      options.graph_options.node_count = plan_.at("graph_nodes").get<std::int64_t>();
    }
    options.graph_options.undirected = plan_.contains("graph_undirected");
    Diagnostics ignored;
    input_ = read_plan_input(options, ignored);
    input_->settings.pad = std::max<std::int64_t>(1, options.pad);
    for (const ProfileDevice& device : input_->profile.devices) names_.push_back(device.name);
    check_sizes();
    input_->settings.whole_graph = sizes_.size() == 1;
    double makespan = 0;
    double max_load = 0;
    double dual_bound = 0;
    double bound_sum = 0;
    double lower_sum = 0;
    std::map<std::string, double> loads;
    Json proofs = Json::array();
    for (const PlanLayer& layer : input_->layers) {
      const PepCosts costs(input_->profile, layer, input_->settings);
      check_assignments(layer, costs, loads, max_load);
      makespan += replay(layer, costs);
      LayerBound bound = check_bound(layer, costs, options);
      dual_bound += bound.dual_ms;
      bound_sum += bound.load_ms;
      lower_sum += bound.makespan_ms;
      proofs.push_back({{"layer", layer.number}, {"proof", bound.proof}});
    }
    for (const auto& [name, value] : plan_.at("loads_ms").items()) {
      if (!close(loads[name], value.get<double>())) {
        complain("/loads_ms/" + name, "the load of '" + name + "' is " +
                                          std::to_string(loads[name]) + " ms, the plan says " +
                                          value.dump());
      }
    }
    const auto compare = [&](const char* key, double value) {
      if (!close(plan_.at(key).get<double>(), value)) {
        complain("/" + std::string(key), "recomputed as " + std::to_string(value) +
                                             ", the plan says " + plan_.at(key).dump());
      }
    };
    compare("makespan_ms", makespan);
    compare("max_load_ms", max_load);
    const double lower = plan_.at("lower_bound_ms").get<double>();
    const double load_bound = plan_.at("load_bound_ms").get<double>();
    if (lower > makespan + 1e-5) complain("/lower_bound_ms", "the bound is above the makespan");
    if (load_bound > max_load + 1e-5) {
      complain("/load_bound_ms", "the bound is above the largest load");
    }
    if (const Json* least = find_member(plan_, "least_load_ms");
        least != nullptr && least->get<double>() + 1e-5 < load_bound) {
      complain("/least_load_ms", "the load is below its bound of " + std::to_string(load_bound));
    }
    // Each bound is rounded down by itself.
    const auto at_most = [&](const char* key, double sum) {
      if (plan_.at(key).get<double>() > sum + 1e-5) {
        complain("/" + std::string(key), "the bounds of the layers add up to " +
                                             std::to_string(sum) + " ms, the plan says " +
                                             plan_.at(key).dump());
      }
    };
    at_most("load_bound_ms", bound_sum);
    at_most("lower_bound_ms", lower_sum);
    // Both times are rounded to the nanosecond, of which short plans have few.
    const double gap = lower > 0 ? std::max(0.0, makespan / lower - 1) : 0.0;
    const double stated = plan_.at("gap").get<double>();
    if (lower > 0 && !close(stated, gap) && std::abs(stated - gap) > 2e-6 / lower) {
      compare("gap", gap);
    }
    return {{"ok", !diagnostics_.has_errors()}, {"makespan_ms", makespan},
            {"max_load_ms", max_load},          {"dual_bound_ms", dual_bound},
            {"load_bound_ms", load_bound},      {"bound_proofs", std::move(proofs)}};
  }

  void check_sizes() {
    std::map<std::int64_t, SubgraphSize> expected;
    if (input_->graph) {
      const CsrGraph& graph = input_->graph->in_edges;
      const Json& partition = plan_.at("partition");
      const std::string file = partition.at("file").get<std::string>();
      const std::string resolved =
          std::filesystem::path(file).is_absolute()
              ? file
              : (std::filesystem::path(path_).parent_path() / file).string();
      const auto part_of = parse_partition(read_file(resolved), resolved, graph.node_count());
      if (partition_hash(part_of) != partition.at("hash").get<std::string>()) {
        complain("/partition/hash", "the partition in " + resolved + " has another hash");
      }
      std::map<std::int64_t, std::set<std::int32_t>> halo;
      std::int64_t cut = 0;
      for (std::int32_t v = 0; v < graph.node_count(); ++v) {
        const std::int32_t part = part_of[at(v)];
        SubgraphSize& size = expected[part];
        ++size.n;
        for (const std::int32_t u : graph.row(v)) {
          ++size.m;
          if (part_of[at(u)] == part) continue;
          ++size.cut_edges;
          ++cut;
          halo[part].insert(u);
        }
      }
      for (auto& [part, size] : expected) {
        size.halo = static_cast<std::int64_t>(halo[part].size());
        size.n += size.halo;
      }
    } else {
      for (const SubgraphSize& size : input_->subgraphs) expected[size.id] = size;
    }
    const Json& list = plan_.at("subgraphs");
    if (list.size() != expected.size() || plan_.at("k").get<std::size_t>() != expected.size()) {
      complain("/subgraphs", "the plan has " + std::to_string(list.size()) +
                                 " subgraphs, its input " + std::to_string(expected.size()));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string pointer = "/subgraphs/" + std::to_string(i);
      const std::int64_t id = list[i].at("id").get<std::int64_t>();
      const auto found = expected.find(id);
      if (found == expected.end() || !index_.emplace(id, sizes_.size()).second) {
        complain(pointer, "subgraph " + std::to_string(id) + " is unknown or listed twice");
        continue;
      }
      SubgraphSize size = found->second;
      size.id = static_cast<std::int32_t>(id);
      sizes_.push_back(size);
      const std::int64_t pad = input_->settings.pad;
      const auto check_value = [&](const char* key, std::int64_t value) {
        if (list[i].at(key).get<std::int64_t>() != value) {
          complain(pointer + "/" + key, "counted as " + std::to_string(value) + ", the plan says " +
                                            list[i].at(key).dump());
        }
      };
      check_value("n", size.n);
      check_value("m", size.m);
      check_value("halo", size.halo);
      check_value("cut_edges", size.cut_edges);
      check_value("n_pad", std::max<std::int64_t>(1, (size.n + pad - 1) / pad) * pad);
      check_value("m_pad", std::max<std::int64_t>(1, (size.m + pad - 1) / pad) * pad);
    }
  }

  // The plan of `pep`, checked against the rules.
  Pep read_pep(const Json& json, const PlanLayer& layer, const std::string& pointer) {
    Pep pep;
    std::set<std::int32_t> used;
    std::int32_t next = 1;
    for (const Json& segment_json : json.at("segments")) {
      PepSegment segment;
      segment.first = segment_json.at("first").get<std::int32_t>();
      segment.last = segment_json.at("last").get<std::int32_t>();
      if (segment.first != next || segment.last < segment.first) {
        complain(pointer, "segments are not contiguous from stage " + std::to_string(next));
      }
      next = segment.last + 1;
      std::int32_t percents = 0;
      for (const Json& share : segment_json.at("devices")) {
        const std::string name = share.at("device").get<std::string>();
        const std::int32_t device = input_->profile.find_device(name);
        if (device < 0) {
          complain(pointer, "device '" + name + "' is not in the profile");
          return {};
        }
        if (!used.insert(device).second) {
          complain(pointer, "device '" + name + "' is used twice");
        }
        segment.shares.push_back({device, static_cast<std::int32_t>(
                                              std::lround(share.at("ratio").get<double>() * 100))});
        percents += segment.shares.back().percent;
        for (std::int32_t s = segment.first; s <= std::min(segment.last, layer.stage_count); ++s) {
          const std::string& refusal = layer.refusals[at(device)][at(s - 1)];
          if (!refusal.empty()) {
            complain(pointer, name + " does not run stage " + std::to_string(s) + ": " + refusal);
          }
        }
      }
      if (percents != 100) complain(pointer, "the ratios of a segment do not sum up to 1");
      pep.segments.push_back(std::move(segment));
    }
    if (next != layer.stage_count + 1 || pep.segments.empty()) {
      complain(pointer,
               "the segments do not cover the " + std::to_string(layer.stage_count) + " stages");
      return {};
    }
    if (static_cast<std::int32_t>(pep.segments.size()) >
        plan_.at("options").at("max_segments").get<std::int32_t>()) {
      complain(pointer, "too many segments");
    }
    return pep;
  }

  void check_assignments(const PlanLayer& layer, const PepCosts& costs,
                         std::map<std::string, double>& loads, double& max_load) {
    chosen_.assign(sizes_.size(), {});
    pep_of_.assign(sizes_.size(), -1);
    std::vector<char> seen(sizes_.size(), 0);
    std::map<std::int32_t, double> resource_ms;
    const Json& peps = plan_.at("peps");
    const Json& list = plan_.at("assignments");
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].at("layer").get<std::int32_t>() != layer.number) continue;
      const std::string pointer = "/assignments/" + std::to_string(i);
      const auto found = index_.find(list[i].at("subgraph").get<std::int64_t>());
      const auto pep_index = list[i].at("pep").get<std::size_t>();
      if (found == index_.end() || pep_index >= peps.size() || seen[found->second] != 0) {
        complain(pointer, "an unknown subgraph or plan, or a subgraph that is assigned twice");
        continue;
      }
      const std::size_t s = found->second;
      seen[s] = 1;
      pep_of_[s] = static_cast<std::int64_t>(pep_index);
      chosen_[s] = read_pep(peps[pep_index], layer, "/peps/" + std::to_string(pep_index));
      if (chosen_[s].segments.empty()) continue;
      const PepCost cost = costs.cost(chosen_[s], sizes_[s]);
      if (!cost.refusal.empty()) complain(pointer, cost.refusal);
      if (!close(cost.latency_ms, list[i].at("latency_ms").get<double>())) {
        complain(pointer + "/latency_ms", "recomputed as " + std::to_string(cost.latency_ms));
      }
      for (std::size_t d = 0; d < names_.size(); ++d) {
        loads[names_[d]] += cost.device_ms[d];
        resource_ms[costs.resource_of(static_cast<std::int32_t>(d))] += cost.device_ms[d];
      }
    }
    for (std::size_t s = 0; s < seen.size(); ++s) {
      if (seen[s] == 0) {
        complain("/assignments", "subgraph " + std::to_string(sizes_[s].id) +
                                     " has no plan in layer " + std::to_string(layer.number));
      }
    }
    double largest = 0;
    for (const auto& [resource, ms] : resource_ms) largest = std::max(largest, ms);
    max_load += largest;
  }

  // Executes the clusters of a layer: at every moment, each idle resource takes what comes first.
  double replay(const PlanLayer& layer, const PepCosts& costs) {
    struct Task {
      std::size_t position;
      std::size_t subgraph;
      std::size_t segment;
      std::size_t share;
      std::int32_t device;
      std::int64_t cluster;
      double ms;
      bool done = false;
    };
    std::vector<Task> tasks;
    std::set<std::size_t> seen;
    std::size_t position = 0;
    const Json& clusters = plan_.at("clusters");
    std::map<std::size_t, std::vector<std::vector<std::pair<bool, double>>>> ends;
    for (std::size_t c = 0; c < clusters.size(); ++c) {
      if (clusters[c].at("layer").get<std::int32_t>() != layer.number) continue;
      for (const Json& id : clusters[c].at("subgraphs")) {
        const auto found = index_.find(id.get<std::int64_t>());
        if (found == index_.end() || !seen.insert(found->second).second) {
          complain("/clusters/" + std::to_string(c),
                   "subgraph " + id.dump() + " is unknown or in two clusters");
          continue;
        }
        const Pep& pep = chosen_[found->second];
        if (pep.segments.empty()) continue;
        const auto cluster_pep = clusters[c].at("pep").get<std::int64_t>();
        if (cluster_pep != pep_of_[found->second]) {
          complain("/clusters/" + std::to_string(c) + "/pep",
                   "subgraph " + id.dump() + " is assigned to plan " +
                       std::to_string(pep_of_[found->second]) + ", not to " +
                       std::to_string(cluster_pep));
        }
        const PepCost cost = costs.cost(pep, sizes_[found->second]);
        auto& rows = ends[found->second];
        for (std::size_t s = 0; s < pep.segments.size(); ++s) {
          rows.emplace_back(pep.segments[s].shares.size(), std::pair{false, 0.0});
          for (std::size_t i = 0; i < pep.segments[s].shares.size(); ++i) {
            tasks.push_back({position, found->second, s, i, pep.segments[s].shares[i].device,
                             cluster_pep, cost.share_ms[s][i]});
          }
        }
        ++position;
      }
    }
    if (seen.size() != sizes_.size()) {
      complain("/clusters", "layer " + std::to_string(layer.number) + " has clusters for " +
                                std::to_string(seen.size()) + " of " +
                                std::to_string(sizes_.size()) + " subgraphs");
    }
    double switch_ms = 0;
    if (const Json* value = find_member(input_->profile.extra, "switch_ms");
        value != nullptr && value->is_number()) {
      switch_ms = value->get<double>();
    }
    std::map<std::int32_t, double> free_at;
    std::map<std::int32_t, std::int64_t> cluster_on;
    double makespan = 0;
    for (std::size_t left = tasks.size(); left > 0; --left) {
      Task* next = nullptr;
      double next_start = 0;
      for (Task& task : tasks) {
        if (task.done) continue;
        double ready = 0;
        bool is_ready = true;
        if (task.segment > 0) {
          for (const auto& [ended, end] : ends[task.subgraph][task.segment - 1]) {
            is_ready = is_ready && ended;
            ready = std::max(ready, end);
          }
        }
        if (!is_ready) continue;
        const double start = std::max(ready, free_at[costs.resource_of(task.device)]);
        const bool earlier = next == nullptr || start < next_start ||
                             (start == next_start && std::tuple(task.device, task.position) <
                                                         std::tuple(next->device, next->position));
        if (earlier) {
          next = &task;
          next_start = start;
        }
      }
      if (next == nullptr) break;
      double end = next_start + next->ms;
      const auto [where, is_first] = cluster_on.emplace(next->device, next->cluster);
      if (!is_first && where->second != next->cluster) {
        end += switch_ms;
        where->second = next->cluster;
      }
      next->done = true;
      ends[next->subgraph][next->segment][next->share] = {true, end};
      free_at[costs.resource_of(next->device)] = end;
      makespan = std::max(makespan, end);
    }
    return makespan;
  }

  struct LayerBound {
    double dual_ms = 0;
    double load_ms = 0;
    double makespan_ms = 0;  // at least the load, and no subgraph is faster than its fastest plan
    std::string proof;
  };

  LayerBound check_bound(const PlanLayer& layer, const PepCosts& costs,
                         const PlanGnnOptions& options) {
    const Json* found = nullptr;
    for (const Json& bound : plan_.at("bounds")) {
      if (bound.at("layer").get<std::int32_t>() == layer.number) found = &bound;
    }
    if (found == nullptr) {
      complain("/bounds", "layer " + std::to_string(layer.number) + " has no bound");
      return {};
    }
    const auto multipliers = found->at("multipliers").get<std::vector<double>>();
    double sum = 0;
    bool negative = false;
    for (const double multiplier : multipliers) {
      sum += multiplier;
      negative = negative || multiplier < 0;
    }
    if (multipliers.size() != at(costs.resource_count()) || negative || std::abs(sum - 1) > 1e-9) {
      complain("/bounds", "the multipliers are no weights of the resources");
      return {};
    }
    const SelectionProblem problem = problem_of(layer, costs, options);
    const double value = lagrangian_bound(problem, multipliers);
    if (found->at("dual_bound_ms").get<double>() > value * (1 + 1e-9) + 1e-6) {
      complain("/bounds", "the multipliers prove " + std::to_string(value) + " ms, the plan says " +
                              found->at("dual_bound_ms").dump());
    }
    LayerBound bound;
    bound.dual_ms = std::min(value, found->at("max_load_ms").get<double>());
    bound.makespan_ms = bound.load_ms = found->at("load_bound_ms").get<double>();
    for (const auto& candidates : problem.items) {
      double fastest = std::numeric_limits<double>::infinity();
      for (const LoadCandidate& candidate : candidates) {
        fastest = std::min(fastest, candidate.latency_ms);
      }
      bound.makespan_ms = std::max(bound.makespan_ms, fastest);
    }
    // Sums in another order differ in the last digits.
    const double claim = bound.load_ms * (1 - 1e-9) - 1e-6;
    if (claim <= value) {
      bound.proof = "lagrangian";
      return bound;
    }
    switch (check_load_bound(problem, claim, multipliers)) {
      case BoundCheck::kHolds:
        bound.proof = "search";
        break;
      case BoundCheck::kFails:
        bound.proof = "none";
        complain("/bounds", "some choice has loads below the bound of " +
                                found->at("load_bound_ms").dump() + " ms of layer " +
                                std::to_string(layer.number));
        break;
      case BoundCheck::kUnknown:
        bound.proof = "unchecked";
        diagnostics_.warning({.file = path_, .pointer = "/bounds"},
                             "the bound of layer " + std::to_string(layer.number) +
                                 " takes too long to prove anew; the multipliers prove " +
                                 std::to_string(value) + " ms");
    }
    return bound;
  }

  SelectionProblem problem_of(const PlanLayer& layer, const PepCosts& costs,
                              const PlanGnnOptions& options) const {
    std::vector<Pep> legal;
    for (const Pep& pep : enumerate_peps(
             layer.stage_count, static_cast<std::int32_t>(names_.size()), options.max_segments)) {
      if (costs.structure_refusal(pep).empty()) legal.push_back(pep);
    }
    SelectionProblem problem;
    problem.resource_count = costs.resource_count();
    for (const SubgraphSize& size : sizes_) {
      const auto candidates = plan_candidates(costs, legal, size, nullptr);
      // With --top-k the bound is one for the fastest candidates and those on one device.
      std::vector<std::size_t> rank(candidates.size());
      std::iota(rank.begin(), rank.end(), std::size_t{0});
      std::stable_sort(rank.begin(), rank.end(), [&](std::size_t a, std::size_t b) {
        return candidates[a].cost.latency_ms < candidates[b].cost.latency_ms;
      });
      auto& item = problem.items.emplace_back();
      for (std::size_t i = 0; i < rank.size(); ++i) {
        const PlanCandidate& candidate = candidates[rank[i]];
        const bool single =
            candidate.pep.segments.size() == 1 && candidate.pep.segments[0].shares.size() == 1;
        if (options.top_k > 0 && i >= at(options.top_k) && !single) continue;
        item.push_back({candidate.cost.resource_ms, candidate.cost.latency_ms});
      }
    }
    return problem;
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  Json plan_;
  std::unique_ptr<PlanInput> input_;
  std::vector<std::string> names_;
  std::vector<SubgraphSize> sizes_;
  std::map<std::int64_t, std::size_t> index_;
  std::vector<Pep> chosen_;
  std::vector<std::int64_t> pep_of_;  // by subgraph: its plan's place in "peps"
};

}  // namespace

Json verify_gnn_plan(const std::string& path, Diagnostics& diagnostics) {
  return Verifier(path, diagnostics).run();
}

}  // namespace npu
