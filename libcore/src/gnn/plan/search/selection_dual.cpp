// SPDX-License-Identifier: Apache-2.0
// The Lagrangian dual of minimum makespan: the weights of the resources whose weighted sum of
// cheapest candidates is largest.
//
// That sum is the least of one linear function for each choice, so cutting planes find its maximum:
// the weights that are best against the load vectors seen so far are the optimal strategy of a
// matrix game, and the cheapest candidates under them give the next load vector. The game is solved
// by the simplex method with a row for each resource. A few dozen rounds of O(candidates *
// resources).
#include <algorithm>
#include <limits>

#include "gnn/plan/search/matrix_game.hpp"
#include "gnn/plan/search/selection_table.hpp"

namespace npu::gnn {

SelectionDual solve_selection_dual(const SelectionTable& table) {
  constexpr int kRounds = 300;
  const std::size_t resources = table.resources;
  SelectionDual best;
  best.weights.assign(resources, 1.0 / static_cast<double>(resources));
  best.value = -std::numeric_limits<double>::infinity();
  MatrixGame game(resources);
  double scale = 0;
  std::vector<double> loads(resources);
  std::vector<double> column(resources);
  std::vector<double> weights = best.weights;
  // The middle and the corners first: cuts there keep the next steps from jumping between them.
  const int first_steps = static_cast<int>(resources) + 1;
  for (int round = 0; round < kRounds; ++round) {
    if (round >= first_steps) {
      weights = game.weights();
      if (game.value() - 1 <= best.value / scale * (1 + 1e-11)) break;
    } else if (round > 0) {
      std::fill(weights.begin(), weights.end(), 0);
      weights[static_cast<std::size_t>(round) - 1] = 1;
    }
    std::fill(loads.begin(), loads.end(), 0);
    double value = 0;
    for (std::size_t i = 0; i < table.items(); ++i) {
      const std::size_t c = table.cheapest(i, weights);
      for (std::size_t r = 0; r < resources; ++r) loads[r] += table.load(c)[r];
      value += table.weighted(c, weights);
    }
    if (value > best.value) best = {value, weights};
    if (round == 0) {
      scale = *std::max_element(loads.begin(), loads.end());
      if (!(scale > 0)) break;
    }
    // The game wants positive entries: a constant on all of them moves its value, not its optimum.
    for (std::size_t r = 0; r < resources; ++r) column[r] = loads[r] / scale + 1;
    game.add(column);
  }
  return best;
}

}  // namespace npu::gnn
