// SPDX-License-Identifier: Apache-2.0
// Parts for ranks: halves of halves, with few rows between them however many share them.
#include "gnn/exchange/nested_parts.hpp"

#include <algorithm>
#include <set>

#include "catch.hpp"
#include "gnn/exchange/least_exchange.hpp"
#include "gnn/exchange/rank_cut.hpp"
#include "gnn/exchange/rank_plan.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

// A grid of so many rows and columns, each node with an edge from and to its neighbours.
CsrGraph grid_of(std::int32_t height, std::int32_t width) {
  CsrGraph graph;
  for (std::int32_t r = 0; r < height; ++r) {
    for (std::int32_t c = 0; c < width; ++c) {
      const std::int32_t v = r * width + c;
      if (r > 0) graph.neighbors.push_back(v - width);
      if (c > 0) graph.neighbors.push_back(v - 1);
      if (c + 1 < width) graph.neighbors.push_back(v + 1);
      if (r + 1 < height) graph.neighbors.push_back(v + width);
      graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
    }
  }
  return graph;
}

NestedOptions options_for(std::int32_t parts, int threads = 1) {
  NestedOptions options;
  options.metis.part_count = parts;
  options.threads = threads;
  return options;
}

std::int64_t rows_of(const CsrGraph& graph, const std::vector<std::int32_t>& part_of,
                     std::int32_t parts, std::int32_t ranks, bool in_order) {
  return plan_ranks(graph, part_of, parts, {{8, 8}},
                    {.rank_count = ranks, .sums = true, .in_order = in_order})
      .rows();
}

}  // namespace

TEST_CASE("ranks that share nested parts send no more rows than ranks of their own cut",
          "[plan][ranks]") {
  const CsrGraph graph = grid_of(24, 40);
  const auto part_of = nested_parts(graph, graph, options_for(8));
  REQUIRE(part_of);
  CHECK(std::set<std::int32_t>(part_of->begin(), part_of->end()).size() == 8);
  for (const double imbalance : imbalance_of(graph, *part_of, 8)) CHECK(imbalance < 1.1);
  for (const std::int32_t ranks : {2, 4, 8}) {
    const auto alone = partition_with_metis(graph, {.part_count = ranks}).part_of;
    CHECK(rows_of(graph, *part_of, 8, ranks, true) <= rows_of(graph, alone, ranks, ranks, false));
  }
}

TEST_CASE("nested parts have the shares of an odd tree", "[plan][ranks]") {
  // Three fifths and two fifths, of the first two thirds and a third.
  const CsrGraph graph = grid_of(20, 30);
  const auto part_of = nested_parts(graph, graph, options_for(5));
  REQUIRE(part_of);
  for (std::int32_t part = 0; part < 5; ++part) {
    const auto nodes = std::count(part_of->begin(), part_of->end(), part);
    CHECK(nodes > 108);  // 120 less a tenth
    CHECK(nodes < 132);
  }
}

TEST_CASE("nested parts are the same on any number of threads", "[plan][ranks]") {
  const CsrGraph graph = grid_of(120, 100);  // large enough for processes of their own
  const auto part_of = nested_parts(graph, graph, options_for(4, 1));
  CHECK(part_of == nested_parts(graph, graph, options_for(4, 2)));
  NestedOptions features = options_for(2);
  features.sums = false;
  const auto halves = nested_parts(graph, graph, features);
  REQUIRE(halves);
  CHECK(std::count(halves->begin(), halves->end(), 1) > 5000);
}

TEST_CASE("a graph with hardly a node for each part has no nested parts, or all of them",
          "[plan][ranks]") {
  const CsrGraph graph = grid_of(2, 3);
  for (std::int32_t parts = 2; parts <= 6; ++parts) {
    const auto part_of = nested_parts(graph, graph, options_for(parts));
    if (!part_of) continue;
    CHECK(std::set<std::int32_t>(part_of->begin(), part_of->end()).size() ==
          static_cast<std::size_t>(parts));
  }
}
