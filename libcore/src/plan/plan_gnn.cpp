// SPDX-License-Identifier: Apache-2.0
// Plans a graph neural network over a big graph: the steps of the source document.
//
// For each number of parts k (1 is always tried): METIS with two balance constraints, sizes with
// halo, every legal plan of every subgraph with its balanced split, selection by load, then a
// search for the order and the changes of plans with the shortest schedule, as a simulation of the
// workers has it. The k with the smallest makespan wins. Layers follow one another with a barrier,
// so each is planned alone and times add up.
//
// Cost for each k: METIS, then O(subgraphs * plans) estimates, the selection, and the search, which
// simulates a fixed number of tasks. Nothing depends on a clock: the same input gives the same
// plan.
#include "npu/plan/plan_gnn.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/text.hpp"
#include "schedule_search.hpp"

namespace npu {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

double rounded(double ms) { return std::round(ms * 1e6) / 1e6; }
// A bound must not grow by rounding.
double rounded_down(double ms) { return std::floor(ms * 1e6) / 1e6; }

// "NAME=VALUE".
std::pair<std::string, std::string> split_setting(const std::string& text,
                                                  const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorCode::kUsage, option + " '" + text + "': expected DEVICE=VALUE");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::int32_t known_device(const ProfileTable& profile, const std::string& name,
                          const std::string& option) {
  const std::int32_t device = profile.find_device(name);
  if (device >= 0) return device;
  std::vector<std::string> names;
  std::string list;
  for (const ProfileDevice& known : profile.devices) {
    list += (list.empty() ? "" : ", ") + known.name;
  }
  throw Error(ErrorCode::kUsage,
              option + ": device '" + name + "' is not in the profile, which has " + list);
}

std::vector<std::int64_t> number_list(const std::string& text, const std::string& option) {
  std::vector<std::int64_t> numbers;
  const char* begin = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(begin, end, value);
    if (error != std::errc()) break;
    numbers.push_back(value);
    if (next == end) return numbers;
    if (*next != ',') break;
    begin = next + 1;
  }
  throw Error(ErrorCode::kUsage, option + " '" + text + "': expected numbers with commas between");
}

std::vector<SubgraphSize> parse_subgraphs(const Json& json, const std::string& file) {
  const auto fail = [&](const std::string& pointer, const std::string& text) {
    throw Error(ErrorCode::kParse, text, {.file = file, .pointer = pointer});
  };
  const Json* list = json.is_object() ? find_member(json, "subgraphs") : &json;
  if (list == nullptr || !list->is_array() || list->empty()) {
    fail("", "expected an array of subgraphs with id, n and m");
  }
  std::vector<SubgraphSize> subgraphs;
  std::set<std::int64_t> ids;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string pointer = "/" + std::to_string(i);
    const auto number = [&](const char* key, std::int64_t least, bool required) -> std::int64_t {
      const Json* member = find_member((*list)[i], key);
      if (member == nullptr && !required) return 0;
      if (member == nullptr || !member->is_number_integer() || *member < least ||
          *member > (std::int64_t{1} << 50)) {
        fail(pointer,
             "expected an integer '" + std::string(key) + "' of at least " + std::to_string(least));
      }
      return member->get<std::int64_t>();
    };
    SubgraphSize size;
    size.id = static_cast<std::int32_t>(std::min<std::int64_t>(number("id", 0, true), INT32_MAX));
    size.n = number("n", 1, true);
    size.m = number("m", 0, true);
    size.halo = number("halo", 0, false);
    size.cut_edges = number("cut_edges", 0, false);
    if (size.halo >= size.n) fail(pointer, "the halo is as large as the subgraph");
    if (!ids.insert(size.id).second) {
      fail(pointer, "subgraph " + std::to_string(size.id) + " is listed twice");
    }
    subgraphs.push_back(size);
  }
  return subgraphs;
}

