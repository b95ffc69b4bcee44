// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "gnn/plan/search/selection.hpp"

namespace npu::gnn {

/// The problem without candidates that another one of their item beats in every resource. Loads lie
/// in one flat array, in milliseconds.
class SelectionTable {
 public:
  explicit SelectionTable(const SelectionProblem& problem);

  std::size_t items() const { return begin.size() - 1; }
  const double* load(std::size_t candidate) const { return loads.data() + candidate * resources; }
  double latency(std::size_t candidate) const { return latencies[candidate]; }
  /// The load of a candidate under weights of the resources.
  double weighted(std::size_t candidate, const std::vector<double>& weights) const;
  /// The candidate of an item whose weighted load is least.
  std::size_t cheapest(std::size_t item, const std::vector<double>& weights) const;

  std::size_t resources;
  std::vector<std::size_t> begin;  ///< candidates of item i: begin[i] .. begin[i + 1]
  std::vector<double> loads;
  std::vector<double> latencies;
  std::vector<std::int32_t> original;  ///< index in the problem

 private:
  void add_item(const std::vector<LoadCandidate>& candidates);
};

/// A choice with its loads. Compared by the largest load, then by the sum of squares, which leads
/// across plateaus. Refers to its table.
class SelectionState {
 public:
  SelectionState(const SelectionTable& table, std::vector<std::size_t> choice);

  const std::vector<double>& loads() const { return loads_; }
  const std::vector<std::size_t>& choice() const { return choice_; }
  double max_load() const;

  struct Score {
    double largest = std::numeric_limits<double>::infinity();
    double squares = std::numeric_limits<double>::infinity();
    bool better_than(const Score& other, double tolerance) const {
      if (largest < other.largest - tolerance) return true;
      return largest <= other.largest + tolerance && squares < other.squares * (1 - 1e-9);
    }
  };
  Score score() const { return score_of(loads_.data()); }
  Score score_of(const double* loads) const;
  void set(std::size_t item, std::size_t candidate);
  /// Sums anew: thousands of switches round.
  void refresh() { *this = SelectionState(*table_, std::move(choice_)); }

 private:
  const SelectionTable* table_;
  std::vector<std::size_t> choice_;
  std::vector<double> loads_;
};

/// Weights of the resources, at least 0 and with sum 1, and the bound that they prove.
struct SelectionDual {
  double value = 0;
  std::vector<double> weights;
};

/// Maximises the Lagrangian bound over the weights.
SelectionDual solve_selection_dual(const SelectionTable& table);

/// The fastest candidate of each item.
std::vector<std::size_t> fastest_each(const SelectionTable& table);
/// Applies the best single switch until none helps. Returns the candidates looked at.
std::int64_t single_switches(const SelectionTable& table, SelectionState& state,
                             std::int64_t budget);
/// The best that single and pair switches from several starts find.
SelectionState search_locally(const SelectionTable& table,
                              const std::vector<std::vector<std::size_t>>& starts, double bound,
                              std::int64_t budget);
/// Single switches of a choice that keep its largest load, towards smaller latency.
void shorten_latencies(const SelectionTable& table, SelectionState& state);

/// What an exhaustive search came to.
struct SelectionProof {
  double bound = 0;       ///< no choice has a smaller largest load
  bool finished = false;  ///< the incumbent is optimal
  std::int64_t work = 0;
};

/// Improves `best` and proves a bound, within an amount of work.
SelectionProof search_exhaustively(const SelectionTable& table, const SelectionDual& dual,
                                   SelectionState& best, std::int64_t budget);

}  // namespace npu::gnn
