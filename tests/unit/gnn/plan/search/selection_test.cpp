// SPDX-License-Identifier: Apache-2.0
// Selection against exhaustive search, and its certificates.
#include "gnn/plan/search/selection.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "catch.hpp"
#include "gnn/plan/verify/verify_selection.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

// Items that look like subgraphs: one size, three devices of different speed, splits and pipelines.
SelectionProblem random_problem(std::uint32_t seed, std::size_t items, std::int32_t resources,
                                std::size_t candidates) {
  std::mt19937 random(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  SelectionProblem problem;
  problem.resource_count = resources;
  for (std::size_t i = 0; i < items; ++i) {
    const double size = uniform(0.5, 2);
    auto& list = problem.items.emplace_back();
    for (std::size_t c = 0; c < candidates; ++c) {
      LoadCandidate candidate;
      candidate.loads.assign(static_cast<std::size_t>(resources), 0);
      double left = 1;
      for (std::int32_t r = 0; r < resources; ++r) {
        const double share = r + 1 == resources ? left : uniform(0, left);
        left -= share;
        const double speed = 1.0 + 2.0 * static_cast<double>(r);
        candidate.loads[static_cast<std::size_t>(r)] = size * share * speed * uniform(0.8, 1.2);
        candidate.latency_ms =
            std::max(candidate.latency_ms, candidate.loads[static_cast<std::size_t>(r)]);
      }
      list.push_back(candidate);
    }
  }
  return problem;
}

double brute_force(const SelectionProblem& problem) {
  std::vector<std::size_t> choice(problem.items.size(), 0);
  double best = 1e300;
  for (;;) {
    std::vector<double> loads(static_cast<std::size_t>(problem.resource_count), 0);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      for (std::size_t r = 0; r < loads.size(); ++r) {
        loads[r] += problem.items[i][choice[i]].loads[r];
      }
    }
    best = std::min(best, *std::max_element(loads.begin(), loads.end()));
    std::size_t i = 0;
    while (i < choice.size() && ++choice[i] == problem.items[i].size()) choice[i++] = 0;
    if (i == choice.size()) return best;
  }
}

void require_sound(const SelectionProblem& problem, const Selection& selection) {
  REQUIRE(selection.choice.size() == problem.items.size());
  std::vector<double> loads(static_cast<std::size_t>(problem.resource_count), 0);
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    for (std::size_t r = 0; r < loads.size(); ++r) {
      loads[r] += problem.items[i][static_cast<std::size_t>(selection.choice[i])].loads[r];
    }
  }
  const double largest = *std::max_element(loads.begin(), loads.end());
  CHECK(std::abs(largest - selection.max_load) <= 1e-9 * largest);
  CHECK(selection.bound <= selection.max_load);
  CHECK(selection.dual_bound <= selection.bound * (1 + 1e-12));
  // The certificate stands without the solver.
  double sum = 0;
  for (const double weight : selection.multipliers) {
    CHECK(weight >= 0);
    sum += weight;
  }
  CHECK(std::abs(sum - 1) < 1e-9);
  CHECK(lagrangian_bound(problem, selection.multipliers) >= selection.dual_bound * (1 - 1e-9));
}

}  // namespace

TEST_CASE("the optimum equals exhaustive search", "[plan][selection]") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const std::int32_t resources = 1 + static_cast<std::int32_t>(seed % 4);
    const std::size_t items = 1 + seed % 6;
    const SelectionProblem problem = random_problem(seed, items, resources, 2 + seed % 5);
    const Selection selection = select_optimal(problem);
    require_sound(problem, selection);
    const double best = brute_force(problem);
    CAPTURE(seed);
    CHECK(std::abs(selection.max_load - best) <= 1e-9 * best);
    CHECK(selection.bound <= best * (1 + 1e-12));
    CHECK(selection.bound >= best * (1 - 1e-9));
    const Selection greedy = select_greedy(problem);
    require_sound(problem, greedy);
    CHECK(greedy.max_load >= best * (1 - 1e-12));
    CHECK(greedy.bound <= best * (1 + 1e-12));
  }
}

TEST_CASE("16 subgraphs are certified within 0.1 %", "[plan][selection]") {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const SelectionProblem problem = random_problem(100 + seed, 8 + seed % 9, 3, 60);
    const Selection selection = select_optimal(problem);
    require_sound(problem, selection);
    CAPTURE(seed, selection.max_load, selection.bound, selection.search_work);
    CHECK(selection.search_finished);
    CHECK(selection.max_load <= selection.bound * (1 + 1e-9));
    // Less than 1 % of the work that is allowed: fractions of a second.
    CHECK(selection.search_work < 15'000'000);
    CHECK(selection.max_load <= select_greedy(problem).max_load * (1 + 1e-12));
    CHECK(check_load_bound(problem, selection.bound * (1 - 1e-9), selection.multipliers) ==
          BoundCheck::kHolds);
    CHECK(check_load_bound(problem, selection.max_load * (1 + 1e-9), selection.multipliers) ==
          BoundCheck::kFails);
  }
}