// The seven stages of GraphSAGE, for tables without a model: an NPU has no scatter.
PlanLayer default_layer(const ProfileTable& profile) {
  PlanLayer layer;
  layer.stage_count = profile.stage_count;
  const std::vector<std::string> names{"gather",    "message",   "reduce_sum", "reduce_count",
                                       "normalize", "transform", "activate"};
  for (std::int32_t s = 0; s < layer.stage_count; ++s) {
    layer.stage_names.push_back(at(s) < names.size() && layer.stage_count == 7
                                    ? names[at(s)]
                                    : "stage " + std::to_string(s + 1));
  }
  for (const ProfileDevice& device : profile.devices) {
    auto& row = layer.refusals.emplace_back(at(layer.stage_count));
    if (device.is_static && layer.stage_count == 7) row[2] = row[3] = "no scatter";
  }
  return layer;
}

// A cluster: subgraphs, one after the other in the order of priority, that run under the same plan.
struct Cluster {
  std::string key;
  std::vector<std::int32_t> members;  // indices into the subgraphs, in order of execution
};

// Tasks that the searches for short schedules may simulate: all numbers of parts and layers
// together, but each of them some.
constexpr std::int64_t kScheduleWork = 30'000'000;
constexpr std::int64_t kLeastWork = 2'000'000;
// What a plan over devices of one resource has to gain over one device alone.
constexpr double kSharedMargin = 0.05;

struct LayerPlan {
  std::vector<PlanCandidate> chosen;  // by subgraph
  std::vector<std::string> keys;      // by subgraph: pep_key
  std::vector<Cluster> clusters;      // in order
  Selection selection;
  SimResult simulation;
  std::vector<std::int32_t> order;  // subgraph by position in the simulation
  double lower_bound_ms = 0;
  double least_load_ms = 0;  // largest load of the selection, before the schedule was shortened
  std::set<std::string> programs;
  double compile_ms = 0;
};

struct KPlan {
  std::int32_t k = 1;
  GraphPartition partition;
  std::vector<SubgraphSize> sizes;
  std::int64_t pad = 1000;
  std::vector<LayerPlan> layers;
  std::string infeasible;
  double makespan_ms = 0;
  double lower_bound_ms = 0;
  std::map<std::string, double> single_ms;  // whole graph on one device
};

// Plans one layer for one partition.
class LayerPlanner {
 public:
  LayerPlanner(const PepCosts& costs, const ProfileTable& profile,
               const std::vector<SubgraphSize>& sizes, const PlanGnnOptions& options,
               double switch_ms, PhaseTimes& times)
      : costs_(costs),
        profile_(profile),
        sizes_(sizes),
        options_(options),
        switch_ms_(switch_ms),
        times_(times) {
    for (const ProfileDevice& device : profile.devices) names_.push_back(device.name);
    for (std::size_t d = 0; d < names_.size(); ++d) {
      resource_of_.push_back(costs.resource_of(static_cast<std::int32_t>(d)));
    }
  }

  /// Chooses a plan for each subgraph; false with the reason if one has no legal plan.
  bool select(const std::vector<Pep>& structures, LayerPlan& plan, std::string& reason) {
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
    return true;
  }

  /// Orders the subgraphs, and changes the choice where so many simulated tasks find a shorter
  /// schedule.
  void schedule(LayerPlan& plan, std::int64_t work) const {
    const PhaseTimes::Scope phase(times_, "schedule");
    const std::vector<std::int32_t> by_load = plan.selection.choice;
    arrange(plan, by_load, work);
    compare_single_devices(plan);
    finish(plan);
  }

