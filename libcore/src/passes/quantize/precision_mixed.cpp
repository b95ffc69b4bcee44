// SPDX-License-Identifier: Apache-2.0
// The choice of precisions by predicted times and measured errors.
//
// Times and errors become integers, which cuts and certificates are exact for: the sum of all times
// is 2^28 ticks at most, the budget 2^20 steps, and an error is rounded up, so that a choice within
// the integer budget is within the real one.
#include "passes/quantize/precision_mixed.hpp"

#include <cmath>
#include <numeric>

#include "npu/support/ids.hpp"
#include "passes/quantize/precision_times.hpp"
#include "support/text.hpp"

namespace npu::quantize {
namespace {

constexpr double kMostTicks = 1 << 28;
constexpr std::int64_t kBudget = 1 << 20;
constexpr std::int64_t kMostError = 1 << 28;
constexpr std::int64_t kMostRelaxations = 20'000;

std::vector<std::int64_t> ticks_of(const std::vector<double>& us, double tick_us) {
  std::vector<std::int64_t> ticks;
  for (const double time : us) ticks.push_back(std::llround(time / tick_us));
  return ticks;
}

double sum_of(const std::vector<double>& us) { return std::accumulate(us.begin(), us.end(), 0.0); }

void find_errors(const Graph& graph, PrecisionProblem& problem, const TensorRanges& ranges,
                 double max_error, MixedChoice& choice) {
  NameIndex<double> power;
  for (const OpError& error : ranges.errors) power.emplace(error.node, error.power);
  const auto units = static_cast<std::int64_t>(problem.units.size());
  // No sum of errors leaves the range, whatever the number of units.
  choice.budget = std::min(kBudget, kMostError / (units + 1));
  choice.error_step = max_error / static_cast<double>(choice.budget);
  for (Unit& unit : problem.units) {
    choice.error.push_back(0);
    if (unit.allowed == Allowed::kFloat) continue;
    unit.allowed = Allowed::kFloat;
    const auto found = power.find(graph.node(unit.members.front()).name);
    if (found == power.end()) {
      unit.reason = "its error was not measured";
    } else if (found->second > max_error) {
      unit.reason = "its error alone exceeds the budget";
    } else {
      unit.allowed = Allowed::kBoth;
      choice.error.back() =
          max_error > 0
              // Of a step that underflowed to 0 nothing fits into an integer.
              ? static_cast<std::int64_t>(std::min(static_cast<double>(choice.budget),
                                                   std::ceil(found->second / choice.error_step)))
              : 0;
    }
  }
}

void give_reasons(PrecisionProblem& problem, const PrecisionTimes& times,
                  const MixedChoice& choice) {
  for (std::size_t u = 0; u < problem.units.size(); ++u) {
    Unit& unit = problem.units[u];
    if (unit.allowed != Allowed::kBoth) continue;
    const std::string saved = fixed_text(times.float_us[u] - times.int8_us[u], 3) + " us";
    unit.reason = choice.solution.int8[u] != 0
                      ? "saves " + saved
                      : "would save " + saved + " before conversions, not worth its error";
  }
}

}  // namespace

MixedChoice choose_mixed(const Graph& graph, PrecisionProblem& problem, const TensorRanges& ranges,
                         const Target& target, const CostModel& cost, const NodeTable* measured,
                         double max_error) {
  MixedChoice choice;
  find_errors(graph, problem, ranges, max_error, choice);
  const PrecisionTimes times = predict_times(graph, problem, target, cost, measured);
  choice.float_us = sum_of(times.float_us);
  const double all = choice.float_us + sum_of(times.int8_us) + sum_of(times.to_int8_us) +
                     sum_of(times.to_float_us);
  choice.tick_us = all > 0 ? all / (kMostTicks / 2) : 1;
  choice.costs = {.float_cost = ticks_of(times.float_us, choice.tick_us),
                  .int8_cost = ticks_of(times.int8_us, choice.tick_us),
                  .to_int8 = ticks_of(times.to_int8_us, choice.tick_us),
                  .to_float = ticks_of(times.to_float_us, choice.tick_us)};
  const BudgetProblem budget{&problem, &choice.costs, choice.error, choice.budget};
  choice.solution = solve_budget(budget, kMostRelaxations);
  give_reasons(problem, times, choice);
  return choice;
}

}  // namespace npu::quantize
