// SPDX-License-Identifier: Apache-2.0
// The bound that counts switches: never above the shortest of all schedules, and above the bound of
// loads where clusters cannot be shared.
#include "gnn/plan/costs/cluster_costs.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <random>

#include "catch.hpp"
#include "gnn/plan/search/simulate.hpp"
#include "npu/support/ids.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

/// A subgraph that device `device` can compute in `ms`, in the cluster `key`.
struct Choice {
  std::string key;
  std::int32_t device;
  double ms;
};
using Choices = std::vector<std::vector<Choice>>;  // by subgraph

// Without multipliers the best one.
double bound_of(const Choices& choices, const std::vector<double>& switch_ms,
                const std::vector<double>& multipliers) {
  const std::vector<std::int32_t> resource_of{0, 1};
  ClusterCosts costs(switch_ms, resource_of);
  std::deque<PlanCandidate> candidates;
  for (const auto& list : choices) {
    costs.add_item();
    for (const Choice& choice : list) {
      PlanCandidate& candidate = candidates.emplace_back();
      candidate.device_plan.segments = {{1, 1, {{choice.device, 100}}}};
      candidate.cost.resource_ms.assign(2, 0);
      candidate.cost.resource_ms[index_of(choice.device)] = choice.ms;
      costs.add(choice.key, candidate);
    }
  }
  if (multipliers.empty()) return costs.best_bound_ms({0.5, 0.5});
  return costs.bound_ms(multipliers);
}

// Over all choices and orders of the subgraphs.
double shortest(const Choices& choices, const std::vector<double>& switch_ms) {
  std::vector<std::size_t> choice(choices.size(), 0);
  std::vector<std::size_t> order(choices.size());
  double best = std::numeric_limits<double>::infinity();
  for (;;) {
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    do {
      std::vector<SimItem> items;
      std::vector<std::string> keys;
      for (const std::size_t i : order) {
        const Choice& chosen = choices[i][choice[i]];
        auto key = std::find(keys.begin(), keys.end(), chosen.key);
        if (key == keys.end()) key = keys.insert(key, chosen.key);
        items.push_back(
            {{{{chosen.device, chosen.ms}}}, static_cast<std::int32_t>(key - keys.begin())});
      }
      best = std::min(best, simulate(items, {0, 1}, switch_ms).makespan_ms);
    } while (std::next_permutation(order.begin(), order.end()));
    std::size_t i = 0;
    while (i < choice.size() && ++choice[i] == choices[i].size()) choice[i++] = 0;
    if (i == choice.size()) return best;
  }
}

}  // namespace

TEST_CASE("programs that cannot be shared have to be switched", "[plan][cluster]") {
  // Three subgraphs of 1 ms on device 0, each with a program of its own: 3 + 2 * 0.5.
  const Choices own{{{"a", 0, 1}}, {{"b", 0, 1}}, {{"c", 0, 1}}};
  CHECK(bound_of(own, {0.5, 0}, {1, 0}) == Approx(4));
  CHECK(shortest(own, {0.5, 0}) == Approx(4));
  // The same program: no switch.
  const Choices same{{{"a", 0, 1}}, {{"a", 0, 1}}, {{"a", 0, 1}}};
  CHECK(bound_of(same, {0.5, 0}, {1, 0}) == Approx(3));
  CHECK(bound_of({}, {0.5, 0}, {1, 0}) == 0);
  // Under equal weights both are halved; the best bound is that of device 0 alone.
  CHECK(bound_of(own, {0.5, 0}, {0.5, 0.5}) == Approx(2));
  CHECK(bound_of(own, {0.5, 0}, {}) == Approx(4));
}

TEST_CASE("no schedule is shorter than the bound", "[plan][cluster]") {
  std::mt19937 random(11);
  const auto draw = [&](unsigned below) { return random() % below; };
  int above_loads = 0;
  for (int round = 0; round < 300; ++round) {
    Choices choices(2 + draw(3));
    for (auto& list : choices) {
      const std::size_t count = 1 + draw(3);
      for (std::size_t c = 0; c < count; ++c) {
        const auto device = static_cast<std::int32_t>(draw(2));
        // A key belongs to one device.
        list.push_back({std::to_string(device) + std::to_string(draw(4)), device,
                        0.5 + static_cast<double>(draw(8)) / 4});
      }
    }
    const std::vector<double> switch_ms{static_cast<double>(draw(4)) / 4,
                                        static_cast<double>(draw(4)) / 2};
    const double least = shortest(choices, switch_ms);
    for (const double weight : {0.0, 0.3, 0.5, 1.0}) {
      const std::vector<double> multipliers{weight, 1 - weight};
      CAPTURE(round, weight);
      const double bound = bound_of(choices, switch_ms, multipliers);
      CHECK(bound <= least + 1e-9);
      if (bound > bound_of(choices, {0, 0}, multipliers) + 1e-9) ++above_loads;
    }
    CHECK(bound_of(choices, switch_ms, {}) <= least + 1e-9);
  }
  CHECK(above_loads > 100);  // it is not a bound of loads alone
}
