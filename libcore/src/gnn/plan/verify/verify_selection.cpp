// SPDX-License-Identifier: Apache-2.0
// Checks that no choice keeps all loads below a bound, sharing nothing with the search that found
// it: only the problem as it was given and Lagrangian bounds.
//
// Branch and bound on halves of candidate lists. The weights of a node follow subgradients with
// Polyak's step towards the bound to prove; each of them removes candidates that cannot be part of
// a choice below it. A node ends when its weights prove the bound, or with a choice. The item
// whose candidates differ most is halved at the middle. Needs several times the work of the search.
#include "gnn/plan/verify/verify_selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace npu::gnn {
namespace {

using Lists = std::vector<std::vector<const LoadCandidate*>>;

class BoundChecker {
 public:
  BoundChecker(const SelectionProblem& problem, double bound, std::int64_t budget)
      : resources_(static_cast<std::size_t>(problem.resource_count)), bound_(bound), left_(budget) {
    for (const auto& candidates : problem.items) {
      auto& list = lists_.emplace_back();
      for (const LoadCandidate& candidate : candidates) list.push_back(&candidate);
    }
  }

  BoundCheck run(const std::vector<double>& multipliers) {
    descend(lists_, multipliers);
    return result_;
  }

 private:
  bool ended() const { return result_ != BoundCheck::kHolds; }

  void descend(Lists lists, std::vector<double> weights) {
    if (ended() || holds(lists, weights) || ended()) return;
    std::size_t item = 0;
    std::size_t resource = 0;
    double widest = 0;
    double middle = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      for (std::size_t r = 0; r < resources_; ++r) {
        const auto [least, most] = std::minmax_element(
            lists[i].begin(), lists[i].end(),
            [r](const auto* a, const auto* b) { return a->loads[r] < b->loads[r]; });
        const double range = (*most)->loads[r] - (*least)->loads[r];
        const double width = range * (weights[r] + 1e-6);
        if (width <= widest) continue;
        widest = width;
        item = i;
        resource = r;
        middle = (*least)->loads[r] + range / 2;
        if (!(middle < (*most)->loads[r])) middle = (*least)->loads[r];
      }
    }
    // All candidates of an item are alike: holds() has looked at their loads.
    if (widest <= 0) return;
    Lists above = lists;
    std::erase_if(lists[item], [&](const auto* c) { return c->loads[resource] > middle; });
    std::erase_if(above[item], [&](const auto* c) { return c->loads[resource] <= middle; });
    descend(std::move(lists), weights);
    descend(std::move(above), std::move(weights));
  }

  // True if some weights prove the bound for the remaining candidates. Candidates that no choice
  // below the bound can have are removed; `weights` becomes the best ones.
  bool holds(Lists& lists, std::vector<double>& weights) {
    constexpr int kSteps = 25;
    std::vector<double> now = weights;
    std::vector<double> loads(resources_);
    std::vector<std::vector<double>> costs(lists.size());
    double best = -std::numeric_limits<double>::infinity();
    for (int step = 0; step < kSteps; ++step) {
      std::fill(loads.begin(), loads.end(), 0);
      double value = 0;
      for (std::size_t i = 0; i < lists.size(); ++i) {
        costs[i].clear();
        for (const LoadCandidate* candidate : lists[i]) {
          costs[i].push_back(
              std::inner_product(now.begin(), now.end(), candidate->loads.begin(), 0.0));
        }
        const auto cheapest = std::min_element(costs[i].begin(), costs[i].end());
        const double least = *cheapest;
        const auto& chosen = lists[i][static_cast<std::size_t>(cheapest - costs[i].begin())];
        for (std::size_t r = 0; r < resources_; ++r) loads[r] += chosen->loads[r];
        for (double& cost : costs[i]) cost -= least;
        value += least;
        left_ -= static_cast<std::int64_t>(costs[i].size()) + 10;
      }
      if (value >= bound_) return true;
      if (*std::max_element(loads.begin(), loads.end()) < bound_) {
        result_ = BoundCheck::kFails;
        return false;
      }
      if (left_ < 0) {
        result_ = BoundCheck::kUnknown;
        return false;
      }
      for (std::size_t i = 0; i < lists.size(); ++i) {
        std::size_t kept = 0;
        for (std::size_t k = 0; k < lists[i].size(); ++k) {
          if (costs[i][k] < bound_ - value) lists[i][kept++] = lists[i][k];
        }
        lists[i].resize(kept);
      }
      if (value > best) {
        best = value;
        weights = now;
      }
      step_towards_bound(now, loads, value);
    }
    return false;
  }

  void step_towards_bound(std::vector<double>& weights, std::vector<double> loads,
                          double value) const {
    const double mean =
        std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(resources_);
    double norm = 0;
    for (double& load : loads) {
      load -= mean;
      norm += load * load;
    }
    if (!(norm > 0)) return;
    // A little beyond the bound: the steps shrink as they come near it.
    const double length = (bound_ - value + 1e-6 * std::abs(bound_)) / norm;
    double sum = 0;
    for (std::size_t r = 0; r < resources_; ++r) {
      weights[r] = std::max(0.0, weights[r] + length * loads[r]);
      sum += weights[r];
    }
    for (double& weight : weights) weight /= sum;
  }

  std::size_t resources_;
  double bound_;
  std::int64_t left_;
  Lists lists_;
  BoundCheck result_ = BoundCheck::kHolds;
};

}  // namespace

BoundCheck check_load_bound(const SelectionProblem& problem, double bound,
                            const std::vector<double>& multipliers, std::int64_t budget) {
  if (problem.items.empty()) return bound > 0 ? BoundCheck::kFails : BoundCheck::kHolds;
  return BoundChecker(problem, bound, budget).run(multipliers);
}

}  // namespace npu::gnn
