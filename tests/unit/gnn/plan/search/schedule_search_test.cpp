// SPDX-License-Identifier: Apache-2.0
// Schedules against all orders and choices, and against simulate().
#include "gnn/plan/search/schedule_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "catch.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

// Pipelines of one to three segments on distinct devices; the first segment may be split.
ScheduleProblem random_schedule(std::uint32_t seed, std::size_t items, std::size_t options,
                                double switch_ms) {
  std::mt19937 random(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  ScheduleProblem problem;
  problem.resource_of = {0, 1, 2};
  problem.switch_ms = {switch_ms, switch_ms / 2, 2 * switch_ms};
  for (std::size_t i = 0; i < items; ++i) {
    auto& list = problem.options.emplace_back();
    for (std::size_t o = 0; o < options; ++o) {
      std::vector<std::int32_t> devices{0, 1, 2};
      for (std::size_t d = 3; d > 1; --d) std::swap(devices[d - 1], devices[random() % d]);
      SimItem item;
      item.cluster = static_cast<std::int32_t>(random() % 3);
      const std::size_t segments = 1 + random() % 3;
      for (std::size_t s = 0; s < segments; ++s) {
        item.segments.push_back({{devices[s], uniform(1, 4) / static_cast<double>(segments)}});
      }
      if (segments < 3 && random() % 2 == 0) {
        item.segments[0].push_back({devices[2], uniform(0.5, 1)});
      }
      list.push_back(std::move(item));
    }
  }
  return problem;
}

double makespan_of(const ScheduleProblem& problem, const Schedule& schedule) {
  return simulate(items_of(problem, schedule), problem.resource_of, problem.switch_ms).makespan_ms;
}

Schedule first_schedule(const ScheduleProblem& problem) {
  Schedule schedule;
  schedule.choice.assign(problem.options.size(), 0);
  schedule.order.resize(problem.options.size());
  std::iota(schedule.order.begin(), schedule.order.end(), 0);
  schedule.makespan_ms = makespan_of(problem, schedule);
  return schedule;
}

double shortest_of_all(const ScheduleProblem& problem) {
  Schedule schedule = first_schedule(problem);
  double best = std::numeric_limits<double>::infinity();
  for (;;) {
    std::sort(schedule.order.begin(), schedule.order.end());
    do {
      best = std::min(best, makespan_of(problem, schedule));
    } while (std::next_permutation(schedule.order.begin(), schedule.order.end()));
    std::size_t i = 0;
    while (i < schedule.choice.size() &&
           ++schedule.choice[i] == static_cast<std::int32_t>(problem.options[i].size())) {
      schedule.choice[i++] = 0;
    }
    if (i == schedule.choice.size()) return best;
  }
}

double largest_load(const ScheduleProblem& problem, const Schedule& schedule) {
  std::vector<double> loads(problem.resource_of.size(), 0);
  for (const SimItem& item : items_of(problem, schedule)) {
    for (const auto& segment : item.segments) {
      for (const SimItem::Share& share : segment) {
        loads[static_cast<std::size_t>(share.device)] += share.ms;
      }
    }
  }
  return *std::max_element(loads.begin(), loads.end());
}

bool is_permutation_of_items(const std::vector<std::int32_t>& order, std::size_t items) {
  std::vector<std::int32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int32_t> all(items);
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

}  // namespace

TEST_CASE("the shortest schedule of few subgraphs is found", "[plan][schedule]") {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    for (const double switch_ms : {0.0, 0.2}) {
      const ScheduleProblem problem = random_schedule(seed, 4, 3, switch_ms);
      const Schedule found = shorten_schedule(problem, first_schedule(problem), 400'000);
      INFO("seed " << seed << ", switch " << switch_ms);
      CHECK(found.makespan_ms == makespan_of(problem, found));
      CHECK(found.makespan_ms == Approx(shortest_of_all(problem)).epsilon(1e-12));
    }
  }
}

TEST_CASE("a search ends no worse than it starts, and repeats", "[plan][schedule]") {
  for (const std::size_t items : {1UL, 7UL, 40UL, 90UL}) {
    ScheduleProblem problem = random_schedule(7, items, 5, 0.05);
    problem.resource_of = {0, 1, 1};  // two devices take turns
    const Schedule start = first_schedule(problem);
    const Schedule found = shorten_schedule(problem, start, 300'000);
    CHECK(found.makespan_ms <= start.makespan_ms);
    CHECK(found.makespan_ms == makespan_of(problem, found));
    CHECK(is_permutation_of_items(found.order, items));
    const Schedule again = shorten_schedule(problem, start, 300'000);
    CHECK(again.order == found.order);
    CHECK(again.choice == found.choice);
  }
  // Nothing to do, and too much to do.
  CHECK(shorten_schedule({}, {}, 1000).order.empty());
  const ScheduleProblem large = random_schedule(1, 4097, 1, 0);
  CHECK(shorten_schedule(large, first_schedule(large), 1'000'000).order ==
        first_schedule(large).order);
}

TEST_CASE("mixed orders keep all devices at work", "[plan][schedule]") {
  const ScheduleProblem problem = random_schedule(3, 400, 1, 0);
  Schedule schedule = first_schedule(problem);
  schedule.order = mixed_order(problem, schedule.choice);
  CHECK(is_permutation_of_items(schedule.order, 400));
  CHECK(makespan_of(problem, schedule) <= 1.02 * largest_load(problem, schedule));
  // Kind by kind, devices wait: the same items, sorted by their first device.
  std::vector<std::int32_t> sorted = schedule.order;
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::int32_t a, std::int32_t b) {
    const auto first = [&](std::int32_t i) {
      return problem.options[static_cast<std::size_t>(i)][0].segments[0][0].device;
    };
    return first(a) < first(b);
  });
  Schedule by_kind = schedule;
  by_kind.order = sorted;
  CHECK(makespan_of(problem, schedule) <= makespan_of(problem, by_kind));
}
