// SPDX-License-Identifier: Apache-2.0
#include "passes/quantize/precision_budget.hpp"

#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

namespace npu::quantize {
namespace {

/// A random graph of ops with random times, errors and a budget.
struct RandomCase {
  PrecisionProblem problem;
  PrecisionCosts costs;
  BudgetProblem budget;

  RandomCase(std::mt19937& random, int units) {
    const auto below = [&](int bound) {
      return static_cast<int>(random() % static_cast<unsigned>(bound));
    };
    problem.values.resize(1);  // a graph input
    std::int64_t all = 0;
    for (int u = 0; u < units; ++u) {
      Unit unit;
      unit.allowed = below(8) == 0 ? Allowed::kFloat : Allowed::kBoth;
      problem.units.push_back(unit);
      costs.float_cost.push_back(50 + below(1000));
      costs.int8_cost.push_back(below(500));
      budget.error.push_back(below(5) == 0 ? 0 : below(1000));
      all += budget.error.back();
      for (int reads = 1 + below(2); reads > 0; --reads) {
        std::vector<std::int32_t>& readers =
            problem.values[static_cast<std::size_t>(below(u + 1))].readers;
        if (readers.empty() || readers.back() != u) readers.push_back(u);
      }
      Value value;
      value.producer = u;
      value.is_output = u + 1 == units || below(6) == 0;
      problem.values.push_back(value);
    }
    for (std::size_t v = 0; v < problem.values.size(); ++v) {
      costs.to_int8.push_back(below(300));
      costs.to_float.push_back(below(300));
    }
    budget.problem = &problem;
    budget.costs = &costs;
    budget.budget = below(static_cast<int>(all) + 1);
  }
};

std::int64_t brute_force(const RandomCase& example) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const std::size_t units = example.problem.units.size();
  std::vector<char> int8(units);
  for (unsigned mask = 0; mask < 1U << units; ++mask) {
    std::int64_t error = 0;
    bool is_allowed = true;
    for (std::size_t u = 0; u < units; ++u) {
      int8[u] = static_cast<char>(mask >> u & 1U);
      if (int8[u] == 0) continue;
      error += example.budget.error[u];
      is_allowed = is_allowed && example.problem.units[u].allowed == Allowed::kBoth;
    }
    if (!is_allowed || error > example.budget.budget) continue;
    least = std::min(least, cost_of(example.problem, example.costs, int8));
  }
  return least;
}

/// As NNCF's accuracy control: all that can be int8 is, and the op with the worst error becomes
/// float until the errors are within the budget. `reopens`: of those that are left, the cheapest
/// choice is taken each time, whatever it does to the errors.
std::int64_t greedy(const RandomCase& example, bool reopens) {
  PrecisionProblem problem = example.problem;
  for (;;) {
    std::vector<char> int8;
    for (const Unit& unit : problem.units) int8.push_back(unit.allowed == Allowed::kBoth ? 1 : 0);
    if (reopens) {
      int8 = int8_units(problem, solve_min_cut(precision_network(problem, example.costs)));
    }
    std::int64_t error = 0;
    std::size_t worst = 0;
    for (std::size_t u = 0; u < int8.size(); ++u) {
      if (int8[u] == 0) continue;
      error += example.budget.error[u];
      const bool is_worse =
          int8[worst] == 0 || example.budget.error[u] > example.budget.error[worst];
      if (is_worse) worst = u;
    }
    if (error <= example.budget.budget) return cost_of(problem, example.costs, int8);
    problem.units[worst].allowed = Allowed::kFloat;
  }
}

}  // namespace

TEST_CASE("budget: a greedy choice is never faster within the same error", "[quantize]") {
  std::mt19937 random(33);
  std::int64_t slower = 0;
  for (int round = 0; round < 600; ++round) {
    const RandomCase example(random, 2 + round % 30);
    const BudgetSolution found = solve_budget(example.budget, 20'000);
    INFO("round " << round);
    REQUIRE(found.lower_bound == found.cost);
    for (const bool reopens : {false, true}) {
      const std::int64_t cost = greedy(example, reopens);
      REQUIRE(found.cost <= cost);
      slower += found.cost < cost ? 1 : 0;
    }
  }
  CHECK(slower > 300);  // so that the two are told apart
}

TEST_CASE("budget: equal to trying all choices on 2,000 random graphs", "[quantize]") {
  std::mt19937 random(21);
  std::int64_t gaps = 0;
  for (int round = 0; round < 2000; ++round) {
    const RandomCase example(random, 1 + round % 14);
    const BudgetSolution found = solve_budget(example.budget, 100'000);
    INFO("round " << round);
    REQUIRE(found.int8.size() == example.problem.units.size());
    REQUIRE(found.cost == brute_force(example));
    REQUIRE(found.cost == cost_of(example.problem, example.costs, found.int8));
    REQUIRE(found.error <= example.budget.budget);
    REQUIRE(found.lower_bound == found.cost);
    REQUIRE(found.root_bound <= found.cost);
    REQUIRE(dual_bound(example.budget, found.price, found.divisor) == found.root_bound);
    gaps += found.root_bound < found.cost ? 1 : 0;
  }
  CHECK(gaps > 100);  // so that branch and bound was needed
}

TEST_CASE("budget: a search that is cut short states a bound that holds", "[quantize]") {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const RandomCase example(random, 12);
    const BudgetSolution found = solve_budget(example.budget, 1);
    const std::int64_t least = brute_force(example);
    CHECK(found.cost >= least);
    CHECK(found.lower_bound <= least);
  }
}

TEST_CASE("budget: none at all leaves everything float", "[quantize]") {
  std::mt19937 random(9);
  RandomCase example(random, 6);
  example.budget.error.assign(6, 1);
  example.budget.budget = 0;
  CHECK(solve_budget(example.budget, 100).int8 == std::vector<char>(6, 0));
}

}  // namespace npu::quantize
