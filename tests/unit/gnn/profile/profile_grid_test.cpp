// SPDX-License-Identifier: Apache-2.0
// Sizes to measure at cover what a plan will look up.
#include "gnn/profile/profile_grid.hpp"

#include <algorithm>

#include "catch.hpp"
#include "gnn/profile/sample_graph.hpp"
#include "npu/support/ids.hpp"

using namespace npu;
using namespace npu::gnn;

TEST_CASE("the grid of a graph covers its parts and the padded whole", "[gnn][profile]") {
  const ProfileGrid grid = grid_for_graph(19717, 88648, 16, 1000, false);
  CHECK(std::is_sorted(grid.nodes.begin(), grid.nodes.end()));
  CHECK(grid.nodes.front() == 616);  // half of 19717 / 16
  CHECK(grid.nodes.back() == 20000);
  for (std::size_t i = 1; i < grid.nodes.size(); ++i) CHECK(grid.nodes[i] <= 4 * grid.nodes[i - 1]);
  REQUIRE(grid.degrees.size() == 3);
  CHECK(grid.degrees[0] < 88648.0 / 19717 * 0.7);
  CHECK(grid.degrees[2] > 88648.0 / 19717 * 1.3);
  const ProfileGrid coarse = grid_for_graph(19717, 88648, 16, 1000, true);
  CHECK(coarse.nodes == std::vector<std::int64_t>{616, 20000});
  // Where padding adds much, both are measured.
  CHECK(grid_for_graph(2708, 10556, 4, 1000, true).nodes ==
        std::vector<std::int64_t>{339, 2708, 3000});
  CHECK(coarse.degrees.size() == 2);
  // 89250 / 16 is 5578.125: rounding it makes no further point.
  CHECK(grid_for_graph(89250, 899756, 8, 1000, false).nodes ==
        std::vector<std::int64_t>{5578, 22312, 90000});
}

TEST_CASE("the grid of a graph of any size", "[gnn][profile]") {
  CHECK(grid_for_graph(1, 1, 16, 1000, false).nodes == std::vector<std::int64_t>{1, 1000});
  CHECK(grid_for_graph(1000, 10, 1, 1000, true).nodes == std::vector<std::int64_t>{500, 1000});
  const ProfileGrid large = grid_for_graph(2'000'000'000, 4'000'000'000, 1, 1000, true);
  CHECK(large.nodes == std::vector<std::int64_t>{1'000'000'000, 2'000'000'000});
}

TEST_CASE("graphs to measure on have owned nodes, a halo and edges", "[gnn][profile]") {
  const SubgraphView graph = skewed_graph(100, 50, 700);
  CHECK(graph.owned == 100);
  CHECK(graph.local == 150);
  CHECK(graph.edges() == 700);
  REQUIRE(graph.offsets.size() == 101);
  CHECK(graph.offsets.back() == 700);
  CHECK(std::is_sorted(graph.offsets.begin(), graph.offsets.end()));
  for (const std::int32_t source : graph.sources) CHECK((source >= 0 && source < 150));
  CHECK(std::any_of(graph.sources.begin(), graph.sources.end(),
                    [](std::int32_t source) { return source >= 100; }));
  const SubgraphView part = part_of_larger_graph(graph, 1000, 3);
  REQUIRE(part.nodes.size() == 150);
  CHECK(part.base_sources.size() == 700);
  for (const std::int32_t node : part.nodes) CHECK((node >= 0 && node < 1000));
  CHECK(part.nodes != part_of_larger_graph(graph, 1000, 4).nodes);
}
