// SPDX-License-Identifier: Apache-2.0
// Plans one layer of a graph neural network for one partition: every legal plan of every subgraph
// with its balanced split, selection by load, then a search for the order and the changes of plans
// that give the shortest schedule in a simulation of the workers. Where switching between programs
// takes time, subgraphs of small clusters are first given the plans of others.
//
// O(subgraphs * plans) estimates, the selection, and a fixed number of simulated tasks.
#include "gnn/plan/layer_planner.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "gnn/plan/costs/cluster_costs.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// What a plan over devices of one resource has to gain over one device alone.
constexpr double kSharedMargin = 0.05;

}  // namespace

LayerPlanner::LayerPlanner(const DevicePlanCosts& costs, const StageTable& profile,
                           const std::vector<SubgraphSize>& sizes, const MakePlanOptions& options,
                           PhaseTimes& times)
    : costs_(costs),
      sizes_(sizes),
      options_(options),
      switch_ms_(profile.switch_ms()),
      times_(times) {
  if (std::all_of(switch_ms_.begin(), switch_ms_.end(), [](double ms) { return ms == 0; })) {
    switch_ms_.clear();
  }
  for (const ProfileDevice& device : profile.devices) names_.push_back(device.name);
  for (std::size_t d = 0; d < names_.size(); ++d) {
    resource_of_.push_back(costs.resource_of(static_cast<std::int32_t>(d)));
  }
}

bool LayerPlanner::select(const std::vector<DevicePlan>& structures, LayerPlan& plan,
                          std::string& reason) {
  if (!find_candidates(structures, reason)) return false;
  select_loads(plan);
  plan.least_load_ms = plan.selection.max_load;
  plan.lower_bound_ms = plan.selection.bound;
  for (const auto& list : candidates_) {
    double fastest = list.front().cost.latency_ms;
    for (const PlanCandidate& candidate : list) {
      fastest = std::min(fastest, candidate.cost.latency_ms);
    }
    plan.lower_bound_ms = std::max(plan.lower_bound_ms, fastest);
  }
  plan.lower_bound_ms =
      std::max(plan.lower_bound_ms, clustered_bound_ms(plan.selection.multipliers));
  return true;
}

void LayerPlanner::schedule(LayerPlan& plan, std::int64_t work) const {
  const PhaseTimes::Scope phase(times_, "schedule");
  const std::vector<std::int32_t> by_load = plan.selection.choice;
  arrange(plan, by_load, work);
  compare_single_devices(plan);
  finish(plan);
}

bool LayerPlanner::find_candidates(const std::vector<DevicePlan>& structures, std::string& reason) {
  const PhaseTimes::Scope phase(times_, "costs");
  for (const SubgraphSize& size : sizes_) {
    std::vector<std::string> refusals;
    candidates_.push_back(plan_candidates(costs_, structures, size, &refusals));
    if (candidates_.back().empty()) {
      reason = "subgraph " + std::to_string(size.id) + " has no legal plan";
      if (!refusals.empty()) reason += ": " + refusals.front();
      return false;
    }
    keep_best(candidates_.back());
  }
  return true;
}

double LayerPlanner::clustered_bound_ms(const std::vector<double>& multipliers) const {
  if (switch_ms_.empty() || !ClusterCosts::is_affordable(candidates_)) return 0;
  ClusterCosts clusters(switch_ms_, resource_of_);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    clusters.add_item();
    for (std::size_t c = 0; c < candidates_[i].size(); ++c) {
      clusters.add(key_of(i, static_cast<std::int32_t>(c)), candidates_[i][c]);
    }
  }
  return clusters.best_bound_ms(multipliers);
}

std::optional<double> LayerPlanner::single_device_ms(std::int32_t device) const {
  double sum = 0;
  std::set<std::string> clusters;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const auto& list = candidates_[i];
    const auto found = std::find_if(list.begin(), list.end(), [&](const PlanCandidate& c) {
      return c.is_single_device() && c.device_plan.segments[0].shares[0].device == device;
    });
    if (found == list.end()) return std::nullopt;
    sum += found->cost.latency_ms;
    if (!switch_ms_.empty()) {
      clusters.insert(key_of(i, static_cast<std::int32_t>(found - list.begin())));
    }
  }
  if (clusters.size() > 1) {
    sum += static_cast<double>(clusters.size() - 1) * switch_ms_[index_of(device)];
  }
  return sum;
}