TEST_CASE("40 subgraphs within 0.5 %, 1,000 within 1 %", "[plan][selection]") {
  const SelectionProblem forty = random_problem(7, 40, 3, 60);
  const Selection a = select_optimal(forty);
  require_sound(forty, a);
  CHECK(a.max_load <= a.bound * 1.005);
  CHECK(check_load_bound(forty, a.bound * (1 - 1e-9), a.multipliers) == BoundCheck::kHolds);
  const SelectionProblem thousand = random_problem(8, 1000, 3, 40);
  const Selection b = select_optimal(thousand);
  require_sound(thousand, b);
  CHECK(b.max_load <= b.bound * 1.01);
  CHECK(b.search_work == 0);
}

TEST_CASE("a search that is cut short still proves what it says", "[plan][selection]") {
  const SelectionProblem problem = random_problem(11, 16, 4, 60);
  const Selection full = select_optimal(problem);
  REQUIRE(full.search_finished);
  for (const std::int64_t work : {0, 20'000, 200'000, 2'000'000}) {
    SelectionLimits limits;
    limits.search_work = work;
    limits.local_work = 50'000;
    const Selection selection = select_optimal(problem, limits);
    require_sound(problem, selection);
    CAPTURE(work, selection.bound, full.max_load);
    CHECK(selection.bound <= full.max_load * (1 + 1e-12));
    CHECK(selection.max_load >= full.max_load * (1 - 1e-12));
    // A probe ends at most one node after its share.
    CHECK(selection.search_work <= work + 50'000);
  }
}

TEST_CASE("the check of bounds agrees with exhaustive search", "[plan][selection]") {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const std::int32_t resources = 1 + static_cast<std::int32_t>(seed % 4);
    const SelectionProblem problem = random_problem(500 + seed, 1 + seed % 6, resources, 5);
    const double best = brute_force(problem);
    const std::vector<double> even(static_cast<std::size_t>(resources), 1.0 / resources);
    CAPTURE(seed);
    CHECK(check_load_bound(problem, best * (1 - 1e-9), even) == BoundCheck::kHolds);
    CHECK(check_load_bound(problem, best * (1 + 1e-9), even) == BoundCheck::kFails);
  }
  // Too little work for an answer.
  const SelectionProblem large = random_problem(1, 16, 3, 60);
  const Selection selection = select_optimal(large);
  REQUIRE(selection.bound > selection.dual_bound * (1 + 1e-6));
  CHECK(check_load_bound(large, selection.bound * (1 - 1e-9), selection.multipliers, 1000) ==
        BoundCheck::kUnknown);
}

TEST_CASE("no weights prove more than those of the dual", "[plan][selection]") {
  for (const std::int32_t resources : {1, 2, 3, 5, 8}) {
    const SelectionProblem problem = random_problem(40, 30, resources, 40);
    const Selection selection = select_greedy(problem);
    const double proven = lagrangian_bound(problem, selection.multipliers);
    std::mt19937 random(3);
    for (int trial = 0; trial < 300; ++trial) {
      // Weights anywhere, and weights close to the best ones.
      std::vector<double> weights;
      double sum = 0;
      for (const double multiplier : selection.multipliers) {
        const double noise = static_cast<double>(random()) / 4294967296.0;
        weights.push_back(trial % 2 == 0 ? noise : multiplier * (1 + 0.02 * (noise - 0.5)));
        sum += weights.back();
      }
      for (double& weight : weights) weight /= sum;
      CAPTURE(resources, trial);
      CHECK(lagrangian_bound(problem, weights) <= proven * (1 + 1e-9));
    }
  }
}

TEST_CASE("selection repeats, and takes empty problems", "[plan][selection]") {
  const SelectionProblem problem = random_problem(3, 24, 3, 30);
  CHECK(select_optimal(problem).choice == select_optimal(problem).choice);
  SelectionProblem empty;
  empty.resource_count = 2;
  CHECK(select_optimal(empty).max_load == 0);
  // Nothing to compute at all.
  SelectionProblem zero;
  zero.items = {{LoadCandidate{{0.0}, 0}}};
  CHECK(select_optimal(zero).max_load == 0);
  CHECK(check_load_bound(empty, 1, {0.5, 0.5}) == BoundCheck::kFails);
  CHECK(check_load_bound(empty, 0, {0.5, 0.5}) == BoundCheck::kHolds);
  // A resource that nothing uses, and candidates that are all alike.
  SelectionProblem idle;
  idle.resource_count = 2;
  idle.items.assign(5, std::vector<LoadCandidate>(3, LoadCandidate{{2.0, 0.0}, 2}));
  const Selection same = select_optimal(idle);
  CHECK(same.max_load == 10);
  CHECK(same.bound == 10);
  CHECK(check_load_bound(idle, 10, same.multipliers) == BoundCheck::kHolds);
}
