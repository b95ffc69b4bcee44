// SPDX-License-Identifier: Apache-2.0
// The cheapest precisions whose errors fit a budget.
//
// With a price on errors the choice is one minimum cut, and as the price rises the cuts are nested:
// every one is the cheapest for its error. The best price is where the cheapest choice that is too
// inaccurate meets one that fits; each step takes the price at which the two best known ones cost
// the same and either finds a cheaper choice, which replaces one of them, or proves that there is
// none (Eisner and Severance, "Mathematical techniques for efficient record segmentation in large
// shared databases", J. ACM 1976). Weak duality makes that a lower bound. Between the two, branch
// and bound over a unit in which they differ closes the gap; all of its bounds are such cuts.
#include "passes/quantize/precision_budget.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "npu/support/ids.hpp"

namespace npu::quantize {
namespace {

struct Choice {
  std::vector<char> int8;
  std::int64_t cost = 0;
  std::int64_t error = 0;
};

std::int64_t divide_up(std::int64_t value, std::int64_t divisor) {
  if (divisor < 1) return value;  // never: a lower error is below a higher one
  const std::int64_t quotient = value / divisor;
  return quotient * divisor < value ? quotient + 1 : quotient;
}

/// The cheapest choice with a price on errors.
Choice cheapest(const BudgetProblem& budget, const PrecisionProblem& problem, std::int64_t price,
                std::int64_t divisor) {
  PrecisionCosts costs = *budget.costs;
  for (auto* list : {&costs.float_cost, &costs.int8_cost, &costs.to_int8, &costs.to_float}) {
    for (std::int64_t& cost : *list) cost *= divisor;
  }
  for (std::size_t u = 0; u < costs.int8_cost.size(); ++u) {
    costs.int8_cost[u] += price * budget.error[u];
  }
  Choice choice;
  choice.int8 = int8_units(problem, solve_min_cut(precision_network(problem, costs)));
  choice.cost = cost_of(problem, *budget.costs, choice.int8);
  for (std::size_t u = 0; u < choice.int8.size(); ++u) {
    if (choice.int8[u] != 0) choice.error += budget.error[u];
  }
  return choice;
}

class BudgetSearch {
 public:
  explicit BudgetSearch(const BudgetProblem& budget) : budget_(budget), problem_(*budget.problem) {}

  BudgetSolution run(std::int64_t max_relaxations) {
    std::vector<Branch> open{{allowed(), std::numeric_limits<std::int64_t>::min()}};
    bool is_root = true;
    while (!open.empty() && solution_.relaxations < max_relaxations) {
      const Branch branch = std::move(open.back());
      open.pop_back();
      if (best_ && branch.bound >= best_->cost) continue;
      for (std::size_t u = 0; u < branch.allowed.size(); ++u) {
        problem_.units[u].allowed = branch.allowed[u];
      }
      const Relaxation found = relax();
      if (is_root) keep_root(found);
      is_root = false;
      if (found.unit < 0 || (best_ && found.bound >= best_->cost)) continue;
      for (const Allowed precision : {Allowed::kInt8, Allowed::kFloat}) {
        Branch next{branch.allowed, found.bound};
        next.allowed[index_of(found.unit)] = precision;
        open.push_back(std::move(next));
      }
    }
    if (!best_) return std::move(solution_);
    solution_.int8 = best_->int8;
    solution_.cost = best_->cost;
    solution_.error = best_->error;
    solution_.lower_bound = best_->cost;
    for (const Branch& branch : open) {
      solution_.lower_bound =
          std::min(solution_.lower_bound, std::max(branch.bound, solution_.root_bound));
    }
    return std::move(solution_);
  }

 private:
  struct Branch {
    std::vector<Allowed> allowed;
    std::int64_t bound = 0;
  };
  struct Relaxation {
    std::int64_t bound = std::numeric_limits<std::int64_t>::max();  ///< of this branch
    std::int32_t unit = -1;  ///< to branch on; -1: the branch is done
    std::int64_t price = 0;
    std::int64_t divisor = 1;
  };

  std::vector<Allowed> allowed() const {
    std::vector<Allowed> result;
    for (const Unit& unit : problem_.units) result.push_back(unit.allowed);
    return result;
  }

  void keep_root(const Relaxation& root) {
    solution_.root_bound = root.bound;
    solution_.price = root.price;
    solution_.divisor = root.divisor;
  }

  void offer(const Choice& choice) {
    if (choice.error > budget_.budget) return;
    const bool is_better =
        !best_ || std::pair{choice.cost, choice.error} < std::pair{best_->cost, best_->error};
    if (is_better) best_ = choice;
  }

  /// Everything that may be float is.
  Choice most_accurate() const {
    Choice choice;
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      const bool is_int8 = problem_.units[u].allowed == Allowed::kInt8;
      choice.int8.push_back(is_int8 ? 1 : 0);
      if (is_int8) choice.error += budget_.error[u];
    }
    choice.cost = cost_of(problem_, *budget_.costs, choice.int8);
    return choice;
  }

  Relaxation relax() {
    ++solution_.relaxations;
    Relaxation result;
    Choice good = most_accurate();
    if (good.error > budget_.budget) return result;
    offer(good);
    Choice fast = cheapest(budget_, problem_, 0, 1);
    result.bound = fast.cost;
    if (fast.error <= budget_.budget) return offer(fast), result;
    while (good.cost > fast.cost) {
      const std::int64_t common = std::gcd(good.cost - fast.cost, fast.error - good.error);
      const std::int64_t price = (good.cost - fast.cost) / common;
      const std::int64_t divisor = (fast.error - good.error) / common;
      const std::int64_t line = divisor * fast.cost + price * fast.error;
      Choice found = cheapest(budget_, problem_, price, divisor);
      if (divisor * found.cost + price * found.error >= line) {
        result.bound = divide_up(line - price * budget_.budget, divisor);
        result.price = price;
        result.divisor = divisor;
        result.unit = differing_unit(good, fast);
        return result;
      }
      offer(found);
      (found.error <= budget_.budget ? good : fast) = std::move(found);
    }
    return result;  // as cheap as the fastest one
  }

  /// The one with the largest error of those that only the fast choice has in int8.
  std::int32_t differing_unit(const Choice& good, const Choice& fast) const {
    std::int32_t unit = -1;
    for (std::size_t u = 0; u < good.int8.size(); ++u) {
      if (good.int8[u] == fast.int8[u]) continue;
      if (unit < 0 || budget_.error[u] > budget_.error[index_of(unit)]) {
        unit = static_cast<std::int32_t>(u);
      }
    }
    return unit;
  }

  const BudgetProblem& budget_;
  PrecisionProblem problem_;  // with the allowed precisions of a branch
  std::optional<Choice> best_;
  BudgetSolution solution_;
};

}  // namespace

BudgetSolution solve_budget(const BudgetProblem& budget, std::int64_t max_relaxations) {
  return BudgetSearch(budget).run(max_relaxations);
}

std::int64_t dual_bound(const BudgetProblem& budget, std::int64_t price, std::int64_t divisor) {
  const Choice choice = cheapest(budget, *budget.problem, price, divisor);
  return divide_up(divisor * choice.cost + price * (choice.error - budget.budget), divisor);
}

}  // namespace npu::quantize
