// SPDX-License-Identifier: Apache-2.0
// Parts on ranks: the tree, its order, what crosses, the document and the check.
#include "gnn/exchange/rank_plan.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"
#include "gnn/exchange/part_tree.hpp"
#include "gnn/exchange/rank_document.hpp"
#include "gnn/make_plan.hpp"
#include "gnn/plan/verify/verify_plan.hpp"
#include "gnn/plan/verify/verify_ranks.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kGnnData = std::string(NPU_TEST_DATA_DIR) + "/gnn/";
constexpr FieldStyle kStyle{};

CsrGraph random_graph(std::mt19937& random, std::int32_t nodes, std::int32_t edges) {
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(nodes));
  for (std::int32_t e = 0; e < edges; ++e) {
    rows[random() % rows.size()].push_back(static_cast<std::int32_t>(random() % rows.size()));
  }
  CsrGraph graph;
  for (auto& row : rows) {
    std::sort(row.begin(), row.end());
    graph.neighbors.insert(graph.neighbors.end(), row.begin(), row.end());
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
  }
  return graph;
}

std::vector<std::int32_t> random_parts(std::mt19937& random, std::int32_t nodes,
                                       std::int32_t parts) {
  std::vector<std::int32_t> part_of;
  for (std::int32_t v = 0; v < nodes; ++v) {
    part_of.push_back(v < parts ? v : static_cast<std::int32_t>(random() % 1000) % parts);
  }
  return part_of;
}

std::vector<std::string> faults_of(const RankPlan& plan, const CsrGraph& graph,
                                   const std::vector<std::int32_t>& part_of,
                                   const RowWidths& widths) {
  std::vector<std::string> faults;
  verify_ranks(plan, graph, part_of, widths,
               [&](const std::string& pointer, const std::string& text) {
                 faults.push_back(pointer + ": " + text);
               });
  return faults;
}

}  // namespace

TEST_CASE("the tree over parts halves its leaves", "[plan][ranks]") {
  const PartTree tree({4, 2, 0, 1, 3});
  CHECK(tree.place(4) == 0);
  CHECK(tree.place(3) == 4);
  // {0 1 2} {3 4}, then {0 1} {2}.
  CHECK(tree.has({0, 5}));
  CHECK(tree.has({0, 3}));
  CHECK(tree.has({3, 5}));
  CHECK(tree.has({0, 2}));
  CHECK(tree.has({2, 3}));
  CHECK_FALSE(tree.has({1, 3}));
  CHECK_FALSE(tree.has({2, 4}));
  CHECK_FALSE(tree.has({0, 6}));
  CHECK_FALSE(tree.has({2, 2}));
  CHECK(tree.common_depth(0, 4) == 1);
  CHECK(tree.common_depth(0, 2) == 2);
  CHECK(tree.common_depth(0, 1) == 3);
  CHECK(PartTree({0}).has({0, 1}));
}

TEST_CASE("ranks are nodes of the tree, the heaviest is halved", "[plan][ranks]") {
  const PartTree tree({0, 1, 2, 3});
  using Nodes = std::vector<PartTree::Node>;
  CHECK(split_tree(tree, {1, 1, 1, 1}, 1) == Nodes{{0, 4}});
  CHECK(split_tree(tree, {1, 1, 5, 1}, 3) == Nodes{{0, 2}, {2, 3}, {3, 4}});
  CHECK(split_tree(tree, {1, 1, 1, 1}, 4) == Nodes{{0, 1}, {1, 2}, {2, 3}, {3, 4}});
}

TEST_CASE("parts between which many rows cross are close", "[plan][ranks]") {
  // Five edges from node 0 of part 0 to node 1 of part 1 are one row; nodes 1, 2 and 3 of part 1
  // have an edge each to nodes 4, 5 and 6 of part 2, which are three. Part 3 is node 7.
  CsrGraph graph;
  graph.offsets = {0, 0, 5, 5, 5, 6, 7, 8, 8};
  graph.neighbors = {0, 0, 0, 0, 0, 1, 2, 3};
  const std::vector<std::int32_t> part_of{0, 1, 1, 1, 2, 2, 2, 3};
  CHECK(order_parts(graph, part_of, 4) == std::vector<std::int32_t>{0, 3, 1, 2});
  // One target of many sources is one row as well: of node 4.
  graph.offsets = {0, 0, 2, 2, 2, 5, 5, 5, 5};
  graph.neighbors = {0, 7, 1, 2, 3};
  CHECK(order_parts(graph, {0, 1, 1, 1, 2, 0, 0, 0}, 3) == std::vector<std::int32_t>{0, 1, 2});
}

