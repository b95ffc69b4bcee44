// SPDX-License-Identifier: Apache-2.0
// Plans: all classes of them, simulation by hand, brute force over all plans, and a table of
// published form.
#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "gnn/make_plan.hpp"
#include "gnn/model/staged_model.hpp"
#include "gnn/plan/search/simulate.hpp"
#include "gnn/plan/verify/verify_plan.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"
#include "target/device_facts.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kFolder = std::string(NPU_TEST_DATA_DIR) + "/gnn/";

MakePlanOptions published_options() {
  MakePlanOptions options;
  options.subgraphs = kFolder + "subgraphs.json";
  options.profile = kFolder + "published.json";
  options.settings.transfers = false;
  return options;
}

GnnPlan plan_of(const MakePlanOptions& options) {
  Diagnostics diagnostics;
  return make_plan(options, diagnostics).plan;
}

bool near(double a, double b, double tolerance = 1e-6) {
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

}  // namespace

TEST_CASE("the classes of seven stages on three devices", "[plan][device_plan]") {
  CHECK(enumerate_device_plans(7, 3, 1).size() == 7);
  CHECK(enumerate_device_plans(7, 3, 2).size() == 7 + 72);
  const auto all = enumerate_device_plans(7, 3, 3);
  CHECK(all.size() == 7 + 72 + 90);
  for (const DevicePlan& device_plan : all) {
    std::int32_t next = 1;
    std::uint32_t used = 0;
    for (const StageSegment& segment : device_plan.segments) {
      CHECK(segment.first == next);
      next = segment.last + 1;
      for (const GroupShare& share : segment.shares) {
        CHECK((used >> share.device & 1) == 0);
        used |= 1U << share.device;
      }
    }
    CHECK(next == 8);
  }
  CHECK(enumerate_device_plans(1, 1, 3).size() == 1);
  CHECK(device_plan_text(all[2], {"a", "b", "c"}) == "a+b[1-7]");
}

TEST_CASE("90 of them are legal where the npu has no scatter", "[plan][device_plan]") {
  const GnnPlan plan = plan_of(published_options());
  CHECK(plan.search.legal_classes == 90);
  CHECK(plan.search.rejected.size() == 79);
  for (const RejectedPlan& rejected : plan.search.rejected) {
    CHECK(rejected.reason.starts_with("npu does not run stage"));
  }
}

TEST_CASE("simulation follows the rules", "[plan][simulate]") {
  // Item 0: 2 ms on device 0, then 3 on 1. Item 1: 1 on 1 alone. Device 1 does not wait for item 0.
  const std::vector<SimItem> items{{{{{0, 2}}, {{1, 3}}}, 0}, {{{{1, 1}}}, 1}};
  const SimResult result = simulate(items, {0, 1}, {});
  CHECK(result.makespan_ms == 5);
  REQUIRE(result.tasks.size() == 3);
  CHECK(result.tasks[1].item == 1);
  CHECK(result.tasks[2].start_ms == 2);
  // One resource: the devices take turns, 2 + 3 + 1.
  CHECK(simulate(items, {0, 0}, {}).makespan_ms == 6);
  // Device 1 goes over from cluster 1 to cluster 0.
  CHECK(simulate(items, {0, 1}, {9, 0.5}).makespan_ms == 5.5);
  CHECK(simulate(items, {0, 1}, {9, 0.5}).switches == 1);
  CHECK(simulate(items, {0, 1}, {9, 0.5}).switching_ms == 0.5);
  // A split: both shares have to end before the next segment.
  const std::vector<SimItem> split{{{{{0, 1}, {1, 4}}, {{2, 1}}}, 0}};
  CHECK(simulate(split, {0, 1, 2}, {}).makespan_ms == 5);
  CHECK(simulate({}, {0}, {}).makespan_ms == 0);
}

