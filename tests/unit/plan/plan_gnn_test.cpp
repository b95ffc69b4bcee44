// SPDX-License-Identifier: Apache-2.0
// Plans: the classes there are, simulation by hand, brute force over everything, and the published
// table where the machine has it.
#include "npu/plan/plan_gnn.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "catch.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;

namespace {

const std::string kFolder = std::string(NPU_TEST_DATA_DIR) + "/gnn/";

PlanGnnOptions published_options() {
  PlanGnnOptions options;
  options.subgraphs = kFolder + "subgraphs.json";
  options.profile = kFolder + "published.json";
  options.transfers = false;
  return options;
}

Json plan_of(const PlanGnnOptions& options) {
  Diagnostics diagnostics;
  return make_gnn_plan(options, diagnostics).document;
}

bool near(double a, double b, double tolerance = 1e-6) {
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

}  // namespace

TEST_CASE("the classes of seven stages on three devices", "[plan][pep]") {
  CHECK(enumerate_peps(7, 3, 1).size() == 7);
  CHECK(enumerate_peps(7, 3, 2).size() == 7 + 72);
  const auto all = enumerate_peps(7, 3, 3);
  CHECK(all.size() == 7 + 72 + 90);
  for (const Pep& pep : all) {
    std::int32_t next = 1;
    std::uint32_t used = 0;
    for (const PepSegment& segment : pep.segments) {
      CHECK(segment.first == next);
      next = segment.last + 1;
      for (const GroupShare& share : segment.shares) {
        CHECK((used >> share.device & 1) == 0);
        used |= 1U << share.device;
      }
    }
    CHECK(next == 8);
  }
  CHECK(enumerate_peps(1, 1, 3).size() == 1);
  CHECK(pep_text(all[2], {"a", "b", "c"}) == "a+b[1-7]");
}

TEST_CASE("90 of them are legal where the npu has no scatter", "[plan][pep]") {
  const Json plan = plan_of(published_options());
  CHECK(plan.at("legal_classes") == 90);
  CHECK(plan.at("rejected").size() == 79);
  for (const Json& rejected : plan.at("rejected")) {
    CHECK(rejected.at("reason").get<std::string>().starts_with("npu does not run stage"));
  }
}

TEST_CASE("simulation follows the rules", "[plan][simulate]") {
  // Item 0: 2 ms on device 0, then 3 on 1. Item 1: 1 on 1 alone. Device 1 does not wait for item 0.
  const std::vector<SimItem> items{{{{{0, 2}}, {{1, 3}}}, 0}, {{{{1, 1}}}, 1}};
  const SimResult result = simulate(items, {0, 1}, 0);
  CHECK(result.makespan_ms == 5);
  REQUIRE(result.tasks.size() == 3);
  CHECK(result.tasks[1].item == 1);
  CHECK(result.tasks[2].start_ms == 2);
  // One resource: the devices take turns, 2 + 3 + 1.
  CHECK(simulate(items, {0, 0}, 0).makespan_ms == 6);
  // Device 1 goes over from cluster 1 to cluster 0.
  CHECK(simulate(items, {0, 1}, 0.5).makespan_ms == 5.5);
  CHECK(simulate(items, {0, 1}, 0.5).switches == 1);
  // A split: both shares have to end before the next segment.
  const std::vector<SimItem> split{{{{{0, 1}, {1, 4}}, {{2, 1}}}, 0}};
  CHECK(simulate(split, {0, 1, 2}, 0).makespan_ms == 5);
  CHECK(simulate({}, {0}, 0).makespan_ms == 0);
}

TEST_CASE("the largest load equals brute force over all candidates", "[plan]") {
  PlanGnnOptions options = published_options();
  options.ratios = {0.5};
  options.devices = {"cpu", "gpu"};
  options.max_segments = 2;
  Diagnostics diagnostics;
  const auto input = read_plan_input(options, diagnostics);
  const PepCosts costs(input->profile, input->layers[0], input->settings);
  std::vector<Pep> legal;
  for (const Pep& pep : enumerate_peps(7, 2, 2)) {
    if (costs.structure_refusal(pep).empty()) legal.push_back(pep);
  }
  std::vector<std::vector<PlanCandidate>> candidates;
  for (const SubgraphSize& size : input->subgraphs) {
    candidates.push_back(plan_candidates(costs, legal, size, nullptr));
  }
  std::vector<std::size_t> choice(candidates.size(), 0);
  double best = 1e300;
  for (;;) {
    double cpu = 0;
    double gpu = 0;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      cpu += candidates[i][choice[i]].cost.resource_ms[0];
      gpu += candidates[i][choice[i]].cost.resource_ms[1];
    }
    best = std::min(best, std::max(cpu, gpu));
    std::size_t i = 0;
    while (i < choice.size() && ++choice[i] == candidates[i].size()) choice[i++] = 0;
    if (i == choice.size()) break;
  }
  const Json plan = plan_of(options);
  // The makespan may be shortened at the cost of the load, never below the optimum.
  CHECK(plan.at("max_load_ms").get<double>() >= best * (1 - 1e-9));
  CHECK(near(plan.at("load_bound_ms").get<double>(), best, 6e-4));
  CHECK(plan.at("load_bound_ms").get<double>() <= best * (1 + 1e-9));
  CHECK(plan.at("makespan_ms").get<double>() >= best * (1 - 1e-9));
  CHECK(plan.at("makespan_ms").get<double>() <=
        plan.at("best_single_device").at("ms").get<double>());
}

