// SPDX-License-Identifier: Apache-2.0
// Covers against all covers and largest matchings, and the check of both against faults.
#include "gnn/exchange/least_exchange.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"

using namespace npu::gnn;

namespace {

using NodePairs = std::vector<std::pair<std::int32_t, std::int32_t>>;

NodePairs random_edges(std::mt19937& random, int sources, int targets, int edges) {
  NodePairs pairs;
  for (int e = 0; e < edges; ++e) {
    pairs.emplace_back(static_cast<int>(random() % static_cast<unsigned>(sources)),
                       100 + static_cast<int>(random() % static_cast<unsigned>(targets)));
  }
  return pairs;
}

// The least cost over all ways to choose what crosses.
std::int64_t try_all(const CutEdges& cut, std::int64_t feature_cost, std::int64_t sum_cost) {
  const std::size_t sources = cut.sources.size();
  const std::size_t nodes = sources + cut.targets.size();
  std::int64_t best = -1;
  for (std::size_t bits = 0; bits < std::size_t{1} << nodes; ++bits) {
    const auto crosses = [&](std::size_t node) { return (bits >> node & 1U) != 0; };
    std::int64_t cost = 0;
    for (std::size_t n = 0; n < nodes; ++n) {
      if (crosses(n)) cost += n < sources ? feature_cost : sum_cost;
    }
    const bool covers = std::all_of(cut.edges.begin(), cut.edges.end(), [&](const auto& edge) {
      return crosses(static_cast<std::size_t>(edge.first)) ||
             crosses(sources + static_cast<std::size_t>(edge.second));
    });
    if (covers && (best < 0 || cost < best)) best = cost;
  }
  return best;
}

}  // namespace

TEST_CASE("edges between ranks are put in order", "[plan][exchange]") {
  const CutEdges cut = CutEdges::of({{7, 3}, {2, 9}, {7, 3}, {2, 3}});
  CHECK(cut.sources == std::vector<std::int32_t>{2, 7});
  CHECK(cut.targets == std::vector<std::int32_t>{3, 9});
  CHECK(cut.edges == NodePairs{{0, 0}, {0, 1}, {1, 0}});
  CHECK(CutEdges::of({}).edges.empty());
}

TEST_CASE("the least exchange costs what brute force finds", "[plan][exchange]") {
  std::mt19937 random(5);
  for (int round = 0; round < 150; ++round) {
    const CutEdges cut = CutEdges::of(
        random_edges(random, 1 + round % 6, 1 + round % 7, static_cast<int>(random() % 16)));
    for (const auto& [feature_cost, sum_cost] : {std::pair(1, 1), {1, 2}, {5, 3}}) {
      const LeastExchange least = least_exchange(cut, feature_cost, sum_cost);
      CHECK(least.cost == try_all(cut, feature_cost, sum_cost));
      CHECK(check_exchange(cut, feature_cost, sum_cost, least).empty());
    }
    CHECK(largest_matching(cut) == least_exchange(cut, 1, 1).cost);
  }
}

TEST_CASE("a star crosses as one row", "[plan][exchange]") {
  // Node 1 leads to three nodes; three nodes lead to node 20.
  const CutEdges cut = CutEdges::of({{1, 10}, {1, 11}, {1, 12}, {2, 20}, {3, 20}, {4, 20}});
  const LeastExchange least = least_exchange(cut, 1, 1);
  CHECK(least.cost == 2);
  CHECK(least.features == std::vector<char>{1, 0, 0, 0});
  CHECK(least.sums == std::vector<char>{0, 0, 0, 1});
  // A sum that costs more than three rows of features does not cross.
  CHECK(least_exchange(cut, 1, 4).sums == std::vector<char>{0, 0, 0, 0});
}

TEST_CASE("ties go to features", "[plan][exchange]") {
  const LeastExchange least = least_exchange(CutEdges::of({{1, 10}}), 1, 1);
  CHECK(least.features == std::vector<char>{1});
  CHECK(least.sums == std::vector<char>{0});
}

TEST_CASE("the check of an exchange finds faults", "[plan][exchange]") {
  const CutEdges cut = CutEdges::of({{1, 10}, {1, 11}, {2, 10}, {3, 12}});
  const LeastExchange good = least_exchange(cut, 1, 1);
  REQUIRE(check_exchange(cut, 1, 1, good).empty());
  LeastExchange bad = good;
  bad.features[2] = bad.sums[2] = 0;
  CHECK(check_exchange(cut, 1, 1, bad) == "nothing crosses for the edge from node 3 to node 12");
  bad = good;
  bad.amounts.push_back(bad.amounts.front());
  CHECK(check_exchange(cut, 1, 1, bad) == "the proof counts node 1 more than once");
  bad = good;
  bad.amounts.pop_back();
  CHECK(check_exchange(cut, 1, 1, bad) == "the rows cost 3, the proof is for 2");
  bad = good;
  bad.features.pop_back();
  CHECK(check_exchange(cut, 1, 1, bad) == "the exchange is of other edges");
  bad = good;
  bad.amounts.front().edge = 4;
  CHECK(check_exchange(cut, 1, 1, bad) == "an amount is of no edge");
}
