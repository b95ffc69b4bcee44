// SPDX-License-Identifier: Apache-2.0
// The problem in flat arrays, without dominated candidates. O(candidates^2) for an item.
#include "gnn/plan/search/selection_table.hpp"

#include <algorithm>
#include <numeric>

namespace npu::gnn {

SelectionTable::SelectionTable(const SelectionProblem& problem)
    : resources(static_cast<std::size_t>(problem.resource_count)) {
  begin.push_back(0);
  for (const auto& candidates : problem.items) {
    add_item(candidates);
    begin.push_back(original.size());
  }
}

void SelectionTable::add_item(const std::vector<LoadCandidate>& candidates) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto total = [&](std::size_t c) {
    return std::accumulate(candidates[c].loads.begin(), candidates[c].loads.end(), 0.0);
  };
  std::vector<double> totals(candidates.size());
  for (std::size_t c = 0; c < candidates.size(); ++c) totals[c] = total(c);
  // Whoever dominates has the smaller total, or the same loads and the smaller latency.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return totals[a] != totals[b] ? totals[a] < totals[b]
                                  : candidates[a].latency_ms < candidates[b].latency_ms;
  });
  const std::size_t first = original.size();
  for (const std::size_t c : order) {
    bool dominated = false;
    for (std::size_t k = first; k < original.size() && !dominated; ++k) {
      dominated = true;
      for (std::size_t r = 0; r < resources && dominated; ++r) {
        dominated = loads[k * resources + r] <= candidates[c].loads[r];
      }
    }
    if (dominated) continue;
    original.push_back(static_cast<std::int32_t>(c));
    latencies.push_back(candidates[c].latency_ms);
    loads.insert(loads.end(), candidates[c].loads.begin(), candidates[c].loads.end());
  }
}

double SelectionTable::weighted(std::size_t candidate, const std::vector<double>& weights) const {
  const double* load = this->load(candidate);
  double sum = 0;
  for (std::size_t r = 0; r < resources; ++r) sum += weights[r] * load[r];
  return sum;
}

std::size_t SelectionTable::cheapest(std::size_t item, const std::vector<double>& weights) const {
  std::size_t best = begin[item];
  double best_cost = std::numeric_limits<double>::infinity();
  for (std::size_t c = begin[item]; c < begin[item + 1]; ++c) {
    const double cost = weighted(c, weights);
    if (cost < best_cost) {
      best_cost = cost;
      best = c;
    }
  }
  return best;
}

SelectionState::SelectionState(const SelectionTable& table, std::vector<std::size_t> choice)
    : table_(&table), choice_(std::move(choice)), loads_(table.resources, 0) {
  for (const std::size_t c : choice_) {
    for (std::size_t r = 0; r < table.resources; ++r) loads_[r] += table.load(c)[r];
  }
}

double SelectionState::max_load() const { return *std::max_element(loads_.begin(), loads_.end()); }

SelectionState::Score SelectionState::score_of(const double* loads) const {
  Score score{0, 0};
  for (std::size_t r = 0; r < table_->resources; ++r) {
    score.largest = std::max(score.largest, loads[r]);
    score.squares += loads[r] * loads[r];
  }
  return score;
}

void SelectionState::set(std::size_t item, std::size_t candidate) {
  for (std::size_t r = 0; r < table_->resources; ++r) {
    loads_[r] += table_->load(candidate)[r] - table_->load(choice_[item])[r];
  }
  choice_[item] = candidate;
}

}  // namespace npu::gnn
