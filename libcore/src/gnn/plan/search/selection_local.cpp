// SPDX-License-Identifier: Apache-2.0
// Local search that minimises the largest load: single switches, then pairs of switches, then the
// same again after a few random switches. O(candidates) for a round of single switches, O(items^2 *
// candidates^2) for a pass over pairs, which large problems do without.
#include <algorithm>
#include <array>

#include "gnn/plan/search/random_stream.hpp"
#include "gnn/plan/search/selection_table.hpp"

namespace npu::gnn {
namespace {

// One pass over pairs of items; a pair of switches that helps is applied immediately.
std::int64_t pair_switches(const SelectionTable& table, SelectionState& state, std::int64_t budget,
                           bool& improved) {
  std::int64_t work = 0;
  improved = false;
  std::array<double, 16> first{};
  std::array<double, 16> both{};
  for (std::size_t i = 0; i < table.items(); ++i) {
    for (std::size_t j = i + 1; j < table.items(); ++j) {
      if (work > budget) return work;
      const SelectionState::Score now = state.score();
      SelectionState::Score best = now;
      std::size_t best_a = 0;
      std::size_t best_b = 0;
      bool found = false;
      const double* old_i = table.load(state.choice()[i]);
      const double* old_j = table.load(state.choice()[j]);
      for (std::size_t a = table.begin[i]; a < table.begin[i + 1]; ++a) {
        bool hopeless = false;
        for (std::size_t r = 0; r < table.resources; ++r) {
          first[r] = state.loads()[r] - old_i[r] - old_j[r] + table.load(a)[r];
          hopeless = hopeless || first[r] >= now.largest;
        }
        ++work;
        if (hopeless) continue;
        for (std::size_t b = table.begin[j]; b < table.begin[j + 1]; ++b) {
          for (std::size_t r = 0; r < table.resources; ++r) both[r] = first[r] + table.load(b)[r];
          const SelectionState::Score score = state.score_of(both.data());
          if (score.better_than(best, now.largest * 1e-12)) {
            best = score;
            best_a = a;
            best_b = b;
            found = true;
          }
        }
        work += static_cast<std::int64_t>(table.begin[j + 1] - table.begin[j]);
      }
      if (found) {
        state.set(i, best_a);
        state.set(j, best_b);
        improved = true;
      }
    }
  }
  return work;
}

std::int64_t descend(const SelectionTable& table, SelectionState& state, std::int64_t budget) {
  std::int64_t work = single_switches(table, state, budget);
  bool improved = table.items() <= 200;
  while (improved && work < budget) {
    work += pair_switches(table, state, budget - work, improved);
    if (improved) work += single_switches(table, state, budget - work);
  }
  state.refresh();
  return work;
}

}  // namespace

std::int64_t single_switches(const SelectionTable& table, SelectionState& state,
                             std::int64_t budget) {
  std::int64_t work = 0;
  std::array<double, 16> loads{};
  while (work < budget) {
    const SelectionState::Score now = state.score();
    const double tolerance = now.largest * 1e-12;
    SelectionState::Score best = now;
    std::size_t best_item = 0;
    std::size_t best_candidate = 0;
    bool found = false;
    for (std::size_t i = 0; i < table.items(); ++i) {
      const double* old = table.load(state.choice()[i]);
      for (std::size_t c = table.begin[i]; c < table.begin[i + 1]; ++c) {
        if (c == state.choice()[i]) continue;
        for (std::size_t r = 0; r < table.resources; ++r) {
          loads[r] = state.loads()[r] - old[r] + table.load(c)[r];
        }
        const SelectionState::Score score = state.score_of(loads.data());
        if (score.better_than(best, tolerance)) {
          best = score;
          best_item = i;
          best_candidate = c;
          found = true;
        }
      }
      work += static_cast<std::int64_t>(table.begin[i + 1] - table.begin[i]);
    }
    if (!found) break;
    state.set(best_item, best_candidate);
  }
  return work;
}

SelectionState search_locally(const SelectionTable& table,
                              const std::vector<std::vector<std::size_t>>& starts, double bound,
                              std::int64_t budget) {
  SelectionState best(table, starts.front());
  std::int64_t work = 0;
  for (const auto& start : starts) {
    SelectionState state(table, start);
    work += descend(table, state, budget / 4 + 1);
    if (state.max_load() < best.max_load()) best = state;
  }
  // Iterated local search: a few switches at random, then downhill again.
  RandomStream stream;
  const std::size_t kicks = std::min<std::size_t>(table.items(), 4);
  for (int round = 0; round < 400 && work < budget && best.max_load() > bound * (1 + 1e-5);
       ++round) {
    SelectionState state = best;
    for (std::size_t k = 0; k < kicks; ++k) {
      const std::size_t i = stream.below(table.items());
      state.set(i, table.begin[i] + stream.below(table.begin[i + 1] - table.begin[i]));
    }
    work += descend(table, state, budget - work) + 1;
    if (state.max_load() < best.max_load()) best = state;
  }
  return best;
}

void shorten_latencies(const SelectionTable& table, SelectionState& state) {
  const double limit = state.max_load() * (1 + 1e-12);
  for (std::size_t i = 0; i < table.items(); ++i) {
    for (std::size_t c = table.begin[i]; c < table.begin[i + 1]; ++c) {
      const std::size_t old = state.choice()[i];
      if (table.latency(c) >= table.latency(old)) continue;
      state.set(i, c);
      if (state.max_load() > limit) state.set(i, old);
    }
  }
  state.refresh();
}

std::vector<std::size_t> fastest_each(const SelectionTable& table) {
  std::vector<std::size_t> choice;
  for (std::size_t i = 0; i < table.items(); ++i) {
    std::size_t best = table.begin[i];
    for (std::size_t c = best; c < table.begin[i + 1]; ++c) {
      if (table.latency(c) < table.latency(best)) best = c;
    }
    choice.push_back(best);
  }
  return choice;
}

}  // namespace npu::gnn
