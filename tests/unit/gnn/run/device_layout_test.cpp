// SPDX-License-Identifier: Apache-2.0
// Runs of plans whose devices are told sums: the results of one device, and as many rows as
// planned.
#include "gnn/run/device_layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "catch.hpp"
#include "gnn/make_plan.hpp"
#include "gnn/run_plan.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"
#include "test_paths.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kExchangeData = std::string(NPU_TEST_DATA_DIR) + "/gnn/";

struct ExchangeRun {
  GnnPlan plan;
  RunPlanResult result;
};

// On these devices of the profile, with covers or without.
ExchangeRun run_on(const test::TemporaryFolder& folder, const std::string& model,
                   const std::vector<std::string>& devices, bool cover, std::int32_t bench = 0) {
  MakePlanOptions options;
  options.graph = kExchangeData + "graph.mtx";
  options.model = kExchangeData + model + ".json";
  options.profile = kExchangeData + "profile.json";
  options.part_counts = {8};
  options.pad = 16;
  options.settings.devices = devices;
  // Too little for the graph in one part, which one device would have it in.
  if (devices.size() == 1) options.settings.memory = {{devices.front(), 6000}};
  options.device_cover = cover;
  options.output = folder / "plan.json";
  options.partition_file = folder / "plan.part";
  Diagnostics diagnostics;
  ExchangeRun run;
  run.plan = make_plan(options, diagnostics).plan;
  write_file_atomically(options.output, write_document(to_json(run.plan)));
  RunPlanOptions running;
  running.plan = options.output;
  running.features = kExchangeData + "x.npy";
  running.devices = {{"gpu", "aten"}};
  running.cache.enabled = false;
  running.bench = bench;
  run.result = run_plan(running, diagnostics);
  return run;
}

float largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  float largest = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    const float difference = std::abs(a.as<float>()[i] - b.as<float>()[i]);
    largest = std::max(largest, std::isnan(difference) ? 1 : difference);
  }
  return largest;
}

}  // namespace

TEST_CASE("devices that read sums compute what they compute from features", "[gnn][exchange]") {
  if (!test::use_backends()) return;
  const test::TemporaryFolder folder;
  // Every model with other devices, and one with all of them: each pair compiles anew.
  const std::map<std::string, std::vector<std::vector<std::string>>> devices_of{
      {"graphsage", {{"cpu", "npu"}, {"cpu", "gpu", "npu"}}},
      {"gcn", {{"cpu", "gpu"}}},
      {"largest", {{"cpu", "gpu", "npu"}}}};
  for (const auto& [model, list] : devices_of) {
    for (const std::vector<std::string>& devices : list) {
      INFO(model << " on " << devices.size() << " devices, the last " << devices.back());
      const ExchangeRun features = run_on(folder, model, devices, false);
      CHECK_FALSE(features.result.report.exchange);
      const ExchangeRun sums = run_on(folder, model, devices, true, 2);
      REQUIRE(sums.result.report.exchange);
      CHECK(largest_difference(features.result.output, sums.result.output) <= 1e-5F);
      const auto& layers = sums.result.report.exchange->layers;
      REQUIRE(layers.size() == sums.plan.choice.exchange->layers.size());
      bool is_split = false;
      for (const PlannedStages& stages : sums.plan.choice.device_plans) {
        for (const PlannedSegment& segment : stages.segments) {
          is_split = is_split || segment.shares.size() > 1;
        }
      }
      for (std::size_t l = 0; l < layers.size(); ++l) {
        CHECK(layers[l].planned_rows == sums.plan.choice.exchange->layers[l].rows);
        if (is_split) {
          CHECK(layers[l].rows <= layers[l].planned_rows);
        } else {
          CHECK(layers[l].rows == layers[l].planned_rows);
        }
      }
    }
  }
}

TEST_CASE("what the host computes alone keeps its bits", "[gnn][exchange]") {
  if (!test::use_backends()) return;
  const test::TemporaryFolder folder;
  const ExchangeRun features = run_on(folder, "graphsage", {"cpu"}, false);
  const ExchangeRun sums = run_on(folder, "graphsage", {"cpu"}, true);
  CHECK(largest_difference(features.result.output, sums.result.output) == 0);
  REQUIRE(sums.result.report.exchange);
  for (const ExchangeReport::Layer& layer : sums.result.report.exchange->layers) {
    CHECK(layer.rows == 0);
  }
}

TEST_CASE("covers that do not cover the graph are refused before a run", "[gnn][exchange]") {
  // Part 0 reads nodes 2, 3 and 4 for node 0.
  CsrGraph graph;
  graph.neighbors = {2, 3, 4};
  graph.offsets = {0, 3, 3, 3, 3, 3};
  const std::vector<std::int32_t> part_of{0, 0, 1, 1, 1};
  const StagedModel model = read_staged_model(kExchangeData + "graphsage.json");
  GnnPlan plan;
  plan.choice.k = 2;
  plan.choice.subgraphs = {
      {{.id = 0, .n = 5, .m = 3, .halo = 3, .cut_edges = 3, .saved = 1}, 16, 16},
      {{.id = 1, .n = 3}, 16, 16}};
  plan.choice.exchange = {.host = "cpu",
                          .parts = {{.part = 0, .edges = 3, .sources = 3, .targets = 1, .rows = 1}},
                          .layers = {}};
  const auto refusal = [&] {
    try {
      lay_out_devices(plan, model, graph, part_of, "plan.json");
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  auto& cover = plan.choice.exchange->parts[0].cover;
  cover = {{2, 0, true}};
  CHECK(refusal().empty());
  const DeviceLayout layout = lay_out_devices(plan, model, graph, part_of, "plan.json");
  CHECK(layout.rows.row_count == 7);  // five nodes, a sum, zeros
  CHECK(layout.rows.parts[0].nodes == std::vector<std::int32_t>{0, 1, 5, 6});
  CHECK(layout.rows.parts[0].sources == std::vector<std::int32_t>{2, 3, 3});
  CHECK(layout.rows.parts[1].nodes.empty());
  cover = {{2, 0, false}};
  CHECK(refusal().find("nothing crosses for the edge from node 3") == 0);
  cover = {{2, 0, true}, {3, 0, true}};
  CHECK(refusal().find("a cover has a sum twice") == 0);
  cover = {{2, 0, true}, {2, 1, true}};
  CHECK(refusal().find("there is a sum for node 1, which has no edge") == 0);
  cover = {{2, 0, true}};
  plan.choice.subgraphs[0].size.saved = 2;
  CHECK(refusal().find("part 0 reads 4 rows by its cover, the plan says 3") == 0);
}