  bool find_candidates(const std::vector<Pep>& structures, std::string& reason) {
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

  /// Time of everything on one device; nothing if it cannot run it.
  std::optional<double> single_device_ms(std::int32_t device) const {
    double sum = 0;
    for (const auto& list : candidates_) {
      const auto found = std::find_if(list.begin(), list.end(), [&](const PlanCandidate& c) {
        return c.pep.segments.size() == 1 && c.pep.segments[0].shares.size() == 1 &&
               c.pep.segments[0].shares[0].device == device;
      });
      if (found == list.end()) return std::nullopt;
      sum += found->cost.latency_ms;
    }
    return sum;
  }

 private:
  void keep_best(std::vector<PlanCandidate>& list) const {
    if (options_.top_k <= 0 || list.size() <= at(options_.top_k)) return;
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return a.cost.latency_ms < b.cost.latency_ms;
    });
    // Plans on one device stay: they are what everything is compared with.
    std::vector<PlanCandidate> kept;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool single =
          list[i].pep.segments.size() == 1 && list[i].pep.segments[0].shares.size() == 1;
      if (i < at(options_.top_k) || single) kept.push_back(std::move(list[i]));
    }
    list = std::move(kept);
  }

  void select_loads(LayerPlan& plan) const {
    const PhaseTimes::Scope phase(times_, "selection");
    SelectionProblem problem;
    problem.resource_count = costs_.resource_count();
    for (const auto& list : candidates_) {
      auto& item = problem.items.emplace_back();
      for (const PlanCandidate& candidate : list) {
        item.push_back({candidate.cost.resource_ms, candidate.cost.latency_ms});
      }
    }
    plan.selection = options_.greedy ? select_greedy(problem) : select_optimal(problem);
  }

  std::string key_of(std::size_t subgraph, std::int32_t choice) const {
    const PlanCandidate& candidate = candidates_[subgraph][at(choice)];
    std::string key = pep_text(candidate.pep, names_);
    for (const std::string& program : costs_.static_programs(candidate.pep, sizes_[subgraph])) {
      key += " " + program;
    }
    return key;
  }

  SimItem item_of(std::size_t subgraph, std::int32_t choice, std::int32_t cluster) const {
    const PlanCandidate& candidate = candidates_[subgraph][at(choice)];
    SimItem item;
    item.cluster = cluster;
    for (std::size_t s = 0; s < candidate.pep.segments.size(); ++s) {
      auto& row = item.segments.emplace_back();
      for (std::size_t i = 0; i < candidate.pep.segments[s].shares.size(); ++i) {
        row.push_back({candidate.pep.segments[s].shares[i].device, candidate.cost.share_ms[s][i]});
      }
    }
    return item;
  }

  // Johnson's rule for pipelines (first segment shorter than the last: ascending first segment,
  // before the others by descending last segment); single segments longest first.
  void order_members(Cluster& cluster, const std::vector<std::int32_t>& choice) const {
    const auto segment_ms = [&](std::int32_t i, bool last) {
      const auto& rows = candidates_[at(i)][at(choice[at(i)])].cost.share_ms;
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

  std::vector<Cluster> clusters_of(const std::vector<std::int32_t>& choice) const {
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

  // Whole clusters one after the other, in several orders.
  std::vector<std::vector<std::int32_t>> clustered_orders(
      const std::vector<std::int32_t>& choice) const {
    std::vector<Cluster> clusters = clusters_of(choice);
    const auto segments = [&](const Cluster& cluster) {
      const std::int32_t i = cluster.members.front();
      return candidates_[at(i)][at(choice[at(i)])].pep.segments.size();
    };
    const auto total = [&](const Cluster& cluster) {
      double sum = 0;
      for (const std::int32_t i : cluster.members) {
        sum += candidates_[at(i)][at(choice[at(i)])].cost.latency_ms;
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

  // What each subgraph may run under while the schedule is shortened: the plans that cost least of
  // the scarce devices, and the chosen one.
  struct Options {
    ScheduleProblem problem;
    std::vector<std::vector<std::int32_t>> candidate;  // by subgraph and option
  };

  Options options_for(const LayerPlan& plan, const std::vector<std::int32_t>& choice,
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
        if (switch_ms_ > 0) {
          cluster =
              clusters.emplace(key_of(i, candidate), static_cast<std::int32_t>(clusters.size()))
                  .first->second;
        }
        items.push_back(item_of(i, candidate, cluster));
        candidates.push_back(candidate);
      }
    }
    return options;
  }

  // The schedule of a choice: the shortest of some orders, and, where the choice may change, of
  // what a search finds from there.
  void arrange(LayerPlan& plan, const std::vector<std::int32_t>& choice, std::int64_t work) const {
    constexpr std::size_t kFew = 64;
    Options options = options_for(plan, choice, work == 0 ? 1 : choice.size() <= kFew ? 400 : 12);
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
    if (work > 0) schedule = shorten_schedule(options.problem, std::move(schedule), work);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      plan.selection.choice[i] = options.candidate[i][at(schedule.choice[i])];
    }
    plan.clusters.clear();
    for (const std::int32_t i : schedule.order) {
      const std::string key = key_of(at(i), plan.selection.choice[at(i)]);
      if (plan.clusters.empty() || plan.clusters.back().key != key)
        plan.clusters.push_back({key, {}});
      plan.clusters.back().members.push_back(i);
    }
    plan.simulation = simulate_clusters(plan.clusters, plan.selection.choice);
  }

  SimResult simulate_clusters(const std::vector<Cluster>& clusters,
                              const std::vector<std::int32_t>& choice) const {
    std::vector<SimItem> items;
    std::map<std::string, std::int32_t> ids;
    for (const Cluster& cluster : clusters) {
      const auto id = ids.emplace(cluster.key, static_cast<std::int32_t>(ids.size())).first->second;
      for (const std::int32_t i : cluster.members) {
        items.push_back(item_of(at(i), choice[at(i)], id));
      }
    }
    return simulate(items, resource_of_, switch_ms_);
  }

  // Never slower than any device alone, by the same model. Devices that share all they have cannot
  // work side by side: for what is left to gain a plan over several has to beat the table's noise.
  void compare_single_devices(LayerPlan& plan) const {
    const double margin = costs_.resource_count() == 1 ? kSharedMargin : 0;
    std::optional<LayerPlan> fastest;
    for (std::size_t d = 0; d < names_.size(); ++d) {
      std::vector<std::int32_t> choice;
      for (const auto& list : candidates_) {
        const auto found = std::find_if(list.begin(), list.end(), [&](const PlanCandidate& c) {
          return c.pep.segments.size() == 1 && c.pep.segments[0].shares.size() == 1 &&
                 at(c.pep.segments[0].shares[0].device) == d;
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

  void finish(LayerPlan& plan) const {
    plan.keys.resize(sizes_.size());
    plan.selection.loads.assign(at(costs_.resource_count()), 0);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::int32_t choice = plan.selection.choice[i];
      plan.chosen.push_back(candidates_[i][at(choice)]);
      plan.keys[i] = key_of(i, choice);
      for (std::size_t r = 0; r < plan.selection.loads.size(); ++r) {
        plan.selection.loads[r] += plan.chosen.back().cost.resource_ms[r];
      }
      for (const std::string& program : costs_.static_programs(plan.chosen.back().pep, sizes_[i])) {
        if (plan.programs.insert(program).second) {
          plan.compile_ms += costs_.compile_ms(plan.chosen.back().pep);
        }
      }
    }
    plan.selection.max_load =
        *std::max_element(plan.selection.loads.begin(), plan.selection.loads.end());
    for (const Cluster& cluster : plan.clusters) {
      plan.order.insert(plan.order.end(), cluster.members.begin(), cluster.members.end());
    }
  }

  const PepCosts& costs_;
  const ProfileTable& profile_;
  const std::vector<SubgraphSize>& sizes_;
  const PlanGnnOptions& options_;
  double switch_ms_;
  PhaseTimes& times_;
  std::vector<std::string> names_;
  std::vector<std::int32_t> resource_of_;
  std::vector<std::vector<PlanCandidate>> candidates_;
};

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
      const PepCosts costs(input.profile, layer, settings);
      for (std::size_t d = 0; d < input.profile.devices.size(); ++d) {
        if (!input.profile.devices[d].is_static) continue;
        const auto device = static_cast<std::int32_t>(d);
        // Longest runs of stages that the device takes.
        for (std::int32_t first = 1; first <= layer.stage_count; ++first) {
          if (!layer.refusals[d][at(first - 1)].empty()) continue;
          std::int32_t last = first;
          while (last < layer.stage_count && layer.refusals[d][at(last)].empty()) ++last;
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

// `shortest_ms`: the makespan of the best plan so far. A number of parts that cannot be better than
// that gets no search for a shorter schedule.
KPlan plan_for(const PlanInput& input, const PlanGnnOptions& options, std::int32_t k,
               const CsrGraph* simple, double shortest_ms, PhaseTimes& times) {
  KPlan plan;
  plan.k = k;
  if (input.graph) {
    MetisOptions metis;
    metis.part_count = k;
    metis.seed = options.seed;
    metis.seed_count = options.seed_count;
    metis.max_imbalance = {options.node_imbalance, options.edge_imbalance};
    metis.minimize_volume = options.minimize_volume;
    {
      const PhaseTimes::Scope phase(times, "METIS k = " + std::to_string(k));
      plan.partition = partition_with_metis(*simple, metis);
    }
    const PhaseTimes::Scope phase(times, "halo");
    plan.sizes = subgraph_sizes(input.graph->in_edges, plan.partition.part_of, k);
  } else {
    plan.sizes = input.subgraphs;
  }
  CostSettings settings = input.settings;
  settings.whole_graph = plan.sizes.size() == 1;
  settings.pad = options.pad > 0 ? options.pad : choose_pad(input, plan.sizes);
  plan.pad = settings.pad;
  double switch_ms = 0;
  if (const Json* value = find_member(input.profile.extra, "switch_ms");
      value != nullptr && value->is_number()) {
    switch_ms = value->get<double>();
  }
  std::deque<PepCosts> costs;
  std::deque<LayerPlanner> planners;
  for (const PlanLayer& layer : input.layers) {
    costs.emplace_back(input.profile, layer, settings);
    std::vector<Pep> legal;
    for (const Pep& pep :
         enumerate_peps(layer.stage_count, static_cast<std::int32_t>(input.profile.devices.size()),
                        options.max_segments)) {
      if (costs.back().structure_refusal(pep).empty()) legal.push_back(pep);
    }
    planners.emplace_back(costs.back(), input.profile, plan.sizes, options, switch_ms, times);
    if (!planners.back().select(legal, plan.layers.emplace_back(), plan.infeasible)) return plan;
    plan.lower_bound_ms += plan.layers.back().lower_bound_ms;
  }
  const bool searches = !options.greedy && plan.lower_bound_ms < shortest_ms;
  const std::size_t numbers = input.graph ? options.part_counts.size() + 1 : 1;
  const auto searched = static_cast<std::int64_t>(planners.size() * numbers);
  const std::int64_t work = std::max(kLeastWork, kScheduleWork / searched);
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
    if (at(count) != input.layers.size()) plan.single_ms.erase(name);
  }
  return plan;
}

std::string relative_path(const std::string& path, const std::string& output) {
  if (path.empty() || output.empty() || std::filesystem::path(path).is_absolute()) return path;
  std::error_code error;
  const auto base = std::filesystem::path(output).parent_path();
  const auto result = std::filesystem::proximate(path, base.empty() ? "." : base, error);
  return error ? path : result.generic_string();
}

std::string partition_path(const PlanGnnOptions& options) {
  if (!options.partition_file.empty()) return options.partition_file;
  if (options.output.empty()) return {};
  return std::filesystem::path(options.output).replace_extension(".part").string();
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

std::vector<PlanCandidate> plan_candidates(const PepCosts& costs,
                                           const std::vector<Pep>& structures,
                                           const SubgraphSize& subgraph,
                                           std::vector<std::string>* refusals) {
  std::vector<PlanCandidate> candidates;
  for (const Pep& structure : structures) {
    for (Pep& pep : costs.with_ratios(structure, subgraph)) {
      PepCost cost = costs.cost(pep, subgraph);
      if (cost.refusal.empty()) {
        candidates.push_back({std::move(pep), std::move(cost)});
      } else if (refusals != nullptr) {
        refusals->push_back(cost.refusal);
      }
    }
  }
  return candidates;
}

std::unique_ptr<PlanInput> read_plan_input(const PlanGnnOptions& options,
                                           Diagnostics& diagnostics) {
  auto input = std::make_unique<PlanInput>();
  report_progress(options.progress, 0, "read");
  const PhaseTimes::Scope phase(input->times, "read");
  if (options.graph.empty() == options.subgraphs.empty()) {
    throw Error(ErrorCode::kUsage, "expected a GRAPH or --subgraphs FILE, and not both");
  }
  input->profile = read_profile(options.profile);
  if (!options.bandwidths.empty()) {
    input->profile.add_bandwidths(parse_json(read_file(options.bandwidths), options.bandwidths),
                                  options.bandwidths);
  }
  if (!options.devices.empty()) {
    ProfileTable& profile = input->profile;
    for (const std::string& name : options.devices) known_device(profile, name, "--devices");
    const auto left_out = [&](const std::string& name) {
      return std::find(options.devices.begin(), options.devices.end(), name) ==
             options.devices.end();
    };
    std::erase_if(profile.entries, [&](const auto& entry) { return left_out(entry.device); });
    std::erase_if(profile.devices, [&](const auto& device) { return left_out(device.name); });
    profile.index();
  }
  ProfileTable& profile = input->profile;
  if (profile.devices.size() > 8) {
    throw Error(ErrorCode::kUnsupported, "the profile has " +
                                             std::to_string(profile.devices.size()) +
                                             " devices, at most 8 can be planned for");
  }
  for (const std::string& text : options.memory) {
    const auto [name, value] = split_setting(text, "--memory");
    const auto bytes = number_list(value, "--memory");
    if (bytes.size() != 1 || bytes[0] < 1) {
      throw Error(ErrorCode::kUsage, "--memory '" + text + "': expected a number of bytes");
    }
    profile.devices[at(known_device(profile, name, "--memory"))].memory_bytes =
        static_cast<double>(bytes[0]);
  }
  for (const std::string& text : options.resources) {
    const auto [name, value] = split_setting(text, "--resource");
    profile.devices[at(known_device(profile, name, "--resource"))].resource = value;
  }
  CostSettings& settings = input->settings;
  settings.interpolation = options.interpolation;
  settings.transfers = options.transfers;
  settings.pad = options.pad > 0 ? options.pad : 1000;
  settings.ratios = options.ratios;
  settings.host = profile.find_device("cpu") >= 0 ? "cpu" : profile.devices.front().name;
  if (!options.model.empty()) {
    input->model = read_staged_model(options.model);
    const Target target = load_target(options.target);
    for (std::size_t l = 0; l < input->model->layers.size(); ++l) {
      const LayerInfo& info = input->model->layers[l];
      PlanLayer layer;
      layer.number = static_cast<std::int32_t>(l) + 1;
      layer.stage_count = info.stage_count();
      layer.info = &info;
      for (const StageInfo& stage : info.stages) layer.stage_names.push_back(stage.name);
      for (const ProfileDevice& device : profile.devices) {
        auto& row = layer.refusals.emplace_back(at(layer.stage_count));
        const Device* description = target.find_device(device.name);
        if (description == nullptr) continue;  // the profile says what it can do
        for (std::int32_t s = 1; s <= layer.stage_count; ++s) {
          row[at(s - 1)] = stage_refusal(*input->model, layer.number, s, *description);
        }
      }
      input->layers.push_back(std::move(layer));
    }
  } else {
    if (options.transfers && !options.graph.empty()) {
      throw Error(ErrorCode::kUsage,
                  "transfers depend on the sizes of tensors: give --model FILE or --no-transfers");
    }
    if (options.transfers) {
      diagnostics.warning({.file = options.subgraphs},
                          "without --model nothing is known of tensors: transfers count nothing");
    }
    input->layers.push_back(default_layer(profile));
  }
  for (const std::string& text : options.excludes) {
    const auto [name, value] = split_setting(text, "--exclude");
    const auto device = at(known_device(profile, name, "--exclude"));
    for (const std::int64_t stage : number_list(value, "--exclude")) {
      for (PlanLayer& layer : input->layers) {
        if (stage < 1 || stage > layer.stage_count) {
          throw Error(ErrorCode::kUsage, "--exclude '" + text + "': stage " +
                                             std::to_string(stage) + " is not in 1.." +
                                             std::to_string(layer.stage_count));
        }
        layer.refusals[device][at(stage - 1)] = "excluded";
      }
    }
  }
  if (!options.graph.empty()) {
    input->graph = read_graph_file(options.graph, options.graph_options);
    for (const std::string& note : input->graph->notes) {
      diagnostics.note({.file = options.graph}, note);
    }
  } else {
    input->subgraphs = parse_subgraphs(parse_json(read_file(options.subgraphs), options.subgraphs),
                                       options.subgraphs);
  }
  return input;
}

GnnPlan plan_gnn(const PlanInput& input, const PlanGnnOptions& options, Diagnostics& diagnostics) {
  std::vector<KPlan> plans;
  PhaseTimes times = input.times;
  report_progress(options.progress, 0, "read");
  if (input.graph) {
    SymmetrizedGraph simple;
    {
      const PhaseTimes::Scope phase(times, "symmetrize");
      simple = symmetrize(input.graph->in_edges);
    }
    if (const std::string note = simple.note(); !note.empty()) {
      diagnostics.note({.file = options.graph}, "for METIS: " + note);
    }
    // Two constraints: nodes, and in-edges, which is what aggregation costs.
    CsrGraph& graph = simple.graph;
    graph.node_weight_count = 2;
    graph.node_weights.clear();
    graph.node_weights.reserve(2 * at(graph.node_count()));
    for (std::int32_t v = 0; v < graph.node_count(); ++v) {
      graph.node_weights.push_back(1);
      graph.node_weights.push_back(input.graph->in_edges.degree(v));
    }
    double shortest_ms = std::numeric_limits<double>::infinity();
    std::set<std::int32_t> counts(options.part_counts.begin(), options.part_counts.end());
    counts.insert(1);
    std::size_t tried = 0;
    for (const std::int32_t k : counts) {
      report_progress(options.progress,
                      static_cast<double>(tried++) / static_cast<double>(counts.size()),
                      "k = " + std::to_string(k));
      if (k > graph.node_count()) {
        diagnostics.warning({.file = options.graph},
                            "k = " + std::to_string(k) + " is left out: the graph has " +
                                std::to_string(graph.node_count()) + " nodes");
        continue;
      }
      plans.push_back(plan_for(input, options, k, &graph, shortest_ms, times));
      if (plans.back().infeasible.empty()) {
        shortest_ms = std::min(shortest_ms, plans.back().makespan_ms);
      }
    }
  } else {
    plans.push_back(plan_for(input, options, static_cast<std::int32_t>(input.subgraphs.size()),
                             nullptr, std::numeric_limits<double>::infinity(), times));
  }
  if (std::all_of(plans.begin(), plans.end(),
                  [](const KPlan& plan) { return !plan.infeasible.empty(); })) {
    throw Error(ErrorCode::kInfeasible, "no k has a plan; k = " + std::to_string(plans.back().k) +
                                            ": " + plans.back().infeasible);
  }
  report_progress(options.progress, 1, "write");
  GnnPlan result;
  {
    const PhaseTimes::Scope phase(times, "write");
    result = DocumentWriter(input, options).write(plans);
  }
  result.times = std::move(times);
  return result;
}

GnnPlan make_gnn_plan(const PlanGnnOptions& options, Diagnostics& diagnostics) {
  const auto input = read_plan_input(options, diagnostics);
  GnnPlan plan = plan_gnn(*input, options, diagnostics);
  if (const std::string path = partition_path(options); !plan.part_of.empty()) {
    if (path.empty()) {
      diagnostics.note({}, "the partition is not written: give -o FILE or --partition-file FILE");
    } else {
      const PhaseTimes::Scope phase(plan.times, "write");
      write_file_atomically(path, partition_text(plan.part_of));
    }
  }
  return plan;
}

}  // namespace npu
