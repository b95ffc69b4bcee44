// SPDX-License-Identifier: Apache-2.0
// Layouts of ranks: rows are carried here by hand, and every part has to read the same bits for any
// number of ranks.
#include "gnn/exchange/rank_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

constexpr std::int64_t kWidth = 3;

CsrGraph graph_of(std::mt19937& random, std::int32_t nodes, std::int32_t edges) {
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(nodes));
  for (std::int32_t e = 0; e < edges; ++e) {
    // Few sources of many edges, so that features as well as sums cross.
    const auto u = static_cast<std::int32_t>(random() % static_cast<unsigned>(nodes));
    const auto v = random() % static_cast<unsigned>(nodes);
    rows[random() % 3 == 0 ? v : v % 7].push_back(random() % 3 == 0 ? u : u % 5);
  }
  CsrGraph graph;
  for (auto& row : rows) {
    std::sort(row.begin(), row.end());
    graph.neighbors.insert(graph.neighbors.end(), row.begin(), row.end());
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
  }
  return graph;
}

RankPlan plan_for(const CsrGraph& graph, const std::vector<std::int32_t>& part_of,
                  std::int32_t parts, std::int32_t ranks, bool sums) {
  return plan_ranks(graph, part_of, parts, {{kWidth, 1}}, {.rank_count = ranks, .sums = sums});
}

std::vector<float> features_of(std::mt19937& random, std::int32_t nodes) {
  std::vector<float> x(static_cast<std::size_t>(nodes * kWidth));
  std::uniform_real_distribution<float> values(-1, 1);
  for (float& value : x) value = values(random);
  return x;
}

// The sum over the edges into each node as a part's kernel adds them up, bits as they are.
using Sums = std::map<std::int32_t, std::vector<float>>;

void add_part(const Subgraph& part, const RankLayout& layout, const std::vector<float>& rows,
              bool is_max, Sums& sums) {
  for (std::int64_t i = 0; i < part.owned; ++i) {
    std::vector<float> sum(kWidth, is_max ? -1 : 0);
    for (std::int64_t e = part.offsets[static_cast<std::size_t>(i)];
         e < part.offsets[static_cast<std::size_t>(i) + 1]; ++e) {
      const std::int32_t local = part.sources[static_cast<std::size_t>(e)];
      const auto row = part.nodes[static_cast<std::size_t>(local)];
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const float value = rows[static_cast<std::size_t>(row * kWidth + c)];
        float& own = sum[static_cast<std::size_t>(c)];
        own = is_max ? std::max(own, value) : own + value;
      }
    }
    const auto row = static_cast<std::size_t>(part.nodes[static_cast<std::size_t>(i)]);
    sums[layout.own_nodes[row]] = sum;
  }
}

struct Carried {
  Sums sums;
  std::int64_t rows = 0;  // that crossed
  std::int64_t edges = 0;
};

Carried carry(const RankPlan& plan, const CsrGraph& graph, const std::vector<std::int32_t>& part_of,
              const std::vector<float>& x, bool is_max = false) {
  const std::size_t ranks = plan.ranks.size();
  std::vector<RankLayout> layouts;
  std::vector<std::vector<float>> rows;
  std::vector<std::vector<float>> out;
  for (std::size_t r = 0; r < ranks; ++r) {
    layouts.push_back(lay_out_rank(plan, GraphRows(graph), part_of, static_cast<std::int32_t>(r),
                                   "plan.json", is_max));
    const RankLayout& layout = layouts.back();
    auto& own = rows.emplace_back(static_cast<std::size_t>(layout.row_count * kWidth), 0.0F);
    for (std::size_t i = 0; i < layout.own_nodes.size(); ++i) {
      std::memcpy(own.data() + i * kWidth,
                  x.data() + static_cast<std::size_t>(layout.own_nodes[i]) * kWidth,
                  kWidth * sizeof(float));
    }
    auto& sent = out.emplace_back(static_cast<std::size_t>(layout.sent.size() * kWidth), 0.0F);
    layout.sent.compute({own.data(), layout.own_count(), nullptr, kWidth}, sent.data(), 1);
  }
  Carried carried;
  for (std::size_t r = 0; r < ranks; ++r) {
    const RankLayout& layout = layouts[r];
    std::vector<float> in;
    for (std::size_t i = 0; i < layout.from.ranks.size(); ++i) {
      const RankLayout& sender = layouts[static_cast<std::size_t>(layout.from.ranks[i])];
      std::int64_t first = 0;
      std::size_t to = 0;
      while (sender.to.ranks[to] != static_cast<std::int32_t>(r)) first += sender.to.rows[to++];
      REQUIRE(sender.to.rows[to] == layout.from.rows[i]);
      const auto& sent = out[static_cast<std::size_t>(layout.from.ranks[i])];
      in.insert(in.end(), sent.begin() + first * kWidth,
                sent.begin() + (first + sender.to.rows[to]) * kWidth);
      carried.rows += layout.from.rows[i];
    }
    float* behind = rows[r].data() + layout.own_count() * kWidth;
    if (plan.sums) {
      layout.local.compute({rows[r].data(), layout.own_count(), in.data(), kWidth}, behind, 2);
    } else {
      std::copy(in.begin(), in.end(), behind);
    }
    for (const Subgraph& part : layout.parts) {
      add_part(part, layout, rows[r], is_max, carried.sums);
      carried.edges += static_cast<std::int64_t>(part.sources.size());
    }
  }
  return carried;
}

}  // namespace