void LayerPlanner::keep_best(std::vector<PlanCandidate>& list) const {
  if (options_.settings.top_k <= 0 || list.size() <= index_of(options_.settings.top_k)) return;
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.cost.latency_ms < b.cost.latency_ms;
  });
  // Plans on one device stay: they are what everything is compared with.
  std::vector<PlanCandidate> kept;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i < index_of(options_.settings.top_k) || list[i].is_single_device())
      kept.push_back(std::move(list[i]));
  }
  list = std::move(kept);
}

void LayerPlanner::select_loads(LayerPlan& plan) const {
  const PhaseTimes::Scope phase(times_, "selection");
  SelectionProblem problem;
  problem.resource_count = costs_.resource_count();
  for (const auto& list : candidates_) {
    auto& item = problem.items.emplace_back();
    for (const PlanCandidate& candidate : list) {
      item.push_back({candidate.cost.resource_ms, candidate.cost.latency_ms});
    }
  }
  plan.selection = options_.settings.greedy ? select_greedy(problem) : select_optimal(problem);
}

std::string LayerPlanner::key_of(std::size_t subgraph, std::int32_t choice) const {
  const PlanCandidate& candidate = candidates_[subgraph][index_of(choice)];
  std::string key = device_plan_text(candidate.device_plan, names_);
  for (const std::string& program :
       costs_.static_programs(candidate.device_plan, sizes_[subgraph])) {
    key += " " + program;
  }
  return key;
}

SimItem LayerPlanner::item_of(std::size_t subgraph, std::int32_t choice,
                              std::int32_t cluster) const {
  const PlanCandidate& candidate = candidates_[subgraph][index_of(choice)];
  SimItem item;
  item.cluster = cluster;
  for (std::size_t s = 0; s < candidate.device_plan.segments.size(); ++s) {
    auto& row = item.segments.emplace_back();
    for (std::size_t i = 0; i < candidate.device_plan.segments[s].shares.size(); ++i) {
      row.push_back(
          {candidate.device_plan.segments[s].shares[i].device, candidate.cost.share_ms[s][i]});
    }
  }
  return item;
}

void LayerPlanner::order_members(Cluster& cluster, const std::vector<std::int32_t>& choice) const {
  const auto segment_ms = [&](std::int32_t i, bool last) {
    const auto& rows = candidates_[index_of(i)][index_of(choice[index_of(i)])].cost.share_ms;
    const auto& row = last ? rows.back() : rows.front();
    return *std::max_element(row.begin(), row.end());
  };
  std::stable_sort(cluster.members.begin(), cluster.members.end(),
                   [&](std::int32_t a, std::int32_t b) {
                     const auto rank = [&](std::int32_t i) {
                       const double first = segment_ms(i, false);
                       const double last = segment_ms(i, true);
                       const bool early = first < last;
                       return std::tuple(early ? 0 : 1, early ? first : -last);
                     };
                     return rank(a) < rank(b);
                   });
}

std::vector<Cluster> LayerPlanner::clusters_of(const std::vector<std::int32_t>& choice) const {
  std::map<std::string, Cluster> by_key;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const std::string key = key_of(i, choice[i]);
    Cluster& cluster = by_key[key];
    cluster.key = key;
    cluster.members.push_back(static_cast<std::int32_t>(i));
  }
  std::vector<Cluster> clusters;
  for (auto& [key, cluster] : by_key) {
    order_members(cluster, choice);
    clusters.push_back(std::move(cluster));
  }
  return clusters;
}

std::vector<std::vector<std::int32_t>> LayerPlanner::clustered_orders(
    const std::vector<std::int32_t>& choice) const {
  std::vector<Cluster> clusters = clusters_of(choice);
  const auto segments = [&](const Cluster& cluster) {
    const std::int32_t i = cluster.members.front();
    return candidates_[index_of(i)][index_of(choice[index_of(i)])].device_plan.segments.size();
  };
  const auto total = [&](const Cluster& cluster) {
    double sum = 0;
    for (const std::int32_t i : cluster.members) {
      sum += candidates_[index_of(i)][index_of(choice[index_of(i)])].cost.latency_ms;
    }
    return sum;
  };
  std::vector<std::vector<std::int32_t>> orders;
  const auto add = [&] {
    auto& order = orders.emplace_back();
    for (const Cluster& cluster : clusters) {
      order.insert(order.end(), cluster.members.begin(), cluster.members.end());
    }
  };
  add();
  std::stable_sort(clusters.begin(), clusters.end(),
                   [&](const Cluster& a, const Cluster& b) { return segments(a) > segments(b); });
  add();
  std::stable_sort(clusters.begin(), clusters.end(), [&](const Cluster& a, const Cluster& b) {
    return std::tuple(segments(b), total(b)) < std::tuple(segments(a), total(a));
  });
  add();
  return orders;
}

