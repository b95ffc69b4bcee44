// SPDX-License-Identifier: Apache-2.0
// What crosses between the devices of one machine: covers of parts, their sizes, the check.
#include "gnn/exchange/part_covers.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "catch.hpp"
#include "gnn/make_plan.hpp"
#include "gnn/plan/verify/verify_exchange.hpp"
#include "gnn/plan/verify/verify_plan.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kCoverData = std::string(NPU_TEST_DATA_DIR) + "/gnn/";

CsrGraph graph_of_rows(const std::vector<std::vector<std::int32_t>>& rows) {
  CsrGraph graph;
  for (const auto& row : rows) {
    graph.neighbors.insert(graph.neighbors.end(), row.begin(), row.end());
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
  }
  return graph;
}

MakePlanOptions covered(const test::TemporaryFolder& folder, const std::string& model) {
  MakePlanOptions options;
  options.graph = kCoverData + "graph.mtx";
  options.model = kCoverData + model + ".json";
  options.profile = kCoverData + "profile.json";
  options.part_counts = {8};
  options.pad = 16;
  options.device_cover = true;
  options.output = folder / (model + ".plan.json");
  options.partition_file = folder / (model + ".part");
  return options;
}

// What --verify says of a plan.
std::vector<std::string> faults_of(const GnnPlan& plan, const std::string& path) {
  write_file_atomically(path, write_document(to_json(plan)));
  Diagnostics diagnostics;
  verify_plan(path, diagnostics);
  std::vector<std::string> faults;
  for (const Diagnostic& entry : diagnostics.entries()) {
    if (entry.level == Level::kError) {
      faults.push_back(entry.location.pointer + ": " + entry.text);
    }
  }
  return faults;
}

}  // namespace

TEST_CASE("the cover of a part takes sums where they are fewer", "[plan][exchange]") {
  // Part 0 is nodes 0 and 1. Nodes 2, 3 and 4 of two other parts lead to node 0, node 5 to node 1:
  // the sum for node 0 and the features of node 5, in place of four rows.
  const CsrGraph graph = graph_of_rows({{1, 2, 3, 4}, {0, 5}, {}, {}, {}, {}});
  const std::vector<PartCover> covers = cover_parts(graph, {0, 0, 1, 1, 2, 2}, 3, false);
  REQUIRE(covers.size() == 1);
  CHECK(covers[0].part == 0);
  CHECK(covers[0].edges == 4);
  CHECK(covers[0].sources == 4);
  CHECK(covers[0].targets == 2);
  CHECK(covers[0].rows == 2);
  CHECK(covers[0].saved_rows(false) == 1);  // a row of zeros stands for the edges from 3 and 4
  CHECK(covers[0].saved_rows(true) == 2);
  std::vector<SubgraphSize> sizes = subgraph_sizes(graph, {0, 0, 1, 1, 2, 2}, 3);
  set_saved_rows(covers, false, sizes);
  CHECK(sizes[0].saved == 1);
  CHECK(sizes[1].saved == 0);
  // Of two sources the sum and the zeros are no fewer rows, but the largest alone is.
  const CsrGraph pair = graph_of_rows({{1, 2}, {}, {}});
  CHECK(cover_parts(pair, {0, 1, 1}, 2, false).empty());
  CHECK(cover_parts(pair, {0, 1, 1}, 2, true).size() == 1);
}

TEST_CASE("covers of parts cover all edges from other parts", "[plan][exchange]") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    constexpr std::int32_t kNodes = 60;
    std::vector<std::vector<std::int32_t>> rows(kNodes);
    for (int e = 0; e < 300; ++e) {
      const auto target = random() % (random() % 2 == 0 ? kNodes : 7);
      rows[target].push_back(
          static_cast<std::int32_t>(random() % (random() % 2 == 0 ? kNodes : 9)));
    }
    for (auto& row : rows) std::sort(row.begin(), row.end());
    const CsrGraph graph = graph_of_rows(rows);
    std::vector<std::int32_t> part_of;
    for (std::int32_t v = 0; v < kNodes; ++v) part_of.push_back(v % 5);
    for (const PartCover& cover : cover_parts(graph, part_of, 5, false)) {
      std::set<std::pair<std::int32_t, std::int32_t>> edges;
      for (std::int32_t v = 0; v < kNodes; ++v) {
        for (const std::int32_t u : rows[static_cast<std::size_t>(v)]) {
          if (v % 5 == cover.part && u % 5 != cover.part) edges.emplace(u, v);
        }
      }
      CHECK(cover.rows == least_rows(edges));
      check_cover("", cover.cover, edges,
                  [](const std::string&, const std::string& text) { FAIL(text); });
    }
  }
}

TEST_CASE("plans over devices hold what crosses, and the check finds changes", "[plan][exchange]") {
  const test::TemporaryFolder folder;
  for (const std::string model : {"graphsage", "gcn", "largest"}) {
    const MakePlanOptions options = covered(folder, model);
    Diagnostics diagnostics;
    const PlanResult result = make_plan(options, diagnostics);
    write_file_atomically(options.partition_file, [&] {
      std::string text;
      for (const std::int32_t part : result.part_of) text += std::to_string(part) + "\n";
      return text;
    }());
    const GnnPlan& plan = result.plan;
    REQUIRE(plan.choice.exchange);
    CHECK(plan_from_json(to_json(plan), "plan.json") == plan);
    CHECK(faults_of(plan, options.output).empty());
    std::int64_t rows = 0;
    std::int64_t halo = 0;
    for (const LayerCrossing& layer : plan.choice.exchange->layers) {
      rows += layer.rows;
      halo += layer.halo;
    }
    CHECK(rows > 0);
    CHECK(rows < halo);
    if (model != "graphsage") continue;  // the check's faults are not the model's

    GnnPlan changed = plan;
    changed.choice.exchange->layers[0].rows += 1;
    CHECK(faults_of(changed, options.output).size() == 1);
    changed = plan;
    CrossingRow& row = changed.choice.exchange->parts[0].cover[0];
    row.is_sum = !row.is_sum;
    CHECK_FALSE(faults_of(changed, options.output).empty());
    changed = plan;
    changed.choice.exchange->parts.erase(changed.choice.exchange->parts.begin());
    CHECK_FALSE(faults_of(changed, options.output).empty());
    changed = plan;
    changed.choice.exchange->host = plan.devices.back().name;
    CHECK_FALSE(faults_of(changed, options.output).empty());
    changed = plan;
    changed.choice.exchange.reset();
    CHECK_FALSE(faults_of(changed, options.output).empty());
  }
}

TEST_CASE("features alone cross for a model without sums", "[plan][exchange]") {
  const test::TemporaryFolder folder;
  Diagnostics diagnostics;
  const PlanResult result = make_plan(covered(folder, "gat"), diagnostics);
  CHECK_FALSE(result.plan.choice.exchange);
  CHECK(std::any_of(
      diagnostics.entries().begin(), diagnostics.entries().end(), [](const Diagnostic& entry) {
        return entry.text.find("only features cross between devices") != std::string::npos;
      }));
}