TEST_CASE("the largest load equals brute force over all candidates", "[plan]") {
  MakePlanOptions options = published_options();
  options.settings.ratios = {0.5};
  options.settings.devices = {"cpu", "gpu"};
  options.settings.max_segments = 2;
  Diagnostics diagnostics;
  const auto input = read_plan_input(options, diagnostics);
  const DevicePlanCosts costs(input->profile, input->layers[0], input->settings);
  const std::vector<DevicePlan> legal = legal_structures(costs, input->layers[0], 2, 2);
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
  const GnnPlan plan = plan_of(options);
  // The makespan may be shortened at the cost of the load, never below the optimum.
  CHECK(plan.predicted.max_load_ms >= best * (1 - 1e-9));
  CHECK(near(plan.proof.load_bound_ms, best, 6e-4));
  CHECK(plan.proof.load_bound_ms <= best * (1 + 1e-9));
  CHECK(plan.predicted.makespan_ms >= best * (1 - 1e-9));
  CHECK(plan.predicted.makespan_ms <= plan.predicted.best_single_device->ms);
}

TEST_CASE("a plan of a graph holds, and repeats", "[plan]") {
  const test::TemporaryFolder folder;
  for (const std::string model : {"graphsage", "gcn", "gat"}) {
    MakePlanOptions options;
    options.graph = kFolder + "graph.mtx";
    options.model = kFolder + model + ".json";
    options.profile = kFolder + "profile.json";
    options.part_counts = {3, 6};
    options.pad = 16;
    options.output = folder / "plan.json";
    const GnnPlan plan = plan_of(options);
    CHECK(plan == plan_of(options));
    CHECK(plan.search.sweep.size() == 3);
    CHECK(plan.search.sweep[0].k == 1);
    write_file_atomically(options.output, write_document(to_json(plan)));
    Diagnostics diagnostics;
    const PlanCheck check = verify_plan(options.output, diagnostics);
    for (const Diagnostic& entry : diagnostics.entries()) UNSCOPED_INFO(entry.text);
    CHECK(check.ok);
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
      MakePlanOptions options;
      options.subgraphs = subgraphs;
      options.profile = profile;
      options.settings.transfers = false;
      const GnnPlan plan = plan_of(options);
      const double makespan = plan.predicted.makespan_ms;
      if (shared) {
        CHECK(near(makespan, gain > 0.05 ? 100 - 100 * gain : 100));
      } else {
        CHECK(makespan < 60);  // side by side
      }
      CHECK(plan.predicted.best_single_device->device == "a");
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

TEST_CASE("the nearest point of a published table counts", "[plan]") {
  MakePlanOptions options = published_options();
  options.settings.interpolation = Interpolation::kNearest;
  options.settings.devices = {"gpu"};
  Diagnostics diagnostics;
  const auto input = read_plan_input(options, diagnostics);
  REQUIRE(input->subgraphs.size() > 1);
  double expected = 0;
  for (const SubgraphSize& size : input->subgraphs) {
    for (std::int32_t stage = 1; stage <= 7; ++stage) {
      double nearest = std::numeric_limits<double>::infinity();
      double ms = 0;
      for (const ProfileEntry& entry : input->profile.entries) {
        if (entry.device != "gpu" || entry.first != stage) continue;
        const double distance = std::hypot(entry.n - static_cast<double>(size.n),
                                           entry.m - static_cast<double>(size.m));
        if (distance < nearest) {
          nearest = distance;
          ms = entry.ms;
        }
      }
      expected += ms;
    }
  }
  const GnnPlan plan = plan_of(options);
  CHECK(near(plan.predicted.makespan_ms, expected));
  CHECK(near(plan.predicted.loads_ms.front().second, expected));
  // One device and one way to use it: nothing is left to prove.
  CHECK(plan.proof.gap == 0);
}

TEST_CASE("settings that name what there is not are refused", "[plan]") {
  Diagnostics diagnostics;
  const auto refusal = [&](const PlanSettings& settings) {
    MakePlanOptions options = published_options();
    options.settings = settings;
    options.settings.transfers = false;
    try {
      read_plan_input(options, diagnostics);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUsage);
      return error.message();
    }
    return std::string();
  };
  const std::string unknown = "device 'tpu' is not in the profile, which has cpu, gpu, npu";
  PlanSettings settings;
  settings.excluded = {{"tpu", {1}}};
  CHECK(refusal(settings) == unknown);
  settings.excluded = {{"npu", {9}}};
  CHECK(refusal(settings) == "stage 9 of device 'npu' is not in 1..7");
  settings = {};
  settings.memory = {{"tpu", 1}};
  CHECK(refusal(settings) == unknown);
  settings = {};
  settings.resources = {{"tpu", "host"}};
  CHECK(refusal(settings) == unknown);
  settings = {};
  settings.devices = {"cpu", "tpu"};
  CHECK(refusal(settings) == unknown);
}

namespace {

// A model, a graph and a table in a folder, of which tests change the table.
struct ModelPlan {
  test::TemporaryFolder folder;
  MakePlanOptions options;
  Diagnostics diagnostics;

  explicit ModelPlan(const std::string& model = "graphsage") {
    options.graph = kFolder + "graph.mtx";
    options.model = kFolder + model + ".json";
    options.part_counts = {3};
    options.pad = 16;
    set_table(parse_json(read_file(kFolder + "profile.json"), "profile.json"));
  }
  void set_table(const Json& table) {
    options.profile = folder / "table.json";
    write_file_atomically(options.profile, table.dump());
  }
  Json table() const { return parse_json(read_file(options.profile), options.profile); }
  std::string refusal() {
    try {
      make_plan(options, diagnostics);
    } catch (const Error& error) {
      return error.location().pointer + ": " + error.message();
    }
    return {};
  }
  // All warnings, one a line.
  std::string warnings() const {
    std::string text;
    for (const Diagnostic& entry : diagnostics.entries()) {
      if (entry.level == Level::kWarning) text += entry.text + "\n";
    }
    return text;
  }
};

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the table of another model or of other devices is refused", "[plan]") {
  ModelPlan plan;
  const std::string hash = read_staged_model(plan.options.model).hash;
  Json table = plan.table();
  table["model"] = "gat";
  table["model_hash"] = "0123456789abcdef";
  plan.set_table(table);
  CHECK(plan.refusal() ==
        "/model_hash: the table was measured on another model ('gat', hash "
        "0123456789abcdef); this one is 'graphsage', hash " +
            hash + ": measure it with npu-profile");
  table["model_hash"] = hash;
  plan.set_table(table);
  CHECK(plan.refusal().empty());
  const Target host = load_target("host");
  table["target"] = "host";
  table["devices"][2]["rules"] = device_rules_digest(host, "npu");
  plan.set_table(table);
  CHECK(plan.refusal().empty());
  plan.options.settings.target = "pytorch-apple";
  CHECK(contains(plan.refusal(),
                 "/devices: the table was measured for device 'npu' of target 'host', which runs "
                 "other ops than that of target 'pytorch-apple'"));
  plan.options.settings.target = "tpu";
  CHECK(contains(plan.refusal(), "which target 'tpu' does not have: give --target"));
}

TEST_CASE("a layer without a legal plan says why", "[plan]") {
  ModelPlan plan;
  Json table = plan.table();
  // As a table of six stages has it.
  Json entries = Json::array();
  for (const Json& entry : table["entries"]) {
    if (entry["last"] < 7) entries.push_back(entry);
  }
  table["entries"] = entries;
  plan.set_table(table);
  const std::string text = plan.refusal();
  CHECK(contains(text, "layer 1 has no legal plan"));
  CHECK(contains(text, "the profile has no times of cpu for stages 1-7"));
  CHECK(contains(text, "npu does not run stage"));
}

TEST_CASE("memory comes from the table, the target or the options", "[plan]") {
  ModelPlan plan;
  Json table = plan.table();
  const auto limits = [&] {
    plan.set_table(table);
    std::vector<double> bytes;
    const auto input = read_plan_input(plan.options, plan.diagnostics);
    for (const ProfileDevice& device : input->profile.devices) {
      bytes.push_back(device.memory_bytes);
    }
    return bytes;
  };
  CHECK(limits() == std::vector<double>{0, 0, 0});
  plan.options.settings.target = "gpu";
  CHECK(limits() == std::vector<double>{0, 40.0 * (1 << 30), 0});
  table["devices"][1]["memory_bytes"] = 5000;
  CHECK(limits() == std::vector<double>{0, 5000, 0});
  plan.options.settings.memory = {{"gpu", 7000}};
  CHECK(limits() == std::vector<double>{0, 7000, 0});
  // Plans are pruned by it without any option.
  plan.options.settings = {};
  for (Json& device : table["devices"]) device["memory_bytes"] = 1000;
  plan.set_table(table);
  CHECK(contains(plan.refusal(), " needs "));
}

TEST_CASE("links that are missing are told", "[plan]") {
  ModelPlan plan;
  CHECK(plan.refusal().empty());
  CHECK_FALSE(contains(plan.warnings(), "no links"));
  Json table = plan.table();
  table["transfers"].erase(5);  // npu -> gpu
  table["transfers"].erase(0);  // cpu -> gpu
  plan.set_table(table);
  CHECK(plan.refusal().empty());
  CHECK(
      contains(plan.warnings(),
               "the table has no links cpu -> gpu, npu -> gpu: transfers over them count nothing; "
               "give --bandwidths FILE"));
}

TEST_CASE("a change of devices within a layer costs its handover", "[plan][device_plan]") {
  ModelPlan plan;
  const DevicePlan mixed{{{1, 5, {{0, 100}}}, {6, 7, {{1, 100}}}}};
  const auto cost_of = [&](const DevicePlan& device_plan) {
    const auto input = read_plan_input(plan.options, plan.diagnostics);
    const DevicePlanCosts costs(input->profile, input->layers[0], input->settings);
    return costs.cost(device_plan, {.n = 100, .m = 500});
  };
  const DevicePlan alone{{{1, 7, {{0, 100}}}}};
  const DevicePlanCost before = cost_of(mixed);
  const double before_alone = cost_of(alone).latency_ms;
  Json table = plan.table();
  const std::string from = table["devices"][0]["name"];
  const std::string to = table["devices"][1]["name"];
  for (Json& link : table["transfers"]) {
    if (link["from"] == from && link["to"] == to) link["handovers"] = {{1, 0.75}, {1e9, 0.75}};
  }
  plan.set_table(table);
  const DevicePlanCost after = cost_of(mixed);
  // Once, however many tensors cross, and on the device that takes over.
  CHECK(near(after.latency_ms - before.latency_ms, 0.75));
  CHECK(near(after.transfer_ms - before.transfer_ms, 0.75));
  CHECK(near(after.share_ms[1][0] - before.share_ms[1][0], 0.75));
  CHECK(near(after.share_ms[0][0], before.share_ms[0][0]));
  CHECK(near(cost_of(alone).latency_ms, before_alone));
  const GnnPlan made = make_plan(plan.options, plan.diagnostics).plan;
  CHECK(made.predicted.makespan_ms > 0);
}

TEST_CASE("a quantum beyond the graph is refused", "[plan]") {
  ModelPlan plan;
  plan.options.pad = 100'000'000;
  CHECK(plan.refusal() ==
        ": --pad 100000000: expected at most 32000 for a graph of 60 nodes and 320 edges");
}

TEST_CASE("a graph is never cut for one device alone", "[plan]") {
  // As a disturbed table has it: four parts are 40 % faster than the whole.
  const auto table = [](bool with_limit) {
    Json json = Json::parse(R"({"npu": {"version": 1, "kind": "profile"},
                                "devices": [{"name": "cpu"}], "entries": []})");
    if (with_limit) json["devices"][0]["memory_bytes"] = 60000;
    for (const auto& [n, ms] : std::vector<std::pair<int, double>>{{10, 1}, {20, 3}, {60, 20}}) {
      json["entries"].push_back({{"device", "cpu"},
                                 {"first", 1},
                                 {"last", 7},
                                 {"n", n},
                                 {"m", 5 * n},
                                 {"ms", ms},
                                 {"peak_bytes", 1000 * n}});
    }
    return json;
  };
  ModelPlan plan;
  plan.options.part_counts = {4};
  plan.set_table(table(false));
  const GnnPlan whole = plan_of(plan.options);
  CHECK(whole.choice.k == 1);
  REQUIRE(whole.search.sweep.size() == 2);
  CHECK(whole.search.sweep[1].makespan_ms < whole.predicted.makespan_ms);
  CHECK(whole.search.sweep[1].passed_over == "all on cpu, which can have the graph in one part");
  REQUIRE(whole.predicted.best_single_device);
  CHECK(whole.predicted.best_single_device->k == 1);
  CHECK(whole.predicted.speedup == 1);
  // What does not fit has to be cut.
  Json small = table(true);
  small["devices"][0]["memory_bytes"] = 59000;
  plan.set_table(small);
  const GnnPlan cut = plan_of(plan.options);
  CHECK(cut.choice.k == 4);
  CHECK(cut.search.sweep[1].passed_over.empty());
}