LayerPlanner::Options LayerPlanner::options_for(const LayerPlan& plan,
                                                const std::vector<std::int32_t>& choice,
                                                std::size_t count) const {
  Options options;
  options.problem.resource_of = resource_of_;
  options.problem.switch_ms = switch_ms_;
  options.problem.bound_ms = plan.lower_bound_ms;
  std::map<std::string, std::int32_t> clusters;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    std::vector<std::pair<double, std::int32_t>> ranked;
    for (std::size_t c = 0; c < candidates_[i].size(); ++c) {
      const auto& loads = candidates_[i][c].cost.resource_ms;
      double weighted = 0;
      for (std::size_t r = 0; r < loads.size(); ++r) {
        weighted += plan.selection.multipliers[r] * loads[r];
      }
      const auto candidate = static_cast<std::int32_t>(c);
      ranked.emplace_back(candidate == choice[i] ? -1 : weighted, candidate);
    }
    const std::size_t kept = std::min(count, ranked.size());
    std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept),
                      ranked.end());
    auto& items = options.problem.options.emplace_back();
    auto& candidates = options.candidate.emplace_back();
    for (std::size_t c = 0; c < kept; ++c) {
      const std::int32_t candidate = ranked[c].second;
      // Clusters tell plans apart only where going over to another one takes time.
      std::int32_t cluster = 0;
      if (!switch_ms_.empty()) {
        cluster = clusters.emplace(key_of(i, candidate), static_cast<std::int32_t>(clusters.size()))
                      .first->second;
      }
      items.push_back(item_of(i, candidate, cluster));
      candidates.push_back(candidate);
    }
  }
  return options;
}

void LayerPlanner::arrange(LayerPlan& plan, const std::vector<std::int32_t>& choice,
                           std::int64_t work) const {
  constexpr std::size_t kMaxWideItems = 64;  // subgraphs that may choose from many plans
  Options options = options_for(plan, choice,
                                work == 0                        ? 1
                                : choice.size() <= kMaxWideItems ? 400
                                                                 : 12);
  Schedule schedule;
  schedule.choice.assign(choice.size(), 0);
  std::vector<std::vector<std::int32_t>> orders = clustered_orders(choice);
  orders.push_back(mixed_order(options.problem, schedule.choice));
  for (std::vector<std::int32_t>& order : orders) {
    Schedule next = schedule;
    next.order = std::move(order);
    next.makespan_ms =
        simulate(items_of(options.problem, next), resource_of_, switch_ms_).makespan_ms;
    if (schedule.order.empty() || next.makespan_ms < schedule.makespan_ms * (1 - 1e-12)) {
      schedule = std::move(next);
    }
  }
  if (work > 0 && !switch_ms_.empty()) schedule = grouped(options, std::move(schedule));
  if (work > 0) schedule = shorten_schedule(options.problem, std::move(schedule), work);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    plan.selection.choice[i] = options.candidate[i][index_of(schedule.choice[i])];
  }
  plan.clusters.clear();
  for (const std::int32_t i : schedule.order) {
    const std::string key = key_of(index_of(i), plan.selection.choice[index_of(i)]);
    if (plan.clusters.empty() || plan.clusters.back().key != key)
      plan.clusters.push_back({key, {}});
    plan.clusters.back().members.push_back(i);
  }
  plan.simulation = simulate_clusters(plan.clusters, plan.selection.choice);
}

