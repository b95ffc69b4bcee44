// SPDX-License-Identifier: Apache-2.0
// Chooses a way to run each subgraph so that the most loaded resource is loaded least: the
// multiple-choice form of minimum makespan on unrelated machines, which is NP-hard.
//
// Bound: for weights w on the simplex, max_r load_r >= sum_r w_r load_r, and the right side is
// minimised item by item. Its maximum over w is the Lagrangian dual, equal to the LP relaxation
// (selection_dual.cpp). With R resources at most R items are fractional in the LP, so the gap
// shrinks as the number of items grows. Choice: the dual's own, repaired by single and pair
// switches from several starts (selection_local.cpp); then, for few items, an exhaustive search
// that ends with the optimum or a proven bound (selection_search.cpp). Candidates that another one
// beats in every resource are left out beforehand (selection_table.cpp).
//
// Searches stop after a given amount of work, never after a time, so results are reproducible.
#include "gnn/plan/search/selection.hpp"

#include <algorithm>
#include <limits>

#include "gnn/plan/search/selection_table.hpp"

namespace npu::gnn {
namespace {

Selection finished(const SelectionTable& table, const SelectionState& state,
                   const SelectionDual& dual, double bound) {
  Selection selection;
  for (const std::size_t c : state.choice()) selection.choice.push_back(table.original[c]);
  selection.loads = state.loads();
  selection.max_load = state.max_load();
  selection.dual_bound = std::min(dual.value, selection.max_load);
  selection.bound = std::min(std::max(bound, dual.value), selection.max_load);
  selection.multipliers = dual.weights;
  return selection;
}

}  // namespace

double lagrangian_bound(const SelectionProblem& problem, const std::vector<double>& multipliers) {
  double sum = 0;
  for (const auto& candidates : problem.items) {
    double least = std::numeric_limits<double>::infinity();
    for (const LoadCandidate& candidate : candidates) {
      double cost = 0;
      for (std::size_t r = 0; r < candidate.loads.size(); ++r) {
        cost += multipliers[r] * candidate.loads[r];
      }
      least = std::min(least, cost);
    }
    sum += least;
  }
  return sum;
}

Selection select_greedy(const SelectionProblem& problem) {
  const SelectionTable table(problem);
  if (table.items() == 0) {
    Selection empty;
    empty.loads.assign(table.resources, 0);
    empty.multipliers.assign(table.resources, 1.0 / static_cast<double>(table.resources));
    return empty;
  }
  SelectionState state(table, fastest_each(table));
  single_switches(table, state, std::numeric_limits<std::int64_t>::max());
  state.refresh();
  const SelectionDual dual = solve_selection_dual(table);
  return finished(table, state, dual, dual.value);
}

Selection select_optimal(const SelectionProblem& problem, const SelectionLimits& limits) {
  const SelectionTable table(problem);
  if (table.items() == 0) return select_greedy(problem);
  const SelectionDual dual = solve_selection_dual(table);
  std::vector<std::vector<std::size_t>> starts(1);
  for (std::size_t i = 0; i < table.items(); ++i) {
    starts.front().push_back(table.cheapest(i, dual.weights));
  }
  starts.push_back(fastest_each(table));
  const bool few = static_cast<std::int64_t>(table.items()) <= limits.largest_search;
  // The search finds better choices than switches do: those only give it a start.
  SelectionState best =
      search_locally(table, starts, dual.value, few ? limits.local_work / 5 : limits.local_work);
  SelectionProof proof;
  proof.bound = dual.value;
  if (few) {
    proof = search_exhaustively(table, dual, best, limits.search_work);
  }
  shorten_latencies(table, best);
  Selection selection = finished(table, best, dual, proof.bound);
  selection.search_work = proof.work;
  selection.search_finished = proof.finished;
  return selection;
}

}  // namespace npu::gnn