TEST_CASE("sums add up along the tree", "[gnn][ranks]") {
  // Leaves 0 .. 3: (a + b) of leaf 0, then + leaf 1, then the sum of leaves 2 and 3.
  const float big = 1 << 24;
  const std::vector<float> own{1, big, -big, 1, 1};
  RowSums sums;
  sums.add({0, 4}, {{0, 0}, {1, 1}, {2, 2}, {3, 3}});  // (1 + big) + (-big + 1)
  sums.add({0, 4}, {{3, 3}, {1, 1}, {0, 0}, {2, 2}});  // the same
  sums.add({0, 2}, {{1, 3}, {1, 4}});                  // of one leaf
  sums.add({0, 4}, {{2, 5}});                          // a row that was received, alone
  std::vector<float> out(4);
  const std::vector<float> received{7};
  sums.compute({own.data(), 5, received.data(), 1}, out.data(), 1);
  CHECK(out == std::vector<float>{(1 + big) + (-big + 1), out[0], 2, 7});
  // Own rows times their factors; one that was received has its factor already.
  const std::vector<float> factors{1, 1, 1, 0.5, 3};
  sums.compute({own.data(), 5, received.data(), 1, factors.data()}, out.data(), 1);
  CHECK(out == std::vector<float>{(1 + big) + (-big + 0.5F), out[0], 3.5, 7});
}

TEST_CASE("any number of ranks gives every part the same bits", "[gnn][ranks]") {
  std::mt19937 random(9);
  constexpr std::int32_t kNodes = 64;
  for (int round = 0; round < 50; ++round) {
    const CsrGraph graph = graph_of(random, kNodes, 60 + 8 * round);
    std::vector<std::int32_t> part_of;
    for (std::int32_t v = 0; v < kNodes; ++v) {
      part_of.push_back(v < 8 ? v : static_cast<std::int32_t>(random() % 8));
    }
    const std::vector<float> x = features_of(random, kNodes);
    for (const bool with_sums : {true, false}) {
      const Carried one = carry(plan_for(graph, part_of, 8, 1, with_sums), graph, part_of, x);
      CHECK(one.rows == 0);
      CHECK(one.edges == graph.entry_count());
      for (std::int32_t v = 0; v < kNodes; ++v) {
        double exact = 0;
        for (const std::int32_t u : graph.row(v)) {
          exact += static_cast<double>(x[static_cast<std::size_t>(u * kWidth)]);
        }
        CHECK(one.sums.at(v)[0] == Approx(exact).margin(1e-4));
      }
      for (const std::int32_t ranks : {2, 3, 4, 8}) {
        const RankPlan plan = plan_for(graph, part_of, 8, ranks, with_sums);
        const Carried many = carry(plan, graph, part_of, x);
        CHECK(many.sums == one.sums);
        CHECK(many.rows == plan.rows());
        CHECK(many.edges == graph.entry_count());
      }
    }
  }
}

TEST_CASE("the largest rows are those of the whole graph on any number of ranks", "[gnn][ranks]") {
  std::mt19937 random(17);
  constexpr std::int32_t kNodes = 64;
  for (int round = 0; round < 20; ++round) {
    const CsrGraph graph = graph_of(random, kNodes, 60 + 20 * round);
    std::vector<std::int32_t> part_of;
    for (std::int32_t v = 0; v < kNodes; ++v) {
      part_of.push_back(v < 8 ? v : static_cast<std::int32_t>(random() % 8));
    }
    const std::vector<float> x = features_of(random, kNodes);
    Sums exact;
    for (std::int32_t v = 0; v < kNodes; ++v) {
      std::vector<float>& largest = exact[v] = std::vector<float>(kWidth, -1);
      for (const std::int32_t u : graph.row(v)) {
        for (std::int64_t c = 0; c < kWidth; ++c) {
          float& own = largest[static_cast<std::size_t>(c)];
          own = std::max(own, x[static_cast<std::size_t>(u * kWidth + c)]);
        }
      }
    }
    for (const std::int32_t ranks : {1, 2, 3, 4, 8}) {
      const RankPlan plan = plan_for(graph, part_of, 8, ranks, true);
      const Carried many = carry(plan, graph, part_of, x, true);
      CHECK(many.sums == exact);
      CHECK(many.rows == plan.rows());
    }
  }
}

TEST_CASE("not a number is larger than all numbers", "[gnn][ranks]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> own{1, nan, -3, 2};
  RowSums largest;
  largest.take_largest();
  largest.add({0, 2}, {{0, 0}, {1, 1}});
  largest.add({0, 2}, {{0, 1}, {1, 3}});
  largest.add({0, 2}, {{0, 2}, {0, 0}, {1, 3}});
  std::vector<float> out(3);
  largest.compute({own.data(), 4, nullptr, 1}, out.data(), 1);
  CHECK(std::isnan(out[0]));
  CHECK(std::isnan(out[1]));
  CHECK(out[2] == 2);
}

TEST_CASE("a cover that leaves out an edge is refused", "[gnn][ranks]") {
  CsrGraph graph;  // 0 -> 1, 0 -> 2, 3 -> 1 between parts {0, 3} and {1, 2}
  graph.offsets = {0, 0, 2, 3, 3};
  graph.neighbors = {0, 3, 0};
  const std::vector<std::int32_t> part_of{0, 1, 1, 0};
  RankPlan plan = plan_for(graph, part_of, 2, 2, true);
  REQUIRE(plan.pairs.size() == 1);
  REQUIRE(plan.pairs[0].rows == 2);
  plan.pairs[0].cover.pop_back();
  CHECK_THROWS_AS(lay_out_rank(plan, GraphRows(graph), part_of, 1, "plan.json"), Error);
  plan.pairs[0].cover.push_back({1, 3, false});
  CHECK_THROWS_AS(lay_out_rank(plan, GraphRows(graph), part_of, 0, "plan.json"), Error);
}
