// SPDX-License-Identifier: Apache-2.0
// A sweep gives METIS's own parts side by side, and multilevel parts that are sound, balanced and
// the same on any number of threads.
#include "csr/partition_sweep.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"
#include "csr/multilevel/contract_graph.hpp"
#include "csr/multilevel/refine_parts.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

using namespace npu;

namespace {

// Nodes in a ring of groups, with most edges inside of groups and some hubs.
CsrGraph clustered(std::int32_t nodes, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::int32_t limit) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(limit));
  };
  std::vector<WeightedEdge> edges;
  for (std::int32_t v = 0; v < nodes; ++v) {
    const std::int32_t group = v / 50 * 50;
    for (int i = 0; i < 4; ++i) edges.push_back({v, std::min(group + below(50), nodes - 1)});
    edges.push_back({v, (v + 1 + below(150)) % nodes});
    if (below(10) == 0) edges.push_back({v, below(20) * (nodes / 20)});
  }
  CsrGraph graph = build_undirected_graph(nodes, edges);
  graph.node_weight_count = 2;
  for (std::int32_t v = 0; v < nodes; ++v) {
    graph.node_weights.push_back(1);
    graph.node_weights.push_back(graph.degree(v));
  }
  return graph;
}

PartitionSweep sweep(const CsrGraph& graph, Partitioner partitioner, int threads,
                     std::int32_t seeds = 1) {
  SweepOptions options;
  options.part_counts = {1, 4, 6};
  options.metis.seed_count = seeds;
  options.metis.max_imbalance = {1.05, 1.03};
  options.partitioner = partitioner;
  options.threads = threads;
  PhaseTimes times;
  return partition_sweep(graph, options, times);
}

}  // namespace

TEST_CASE("runs side by side give METIS's own parts", "[graph][sweep]") {
  const CsrGraph graph = clustered(3000, 1);
  const PartitionSweep alone = sweep(graph, Partitioner::kAutomatic, 1, 3);
  const PartitionSweep beside = sweep(graph, Partitioner::kMetis, 3, 3);
  CHECK(alone.levels == 0);
  REQUIRE(alone.partitions.size() == 3);
  REQUIRE(beside.partitions.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    MetisOptions options;
    options.part_count = alone.partitions[i].part_count;
    options.seed_count = 3;
    options.max_imbalance = {1.05, 1.03};
    const GraphPartition expected = partition_with_metis(graph, options);
    for (const GraphPartition& found : {alone.partitions[i], beside.partitions[i]}) {
      CHECK(found.part_of == expected.part_of);
      CHECK(found.hash == expected.hash);
      CHECK(found.seed == expected.seed);
      CHECK(found.edge_cut == expected.edge_cut);
      CHECK(found.imbalance == expected.imbalance);
      CHECK(found.repaired_parts == expected.repaired_parts);
    }
  }
}