TEST_CASE("a plan says what makes its times uncertain", "[plan]") {
  ModelPlan plan;
  plan.options.settings.devices = {"cpu"};
  CHECK(plan.refusal().empty());
  CHECK(plan_of(plan.options).predicted.uncertain.empty());
  CHECK_FALSE(contains(plan.warnings(), "uncertain"));
  plan.options.pad = 1000;  // shapes of 1000 nodes, where the table ends at 100
  plan.options.settings.devices = {"cpu", "npu"};
  GnnPlan planned = plan_of(plan.options);
  CHECK(planned.predicted.extrapolated > 0);
  REQUIRE(planned.predicted.uncertain.size() == 1);
  CHECK(contains(planned.predicted.uncertain[0],
                 "lie outside of what was measured (up to 100 nodes): npu-profile --graph"));
  plan.options.pad = 16;
  plan.options.settings.devices = {"cpu"};
  Json table = plan.table();
  for (Json& entry : table["entries"]) entry["disturbed"] = true;
  table["leave_one_out"] = {{"points", 0}};
  plan.set_table(table);
  planned = plan_of(plan.options);
  CHECK(planned.predicted.disturbed ==
        static_cast<std::int64_t>(planned.choice.assignments.size()));
  REQUIRE(planned.predicted.uncertain.size() == 2);
  CHECK(contains(planned.predicted.uncertain[0],
                 "go by times that other work on the machine disturbed"));
  CHECK(contains(planned.predicted.uncertain[1], "how well the table interpolates is not known"));
  CHECK(plan.refusal().empty());
  CHECK(contains(plan.warnings(), "predicted times are uncertain: how well"));
  table["leave_one_out"] = {{"points", 9}, {"median_error", 0.4}};
  plan.set_table(table);
  CHECK(contains(plan_of(plan.options).predicted.uncertain[1],
                 "the table misses points that are left out of it by 40 % (median)"));
  CHECK(plan_from_json(to_json(planned), "p.json") == planned);
}