TEST_CASE("halves of the tree trade parts where fewer rows cross then", "[plan][ranks]") {
  // Four parts of nine nodes: 5 rows cross between parts 0 and 1, which are the closest, 4 between
  // 0 and 3 and 4 between 1 and 2. Between {0, 1} and {2, 3} that is 8, between {0, 3} and {1,
  // 2} 5.
  constexpr std::int32_t kNodes = 9;
  std::vector<std::vector<std::int32_t>> rows(4 * kNodes);
  const auto add = [&](std::int32_t from, std::int32_t to) {
    rows[static_cast<std::size_t>(to)].push_back(from);
  };
  for (std::int32_t i = 0; i < 5; ++i) add(i, kNodes + i);
  for (std::int32_t i = 0; i < 4; ++i) {
    add(5 + i, 3 * kNodes + i);
    add(kNodes + 5 + i, 2 * kNodes + i);
  }
  CsrGraph graph;
  std::vector<std::int32_t> part_of;
  for (std::int32_t v = 0; v < 4 * kNodes; ++v) {
    const auto& row = rows[static_cast<std::size_t>(v)];
    graph.neighbors.insert(graph.neighbors.end(), row.begin(), row.end());
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
    part_of.push_back(v / kNodes);
  }
  CHECK(order_parts(graph, part_of, 4) == std::vector<std::int32_t>{2, 1, 0, 3});
}

TEST_CASE("the order of parts does not depend on the number of ranks", "[plan][ranks]") {
  std::mt19937 random(3);
  const RowWidths widths{{6, 8, 3}};
  for (int round = 0; round < 10; ++round) {
    const CsrGraph graph = random_graph(random, 60, 200);
    const auto part_of = random_parts(random, 60, 8);
    const std::vector<std::int32_t> order =
        plan_ranks(graph, part_of, 8, widths, {.rank_count = 1}).part_order();
    for (const std::int32_t ranks : {2, 3, 4, 5, 8}) {
      const RankPlan plan = plan_ranks(graph, part_of, 8, widths, {.rank_count = ranks});
      CHECK(plan.part_order() == order);
      CHECK(plan.ranks.size() == static_cast<std::size_t>(ranks));
      CHECK(plan.rows() <= plan.halo());
      CHECK(plan.bytes() == plan.rows() * (24 + 32));
      CHECK(faults_of(plan, graph, part_of, widths).empty());
      const RankPlan features =
          plan_ranks(graph, part_of, 8, widths, {.rank_count = ranks, .sums = false});
      CHECK(features.rows() == plan.halo());
      CHECK(faults_of(features, graph, part_of, widths).empty());
      const Json json = to_json(plan);
      CHECK(read_rank_plan(JsonFields(json, "plan.json", "", kStyle), 8) == plan);
    }
  }
}

TEST_CASE("the check of ranks finds what was changed", "[plan][ranks]") {
  std::mt19937 random(4);
  const RowWidths widths{{6, 8}};
  const CsrGraph graph = random_graph(random, 40, 120);
  const auto part_of = random_parts(random, 40, 4);
  const RankPlan good = plan_ranks(graph, part_of, 4, widths, {.rank_count = 2});
  REQUIRE(good.pairs.size() == 2);
  const auto first_fault = [&](const RankPlan& plan) {
    const auto faults = faults_of(plan, graph, part_of, widths);
    return faults.empty() ? std::string() : faults.front();
  };
  RankPlan bad = good;
  bad.pairs[0].cover.pop_back();
  CHECK(first_fault(bad).find("/pairs/0/cover: nothing crosses for the edge") == 0);
  bad = good;
  bad.pairs[0].cover[1] = bad.pairs[0].cover[0];
  CHECK(first_fault(bad).find("is in the matching twice") != std::string::npos);
  bad = good;
  bad.pairs[1].cover[0].source = bad.pairs[1].cover[0].target;
  CHECK(first_fault(bad).find("/pairs/1/cover: there is no edge") == 0);
  bad = good;
  ++bad.pairs[1].rows;
  CHECK(first_fault(bad).find("/pairs/1/rows: counted as") == 0);
  bad = good;
  bad.pairs.pop_back();
  CHECK(first_fault(bad).find("/pairs: nothing is said of rank 1 and rank 0") == 0);
  bad = good;
  ++bad.ranks[1].memory_bytes;
  CHECK(first_fault(bad).find("/ranks/1/memory_bytes: counted as") == 0);
  bad = good;
  bad.row_bytes[0] = 8;
  CHECK(first_fault(bad) == "/row_bytes/0: counted as 24, the plan says 8");
}