TEST_CASE("multilevel parts are balanced, about as good, and the same on all threads",
          "[graph][sweep]") {
  const CsrGraph graph = clustered(60'000, 2);
  const PartitionSweep one = sweep(graph, Partitioner::kMultilevel, 1);
  const PartitionSweep four = sweep(graph, Partitioner::kMultilevel, 4);
  const PartitionSweep metis = sweep(graph, Partitioner::kMetis, 1);
  CHECK(one.levels > 1);
  CHECK(one.coarsest_nodes < 30'000);
  for (std::size_t i = 0; i < 3; ++i) {
    const GraphPartition& found = one.partitions[i];
    CHECK(found.hash == four.partitions[i].hash);
    CHECK(found.edge_cut == edge_cut_of(graph, found.part_of));
    CHECK(found.imbalance[0] <= 1.051);
    CHECK(found.imbalance[1] <= 1.031);
    CHECK(static_cast<double>(found.edge_cut) <=
          1.25 * static_cast<double>(metis.partitions[i].edge_cut));
    std::vector<std::int64_t> members(index_of(found.part_count), 0);
    for (const std::int32_t part : found.part_of) ++members.at(index_of(part));
    CHECK(*std::min_element(members.begin(), members.end()) > 0);
  }
}

TEST_CASE("a contracted graph keeps weights and cuts", "[graph][sweep]") {
  const CsrGraph graph = clustered(5000, 3);
  const std::vector<std::int64_t> limits{40, 400};
  const NodeClusters clusters = cluster_nodes(graph, limits, 2);
  CHECK(clusters.cluster_of == cluster_nodes(graph, limits, 1).cluster_of);
  CHECK(clusters.count < 2500);
  const CsrGraph coarse = contract_graph(graph, clusters, 2);
  CHECK(undirected_graph_fault(coarse).empty());
  std::vector<std::int32_t> members(index_of(clusters.count), 0);
  for (const std::int32_t cluster : clusters.cluster_of) ++members[index_of(cluster)];
  for (std::int32_t c = 0; c < clusters.count; ++c) {
    CHECK(coarse.node_weights[2 * index_of(c)] == members[index_of(c)]);
    const bool fits = members[index_of(c)] <= 40 && coarse.node_weights[2 * index_of(c) + 1] <= 400;
    CHECK((fits || members[index_of(c)] == 1));
  }
  std::vector<std::int32_t> coarse_parts;
  for (std::int32_t c = 0; c < clusters.count; ++c) coarse_parts.push_back(c % 3);
  std::vector<std::int32_t> parts;
  for (const std::int32_t cluster : clusters.cluster_of) parts.push_back(cluster % 3);
  CHECK(edge_cut_of(coarse, coarse_parts) == edge_cut_of(graph, parts));
  CHECK(imbalance_of(coarse, coarse_parts, 3) == imbalance_of(graph, parts, 3));
}

TEST_CASE("refinement relieves parts that are too heavy and empties none", "[graph][sweep]") {
  // A path of 8 nodes in parts of 6 and 2: two nodes have to move, and one edge can stay cut.
  std::vector<WeightedEdge> edges;
  for (std::int32_t v = 0; v < 7; ++v) edges.push_back({v, v + 1});
  const CsrGraph path = build_undirected_graph(8, edges);
  std::vector<std::int32_t> parts{0, 0, 0, 0, 0, 0, 1, 1};
  refine_parts(path, {2, {4}}, parts, 2);
  CHECK(std::count(parts.begin(), parts.end(), 0) == 4);
  // With room for all in one part, a part keeps its last node, and moves that cost nothing make
  // loads even.
  parts = {0, 0, 0, 0, 0, 0, 0, 1};
  refine_parts(path, {2, {8}}, parts, 1);
  CHECK(std::count(parts.begin(), parts.end(), 1) == 4);
  CHECK(edge_cut_of(path, parts) == 1);
}

TEST_CASE("a sweep passes faults on", "[graph][sweep]") {
  const CsrGraph graph = clustered(100, 4);
  SweepOptions options;
  options.part_counts = {2, 200};
  PhaseTimes times;
  for (const Partitioner partitioner : {Partitioner::kMetis, Partitioner::kMultilevel}) {
    for (const int threads : {1, 2}) {
      options.partitioner = partitioner;
      options.threads = threads;
      try {
        partition_sweep(graph, options, times);
        FAIL("no error");
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kInfeasible);
        CHECK(error.message() ==
              "200 parts requested but the graph has 100 nodes; ask for 100 or fewer");
      }
    }
  }
  options.part_counts = {2, 3, 4};
  options.threads = 2;
  options.progress = [](double, const std::string&) { return false; };
  CHECK_THROWS_WITH(partition_sweep(graph, options, times),
                    Catch::Matchers::Contains("interrupted"));
  // What several processes do together is not done by METIS instead.
  options.progress = {};
  options.partitioner = Partitioner::kPtScotch;
  CHECK_THROWS_WITH(partition_sweep(graph, options, times),
                    Catch::Matchers::Contains("PT-Scotch cuts no graph in a single process"));
}
