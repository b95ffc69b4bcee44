// SPDX-License-Identifier: Apache-2.0
// The replay of clusters against results by hand, and against the simulation that it checks.
#include "gnn/plan/search/replay_clusters.hpp"

#include <random>

#include "catch.hpp"
#include "gnn/plan/search/simulate.hpp"

using namespace npu::gnn;

TEST_CASE("a replay follows the rules of the schedule", "[plan][replay]") {
  // Item 0: 2 ms on device 0, then 3 on 1. Item 1: 1 on 1 alone.
  std::vector<ReplayTask> tasks{{0, 0, 0, 0, 0, 2}, {0, 1, 1, 1, 0, 3}, {1, 0, 1, 1, 1, 1}};
  CHECK(replay_clusters(tasks, {}).makespan_ms == 5);
  CHECK(replay_clusters(tasks, {9, 0.5}).makespan_ms ==
        5.5);  // device 1 goes over from cluster 1 to cluster 0
  for (ReplayTask& task : tasks) task.resource = 0;
  CHECK(replay_clusters(tasks, {}).makespan_ms == 6);
  // A split: both shares have to end before the next segment.
  CHECK(replay_clusters({{0, 0, 0, 0, 0, 1}, {0, 0, 1, 1, 0, 4}, {0, 1, 2, 2, 0, 1}}, {})
            .makespan_ms == 5);
  CHECK(replay_clusters({}, {1}).makespan_ms == 0);
}

TEST_CASE("replay and simulation agree", "[plan][replay]") {
  std::mt19937 random(7);
  const auto draw = [&](int below) {
    return static_cast<std::int32_t>(random() % static_cast<unsigned>(below));
  };
  for (int round = 0; round < 200; ++round) {
    const std::vector<std::int32_t> resource_of{0, 1, draw(3)};
    std::vector<SimItem> items;
    std::vector<ReplayTask> tasks;
    for (std::size_t i = 0; i < 1 + static_cast<std::size_t>(draw(8)); ++i) {
      SimItem& item = items.emplace_back();
      item.cluster = draw(3);
      for (std::size_t s = 0; s < 1 + static_cast<std::size_t>(draw(3)); ++s) {
        const std::int32_t device = draw(3);
        const double ms = 1 + draw(20);
        item.segments.push_back({{device, ms}});
        tasks.push_back(
            {i, s, device, resource_of[static_cast<std::size_t>(device)], item.cluster, ms});
      }
    }
    std::vector<double> switch_ms;
    if (round % 2 != 0) switch_ms = {0.25, 0.5, 0};
    CAPTURE(round);
    const ReplayResult replay = replay_clusters(tasks, switch_ms);
    const SimResult simulation = simulate(items, resource_of, switch_ms);
    CHECK(replay.makespan_ms == simulation.makespan_ms);
    CHECK(replay.switches == simulation.switches);
    CHECK(replay.switching_ms == simulation.switching_ms);
  }
}
