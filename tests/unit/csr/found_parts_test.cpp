// SPDX-License-Identifier: Apache-2.0
// Parts from elsewhere are checked and moved to the balance that METIS aims at.
#include "csr/found_parts.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"
#include "csr/part_limits.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

using namespace npu;

namespace {

// A few hubs have most edges, so that parts of as many nodes have loads that are far apart.
CsrGraph with_hubs(std::int32_t nodes) {
  std::mt19937 random(5);
  const auto below = [&](std::int32_t limit) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(limit));
  };
  std::vector<WeightedEdge> edges;
  for (std::int32_t v = 0; v < nodes; ++v) {
    if (v % 3 == 0) continue;  // some have no edges of their own
    edges.push_back({v, (v + 1) % nodes});
    for (int i = 0; i < 4; ++i) edges.push_back({v, below(1 + below(nodes))});
  }
  CsrGraph graph = build_undirected_graph(nodes, edges);
  graph.node_weight_count = 2;
  for (std::int32_t v = 0; v < nodes; ++v) {
    graph.node_weights.push_back(1);
    graph.node_weights.push_back(graph.degree(v));
  }
  return graph;
}

FoundParts in_blocks(std::int32_t nodes, std::int32_t parts, std::uint64_t seed) {
  FoundParts found{parts, seed, {}};
  for (std::int32_t v = 0; v < nodes; ++v) found.part_of.push_back(v * parts / nodes);
  return found;
}

FoundParts in_turns(std::int32_t nodes, std::int32_t parts, std::uint64_t seed) {
  FoundParts found{parts, seed, {}};
  for (std::int32_t v = 0; v < nodes; ++v) found.part_of.push_back(v % parts);
  return found;
}

SweepOptions sweep_options(std::vector<std::int32_t> counts, int threads = 1) {
  SweepOptions options;
  options.part_counts = std::move(counts);
  options.metis.max_imbalance = {1.05, 1.03};
  options.threads = threads;
  return options;
}

}  // namespace

TEST_CASE("parts that are far from balanced are moved to both goals", "[graph][found]") {
  const CsrGraph graph = with_hubs(3000);
  const std::vector<FoundParts> found{in_blocks(3000, 4, 7), in_blocks(3000, 6, 7)};
  PhaseTimes times;
  const PartitionSweep one = sweep_of_found(graph, sweep_options({4, 6}), found, times);
  const PartitionSweep four = sweep_of_found(graph, sweep_options({4, 6}, 4), found, times);
  REQUIRE(one.partitions.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const GraphPartition& partition = one.partitions[i];
    CHECK(partition.part_of == four.partitions[i].part_of);
    CHECK(partition.seed == 7);
    CHECK(imbalance_of(graph, found[i].part_of, found[i].part_count)[1] > 1.5);
    CHECK(partition.imbalance[0] <= 1.0501);
    CHECK(partition.imbalance[1] <= 1.0301);
    CHECK(partition.edge_cut == edge_cut_of(graph, partition.part_of));
  }
  REQUIRE(times.entries().size() == 1);
  CHECK(times.entries()[0].first == "balance");
}

TEST_CASE("of several seeds the better one is kept, and what keeps the goals hardly moves",
          "[graph][found]") {
  const CsrGraph graph = with_hubs(1200);
  PhaseTimes times;
  const auto alone = [&](const FoundParts& found) {
    return sweep_of_found(graph, sweep_options({4}), {found}, times).partitions.front();
  };
  const GraphPartition blocks = alone(in_blocks(1200, 4, 1));
  const GraphPartition turns = alone(in_turns(1200, 4, 2));
  const GraphPartition best = sweep_of_found(graph, sweep_options({4}),
                                             {in_blocks(1200, 4, 1), in_turns(1200, 4, 2)}, times)
                                  .partitions.front();
  CHECK(best.edge_cut == std::min(blocks.edge_cut, turns.edge_cut));
  CHECK(best.seed == (turns.edge_cut < blocks.edge_cut ? 2 : 1));
  // Once more: nothing is better, or it is taken.
  const GraphPartition again = alone({4, 3, best.part_of});
  CHECK(again.edge_cut <= best.edge_cut);
  CHECK(again.imbalance[1] <= 1.0301);
}

TEST_CASE("numbers of parts that take no partitioner, and parts that do not fit",
          "[graph][found]") {
  const CsrGraph graph = with_hubs(30);
  PhaseTimes times;
  const PartitionSweep sweep = sweep_of_found(graph, sweep_options({1, 30}), {}, times);
  REQUIRE(sweep.partitions.size() == 2);
  CHECK(sweep.partitions[0].edge_cut == 0);
  CHECK(sweep.partitions[1].imbalance[0] == 1);
  FoundParts found = in_turns(30, 4, 0);
  found.part_of.back() = 4;
  CHECK_THROWS_AS(sweep_of_found(graph, sweep_options({4}), {found}, times), Error);
  found.part_of.pop_back();
  CHECK_THROWS_AS(sweep_of_found(graph, sweep_options({4}), {found}, times), Error);
}

TEST_CASE("limits are at least the mean, rounded up", "[graph][found]") {
  CsrGraph graph = build_undirected_graph(7, std::vector<WeightedEdge>{{0, 1, 1}});
  MetisOptions options;
  options.part_count = 3;
  // 7 nodes in 3 parts: the mean is 2.33, and 1.05 times that below 3.
  CHECK(part_limits(graph, options).most == std::vector<std::int64_t>{3});
  options.max_imbalance = {2.0};
  CHECK(part_limits(graph, options).most == std::vector<std::int64_t>{4});
}

TEST_CASE("limits that cannot be met end the search, and the best round is kept",
          "[graph][found]") {
  CsrGraph graph = with_hubs(600);
  // One node has more than half of all edges' weight, so no part with it can keep 1.03 times a
  // quarter.
  const std::int64_t sum = graph.entry_count();
  graph.node_weights[2 * 17 + 1] = 2 * sum;
  MetisOptions options;
  options.part_count = 4;
  options.max_imbalance = {1.05, 1.03};
  const PartLimits limits = part_limits(graph, options);
  std::vector<std::int32_t> parts = in_blocks(600, 4, 0).part_of;
  const double before = imbalance_of(graph, parts, 4)[1];
  CHECK(balance_parts(graph, limits, parts, 2) < 12);  // the most: nothing has improved any more
  CHECK(imbalance_of(graph, parts, 4)[0] <= 1.0501);
  CHECK(imbalance_of(graph, parts, 4)[1] <= before);
  std::vector<std::int32_t> again = in_blocks(600, 4, 0).part_of;
  balance_parts(graph, limits, again, 1);
  CHECK(again == parts);
}