TEST_CASE("a plan is certain while little of its time comes from disturbed points", "[plan]") {
  ModelPlan plan;
  plan.options.settings.devices = {"cpu"};
  // The second layer takes a hundred times as long as the first one.
  Json table = plan.table();
  Json entries = Json::array();
  for (const int layer : {1, 2}) {
    for (Json entry : table["entries"]) {
      entry["layer"] = layer;
      entry["ms"] = entry["ms"].get<double>() * (layer == 1 ? 0.01 : 1);
      entries.push_back(entry);
    }
  }
  table["entries"] = entries;
  const auto disturbed_at = [&](int layer) {
    for (Json& entry : table["entries"]) entry["disturbed"] = entry["layer"] == layer;
    plan.set_table(table);
    return plan_of(plan.options);
  };
  GnnPlan planned = disturbed_at(1);
  CHECK(planned.predicted.disturbed > 0);
  CHECK(planned.predicted.uncertain.empty());
  planned = disturbed_at(2);
  CHECK(planned.predicted.disturbed > 0);
  REQUIRE(planned.predicted.uncertain.size() == 1);
  CHECK(contains(planned.predicted.uncertain[0],
                 "go by times that other work on the machine disturbed"));
}

TEST_CASE("halo nodes cost what the table says of them", "[plan]") {
  // One layer of one device: ms = n / 10, and half as much for every halo node.
  ModelPlan plan("gat");
  Json table = Json::parse(R"({"npu": {"version": 1, "kind": "profile"},
                               "devices": [{"name": "cpu"}], "entries": []})");
  for (const int n : {1, 100}) {
    for (const int degree : {0, 20}) {
      table["entries"].push_back({{"device", "cpu"},
                                  {"first", 1},
                                  {"last", 7},
                                  {"n", n},
                                  {"m", n * degree},
                                  {"ms", 0.1 * n},
                                  {"halo_ms", 0.15 * n}});
    }
  }
  plan.set_table(table);
  plan.options.part_counts = {4};
  const GnnPlan planned = plan_of(plan.options);
  REQUIRE(planned.search.sweep.size() == 2);
  const SweepRow& row = planned.search.sweep[1];
  REQUIRE(row.halo > 0);
  // Both layers: all 60 nodes, and the halo.
  CHECK(near(row.makespan_ms, 2 * (6 + 0.05 * static_cast<double>(row.halo)), 1e-5));
  CHECK(near(planned.search.sweep[0].makespan_ms, 12, 1e-5));
}