Schedule LayerPlanner::grouped(const Options& options, Schedule schedule) const {
  constexpr std::size_t kMostClusters = 64;  // that are tried
  const auto cluster_of = [&](std::size_t item, std::int32_t option) {
    return options.problem.options[item][index_of(option)].cluster;
  };
  std::map<std::int32_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < schedule.choice.size(); ++i) {
    members[cluster_of(i, schedule.choice[i])].push_back(i);
  }
  std::vector<std::pair<std::size_t, std::int32_t>> by_size;
  for (const auto& [cluster, items] : members) by_size.emplace_back(items.size(), cluster);
  std::sort(by_size.begin(), by_size.end());
  by_size.resize(std::min(by_size.size(), kMostClusters));
  for (const auto& entry : by_size) {
    const std::int32_t cluster = entry.second;
    Schedule next = schedule;
    bool can_go = true;
    for (const std::size_t i : members[cluster]) {
      const auto& list = options.problem.options[i];
      // Options are sorted by what they take of scarce devices.
      const auto other = std::find_if(list.begin(), list.end(), [&](const SimItem& item) {
        const auto found = members.find(item.cluster);
        return item.cluster != cluster && found != members.end() && !found->second.empty();
      });
      can_go = can_go && other != list.end();
      if (!can_go) break;
      next.choice[i] = static_cast<std::int32_t>(other - list.begin());
    }
    if (!can_go) continue;
    std::stable_sort(next.order.begin(), next.order.end(), [&](std::int32_t a, std::int32_t b) {
      return cluster_of(index_of(a), next.choice[index_of(a)]) <
             cluster_of(index_of(b), next.choice[index_of(b)]);
    });
    next.makespan_ms =
        simulate(items_of(options.problem, next), resource_of_, switch_ms_).makespan_ms;
    if (next.makespan_ms >= schedule.makespan_ms * (1 - 1e-12)) continue;
    for (const std::size_t i : std::exchange(members[cluster], {})) {
      members[cluster_of(i, next.choice[i])].push_back(i);
    }
    schedule = std::move(next);
  }
  return schedule;
}

SimResult LayerPlanner::simulate_clusters(const std::vector<Cluster>& clusters,
                                          const std::vector<std::int32_t>& choice) const {
  std::vector<SimItem> items;
  std::map<std::string, std::int32_t> ids;
  for (const Cluster& cluster : clusters) {
    const auto id = ids.emplace(cluster.key, static_cast<std::int32_t>(ids.size())).first->second;
    for (const std::int32_t i : cluster.members) {
      items.push_back(item_of(index_of(i), choice[index_of(i)], id));
    }
  }
  return simulate(items, resource_of_, switch_ms_);
}

void LayerPlanner::compare_single_devices(LayerPlan& plan) const {
  const double margin = costs_.resource_count() == 1 ? kSharedMargin : 0;
  std::optional<LayerPlan> fastest;
  for (std::size_t d = 0; d < names_.size(); ++d) {
    std::vector<std::int32_t> choice;
    for (const auto& list : candidates_) {
      const auto found = std::find_if(list.begin(), list.end(), [&](const PlanCandidate& c) {
        return c.is_single_device() && index_of(c.device_plan.segments[0].shares[0].device) == d;
      });
      if (found == list.end()) break;
      choice.push_back(static_cast<std::int32_t>(found - list.begin()));
    }
    if (choice.size() != candidates_.size()) continue;
    LayerPlan alone = plan;
    arrange(alone, choice, 0);
    if (!fastest || alone.simulation.makespan_ms < fastest->simulation.makespan_ms) {
      fastest = std::move(alone);
    }
  }
  if (fastest &&
      fastest->simulation.makespan_ms < plan.simulation.makespan_ms * (1 - 1e-12 + margin)) {
    plan = std::move(*fastest);
  }
}

void LayerPlanner::finish(LayerPlan& plan) const {
  plan.keys.resize(sizes_.size());
  plan.selection.loads.assign(index_of(costs_.resource_count()), 0);
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const std::int32_t choice = plan.selection.choice[i];
    plan.chosen.push_back(candidates_[i][index_of(choice)]);
    plan.keys[i] = key_of(i, choice);
    for (std::size_t r = 0; r < plan.selection.loads.size(); ++r) {
      plan.selection.loads[r] += plan.chosen.back().cost.resource_ms[r];
    }
    for (const std::string& program :
         costs_.static_programs(plan.chosen.back().device_plan, sizes_[i])) {
      if (plan.programs.insert(program).second) {
        plan.compile_ms += costs_.compile_ms(plan.chosen.back().device_plan);
      }
    }
  }
  plan.selection.max_load =
      *std::max_element(plan.selection.loads.begin(), plan.selection.loads.end());
  for (const Cluster& cluster : plan.clusters) {
    plan.order.insert(plan.order.end(), cluster.members.begin(), cluster.members.end());
  }
  if (switch_ms_.empty()) return;
  std::vector<SimItem> alone;
  for (const Cluster& cluster : plan.clusters) {
    for (const std::int32_t i : cluster.members) {
      const auto id = static_cast<std::int32_t>(alone.size());
      alone.push_back(item_of(index_of(i), plan.selection.choice[index_of(i)], id));
    }
  }
  plan.ungrouped_ms = simulate(alone, resource_of_, switch_ms_).makespan_ms;
}

}  // namespace npu::gnn