TEST_CASE("documents of ranks are read strictly", "[plan][ranks]") {
  const Json good = {{"count", 2},
                     {"exchange", "cover"},
                     {"row_bytes", {24}},
                     {"ranks", Json::array()},
                     {"pairs", Json::array()}};
  const auto refusal = [](const Json& json, std::int32_t parts) {
    try {
      read_rank_plan(JsonFields(json, "plan.json", "", kStyle), parts);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto with_parts = [&](const std::vector<std::vector<int>>& parts) {
    Json json = good;
    for (const auto& list : parts) {
      json["ranks"].push_back({{"parts", list},
                               {"nodes", 1},
                               {"edges", 1},
                               {"rows_in", 0},
                               {"rows_out", 0},
                               {"memory_bytes", 0}});
    }
    return json;
  };
  CHECK(refusal(with_parts({{0, 1}, {2}}), 3).empty());
  CHECK(refusal(with_parts({{0}, {1, 2}}), 3).find("rank 1 are not those of one node") !=
        std::string::npos);
  CHECK(refusal(with_parts({{0, 1}, {1}}), 3).find("each of 3 parts in one rank") !=
        std::string::npos);
  CHECK(refusal(with_parts({{0, 1, 2}}), 3).find("lists 1 ranks") != std::string::npos);
  const auto with_cover = [&](const std::string& cover) {
    Json json = with_parts({{0, 1}, {2}});
    json["pairs"].push_back({{"from", 0},
                             {"to", 1},
                             {"edges", 2},
                             {"sources", 2},
                             {"targets", 2},
                             {"rows", 2},
                             {"cover", cover}});
    return json;
  };
  CHECK(refusal(with_cover("1>2 3+4"), 3).empty());
  for (const std::string text : {"1>2", "1>2 3", "1>2 3-4", "1>2  3+4", "1>2 3+-4", "1>2 -3+4",
                                 "1>2 3+99999999999", "1>2 3+4x", "x"}) {
    INFO(text);
    CHECK(refusal(with_cover(text), 3).find("expected") != std::string::npos);
  }
}

TEST_CASE("the exchange takes what the busiest rank sends or receives", "[plan][ranks]") {
  RankPlan plan;
  plan.row_bytes = {100, 10};
  plan.ranks.resize(3);
  plan.ranks[0].rows_out = 30;
  plan.ranks[1].rows_in = 30;
  plan.ranks[1].rows_out = 5;
  plan.ranks[2].rows_in = 5;
  plan.pairs = {{.from = 0, .to = 1, .rows = 30}, {.from = 1, .to = 2, .rows = 5}};
  // Ranks 0 and 1: 30 rows of 100 bytes at 1 MB/s take 3 ms, one message 0.05 ms.
  plan.link = {1'000'000, 50};
  std::vector<double> times = predicted_exchange_ms(plan);
  REQUIRE(times.size() == 2);
  CHECK(times[0] == Approx(3.05));
  CHECK(times[1] == Approx(0.35));
  // By pair: the second one takes 5 * 100 bytes at 100 kB/s and 1 ms, so rank 1 sends for 6 ms.
  plan.link = {};
  plan.pairs[0].link = {1'000'000, 50};
  plan.pairs[1].link = {100'000, 1000};
  times = predicted_exchange_ms(plan);
  CHECK(times[0] == Approx(6));
  CHECK(times[1] == Approx(1.5));
}

TEST_CASE("a plan for ranks holds, and its parts are those of fewer ranks", "[plan][ranks]") {
  const test::TemporaryFolder folder;
  std::string hash;
  for (const std::int32_t ranks : {1, 2, 4, 8}) {
    MakePlanOptions options;
    options.graph = kGnnData + "graph.mtx";
    options.model = kGnnData + "graphsage.json";
    options.profile = kGnnData + "profile.json";
    options.part_counts = {8};
    options.pad = 16;
    options.rank_count = ranks;
    options.output = folder / "plan.json";
    Diagnostics diagnostics;
    const GnnPlan plan = make_plan(options, diagnostics).plan;
    REQUIRE(plan.choice.ranks);
    CHECK(plan.choice.k == 8);
    if (hash.empty()) hash = plan.choice.partition->hash;
    CHECK(plan.choice.partition->hash == hash);
    CHECK(plan.choice.ranks->rows() <= plan.choice.ranks->halo());
    write_file_atomically(options.output, write_document(to_json(plan)));
    CHECK(read_plan(options.output) == plan);
    CHECK(verify_plan(options.output, diagnostics).ok);
  }
}
