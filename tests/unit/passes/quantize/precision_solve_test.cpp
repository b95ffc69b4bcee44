// SPDX-License-Identifier: Apache-2.0
#include "passes/quantize/precision_solve.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

namespace npu::quantize {
namespace {

/// A random problem with random costs: a graph of `units`, each of which makes one value.
PrecisionProblem random_problem(std::mt19937& random, int units, PrecisionCosts& costs) {
  const auto below = [&](unsigned bound) { return static_cast<int>(random() % bound); };
  PrecisionProblem problem;
  problem.values.resize(2);  // graph inputs
  costs = {};
  for (int u = 0; u < units; ++u) {
    Unit unit;
    const int kind = below(6);
    unit.allowed = kind == 0 ? Allowed::kFloat : kind == 1 ? Allowed::kInt8 : Allowed::kBoth;
    problem.units.push_back(unit);
    costs.float_cost.push_back(below(20));
    costs.int8_cost.push_back(below(10));
    const int reads = 1 + below(3);
    for (int r = 0; r < reads; ++r) {
      std::vector<std::int32_t>& readers =
          problem.values[static_cast<std::size_t>(below(static_cast<unsigned>(u) + 2))].readers;
      if (readers.empty() || readers.back() != u) readers.push_back(u);
    }
    Value value;
    value.producer = u;
    value.is_output = below(5) == 0;
    problem.values.push_back(value);
  }
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    costs.to_int8.push_back(below(8));
    costs.to_float.push_back(below(8));
  }
  return problem;
}

std::int64_t brute_force(const PrecisionProblem& problem, const PrecisionCosts& costs) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const std::size_t units = problem.units.size();
  for (unsigned mask = 0; mask < 1U << units; ++mask) {
    std::vector<char> int8(units);
    bool is_allowed = true;
    for (std::size_t u = 0; u < units; ++u) {
      int8[u] = static_cast<char>(mask >> u & 1U);
      const Allowed allowed = problem.units[u].allowed;
      is_allowed = is_allowed &&
                   (allowed == Allowed::kBoth || (int8[u] != 0) == (allowed == Allowed::kInt8));
    }
    if (is_allowed) least = std::min(least, cost_of(problem, costs, int8));
  }
  return least;
}

}  // namespace

TEST_CASE("precisions: the cut is the least of all choices", "[quantize]") {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    PrecisionCosts costs;
    const PrecisionProblem problem = random_problem(random, 1 + round % 9, costs);
    const MinCut cut = solve_min_cut(precision_network(problem, costs));
    INFO("round " << round);
    CHECK(cut.value == brute_force(problem, costs));
    CHECK(cut.value == cost_of(problem, costs, int8_units(problem, cut)));
  }
}

TEST_CASE("precisions: a tensor is converted once for all of its readers", "[quantize]") {
  // A graph input that three int8 units read, and a float one; the second unit's result is read by
  // two float ones and is an output.
  PrecisionProblem problem;
  problem.units.resize(6);
  for (const std::size_t u : {0, 1, 2}) problem.units[u].allowed = Allowed::kInt8;
  problem.values.resize(2);
  problem.values[0].readers = {0, 1, 2, 3};
  problem.values[1].producer = 1;
  problem.values[1].readers = {4, 5};
  problem.values[1].is_output = true;
  const PrecisionCosts costs = conversion_counts(problem);
  CHECK(solve_min_cut(precision_network(problem, costs)).value == 2);
}

}  // namespace npu::quantize