TEST_CASE("a plan of a graph holds, and repeats", "[plan]") {
  const test::TemporaryFolder folder;
  for (const std::string model : {"graphsage", "gcn", "gat"}) {
    PlanGnnOptions options;
    options.graph = kFolder + "graph.mtx";
    options.model = kFolder + model + ".json";
    options.profile = kFolder + "profile.json";
    options.part_counts = {3, 6};
    options.pad = 16;
    options.output = folder / "plan.json";
    const Json plan = plan_of(options);
    CHECK(plan == plan_of(options));
    CHECK(plan.at("sweep").size() == 3);
    CHECK(plan.at("sweep")[0].at("k") == 1);
    write_file_atomically(options.output, write_document(plan));
    Diagnostics diagnostics;
    const Json verified = verify_gnn_plan(options.output, diagnostics);
    for (const Diagnostic& entry : diagnostics.entries()) UNSCOPED_INFO(entry.text);
    CHECK(verified.at("ok") == true);
  }
}

TEST_CASE("devices of one resource are combined for a gain that is no noise", "[plan]") {
  // Seven stages on either device; together they are `gain` faster than the faster one alone.
  const test::TemporaryFolder folder;
  const std::string profile = folder / "profile.json";
  const std::string subgraphs = folder / "subgraphs.json";
  write_file_atomically(subgraphs, R"([{"id": 0, "n": 1000, "m": 5000}])");
  for (const bool shared : {true, false}) {
    for (const double gain : {0.02, 0.2}) {
      Json entries = Json::array();
      const auto add = [&](const char* device, int first, int last, double ms) {
        entries.push_back({{"device", device},
                           {"layer", 1},
                           {"first", first},
                           {"last", last},
                           {"n", 1000},
                           {"m", 5000},
                           {"ms", ms}});
      };
      add("a", 1, 7, 100);
      add("b", 1, 7, 103);
      add("a", 1, 4, 50);
      add("b", 5, 7, 50 - 100 * gain);
      write_file_atomically(profile,
                            Json{{"npu", {{"version", 1}, {"kind", "profile"}}},
                                 {"devices",
                                  {{{"name", "a"}, {"resource", "host"}},
                                   {{"name", "b"}, {"resource", shared ? "host" : "other"}}}},
                                 {"entries", entries}}
                                .dump());
      PlanGnnOptions options;
      options.subgraphs = subgraphs;
      options.profile = profile;
      options.transfers = false;
      const Json plan = plan_of(options);
      const double makespan = plan.at("makespan_ms").get<double>();
      if (shared) {
        CHECK(near(makespan, gain > 0.05 ? 100 - 100 * gain : 100));
      } else {
        CHECK(makespan < 60);  // side by side
      }
      CHECK(plan.at("best_single_device").at("device") == "a");
    }
  }
}

TEST_CASE("halo counts", "[plan][halo]") {
  // 0 -> 1 -> 2 -> 3, and 0 -> 3; parts {0, 1} and {2, 3}.
  GraphReadOptions four;
  const DataGraph data = parse_graph("0 1\n1 2\n2 3\n0 3\n", "a.txt", four);
  const std::vector<std::int32_t> part_of{0, 0, 1, 1};
  const auto sizes = subgraph_sizes(data.in_edges, part_of, 2);
  REQUIRE(sizes.size() == 2);
  CHECK(sizes[0].n == 2);
  CHECK(sizes[0].m == 1);
  CHECK(sizes[0].halo == 0);
  CHECK(sizes[1].n == 4);
  CHECK(sizes[1].m == 3);
  CHECK(sizes[1].halo == 2);
  CHECK(sizes[1].cut_edges == 2);
  const auto parts = extract_subgraphs(data.in_edges, part_of, 2);
  CHECK(parts[1].nodes == std::vector<std::int32_t>{2, 3, 1, 0});
  CHECK(parts[1].owned == 2);
  CHECK(parts[1].offsets == std::vector<std::int64_t>{0, 1, 3});
  CHECK(parts[1].sources == std::vector<std::int32_t>{2, 3, 0});
}

TEST_CASE("the published table", "[plan]") {
  const char* given = std::getenv("NPU_SHARED_DATA");
  const std::filesystem::path folder =
      given != nullptr ? std::filesystem::path(given)
                       : std::filesystem::path(NPU_TEST_DATA_DIR) / "../../shared/data";
  if (!std::filesystem::exists(folder / "gnx/lookup_table.json")) {
    WARN("skipped: set NPU_SHARED_DATA to the folder that has gnx/lookup_table.json");
    return;
  }
  PlanGnnOptions options;
  options.subgraphs = (folder / "gnx/flickr16_subgraphs.json").string();
  options.profile = (folder / "gnx/lookup_table.json").string();
  options.transfers = false;
  const Json plan = plan_of(options);
  // The optimum, proven; the schedule reaches it.
  CHECK(near(plan.at("max_load_ms").get<double>(), 67223.747037));
  CHECK(plan.at("load_gap").get<double>() <= 1e-6);
  CHECK(plan.at("gap").get<double>() <= 1e-3);
  options.interpolation = Interpolation::kNearest;
  options.devices = {"gpu"};
  // What the table's own project predicts for its plan: everything on the GPU.
  CHECK(near(plan_of(options).at("makespan_ms").get<double>(), 101656.961192));
}
