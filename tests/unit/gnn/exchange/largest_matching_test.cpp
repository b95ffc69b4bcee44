// SPDX-License-Identifier: Apache-2.0
// Matchings against all subsets of edges, against the flow, and on graphs whose size is known.
#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "gnn/exchange/least_exchange.hpp"

using namespace npu::gnn;

namespace {

using MatchedPairs = std::vector<std::pair<std::int32_t, std::int32_t>>;

MatchedPairs drawn_pairs(std::mt19937& random, std::uint32_t sources, std::uint32_t targets,
                         int count) {
  MatchedPairs pairs;
  for (int e = 0; e < count; ++e) {
    pairs.emplace_back(static_cast<std::int32_t>(random() % sources),
                       static_cast<std::int32_t>(1000 + random() % targets));
  }
  return pairs;
}

// The most edges without a common node, over all subsets.
std::int64_t try_all_subsets(const CutEdges& cut) {
  std::int64_t best = 0;
  for (std::size_t bits = 0; bits < std::size_t{1} << cut.edges.size(); ++bits) {
    std::set<std::int32_t> sources;
    std::set<std::int32_t> targets;
    std::int64_t count = 0;
    bool is_matching = true;
    for (std::size_t e = 0; e < cut.edges.size() && is_matching; ++e) {
      if ((bits >> e & 1U) == 0) continue;
      ++count;
      is_matching =
          sources.insert(cut.edges[e].first).second && targets.insert(cut.edges[e].second).second;
    }
    if (is_matching) best = std::max(best, count);
  }
  return best;
}

}  // namespace

TEST_CASE("a largest matching is what all subsets of edges give", "[plan][exchange]") {
  std::mt19937 random(15);
  for (int round = 0; round < 100; ++round) {
    const CutEdges cut = CutEdges::of(drawn_pairs(random, 2 + random() % 4, 2 + random() % 4, 9));
    CHECK(largest_matching(cut) == try_all_subsets(cut));
  }
}

TEST_CASE("on larger graphs a matching is as large as the flow", "[plan][exchange]") {
  std::mt19937 random(6);
  for (std::uint32_t round = 0; round < 20; ++round) {
    const CutEdges cut = CutEdges::of(drawn_pairs(random, 300, 40 + 30 * round, 900));
    const LeastExchange least = least_exchange(cut, 1, 1);
    CHECK(check_exchange(cut, 1, 1, least).empty());
    CHECK(largest_matching(cut) == least.cost);
  }
}

TEST_CASE("matchings of stars and complete graphs", "[plan][exchange]") {
  CHECK(largest_matching({}) == 0);
  CHECK(largest_matching(CutEdges::of({{1, 10}, {1, 11}, {1, 12}})) == 1);
  // The first choice of a greedy one leaves node 2 alone.
  CHECK(largest_matching(CutEdges::of({{1, 10}, {1, 11}, {2, 10}})) == 2);
  MatchedPairs all;
  for (std::int32_t s = 0; s < 20; ++s) {
    for (std::int32_t t = 0; t < 13; ++t) all.emplace_back(s, 100 + t);
  }
  CHECK(largest_matching(CutEdges::of(all)) == 13);
}

TEST_CASE("a long path is matched without recursion", "[plan][exchange]") {
  MatchedPairs path;
  constexpr std::int32_t kNodes = 200'000;
  for (std::int32_t n = 0; n < kNodes; ++n) {
    path.emplace_back(n, kNodes + n);
    if (n > 0) path.emplace_back(n, kNodes + n - 1);
  }
  CHECK(largest_matching(CutEdges::of(path)) == kNodes);
}
