// SPDX-License-Identifier: Apache-2.0
// The document of a plan: round trips are exact to the byte, and every fault is located.
#include "gnn/plan/document/plan_document.hpp"

#include "catch.hpp"
#include "gnn/make_plan.hpp"
#include "gnn/plan/plan_report.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kDocumentFolder = std::string(NPU_TEST_DATA_DIR) + "/gnn/";

GnnPlan planned(MakePlanOptions options) {
  options.profile = kDocumentFolder + (options.graph.empty() ? "published.json" : "profile.json");
  Diagnostics diagnostics;
  return make_plan(options, diagnostics).plan;
}

MakePlanOptions of_graph() {
  MakePlanOptions options;
  options.graph = kDocumentFolder + "graph.mtx";
  options.model = kDocumentFolder + "graphsage.json";
  options.part_counts = {3};
  options.pad = 16;
  return options;
}

MakePlanOptions of_subgraphs() {
  MakePlanOptions options;
  options.subgraphs = kDocumentFolder + "subgraphs.json";
  options.settings.transfers = false;
  return options;
}

// "PLACE: TEXT" of what is wrong.
std::string fault(const Json& document) {
  try {
    plan_from_json(document, "plan.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    CHECK(error.location().file == "plan.json");
    return error.location().pointer + ": " + error.message();
  }
  return {};
}

}  // namespace

TEST_CASE("a plan that is written and read is the same plan", "[plan][plan_document]") {
  MakePlanOptions settings = of_graph();
  settings.graph_options.undirected = true;
  settings.settings.excluded = {{"npu", {1, 2}}, {"cpu", {3}}};
  settings.settings.memory = {{"cpu", 3'000'000}};
  settings.settings.resources = {{"gpu", "host"}};
  settings.settings.devices = {"cpu", "gpu", "npu"};
  settings.settings.top_k = 5;
  MakePlanOptions greedy = of_subgraphs();
  greedy.settings.greedy = true;
  greedy.settings.ratios = {0.25, 0.5};
  greedy.settings.interpolation = Interpolation::kNearest;
  for (const MakePlanOptions& options : {of_graph(), settings, of_subgraphs(), greedy}) {
    const GnnPlan plan = planned(options);
    const Json document = to_json(plan);
    CHECK(is_plan(document));
    const GnnPlan again = plan_from_json(document, "plan.json");
    CHECK(again == plan);
    CHECK(to_json(again).dump() == document.dump());
    CHECK(format_plan_report(again) == format_plan_report(plan));
    // Through text, as files are.
    CHECK(plan_from_json(parse_json(document.dump(), "plan.json"), "plan.json") == plan);
  }
}

TEST_CASE("a plan says who has cut the graph", "[plan][plan_document]") {
  GnnPlan plan = planned(of_graph());
  REQUIRE(plan.choice.partition);
  const Json alone = to_json(plan).at("partition");
  CHECK_FALSE(alone.contains("partitioner"));
  CHECK_FALSE(alone.contains("processes"));
  plan.choice.partition->partitioner = "ptscotch";
  plan.choice.partition->processes = 3;
  const Json document = to_json(plan);
  CHECK(document.at("partition").at("partitioner") == "ptscotch");
  CHECK(document.at("partition").at("processes") == 3);
  const GnnPlan again = plan_from_json(document, "plan.json");
  CHECK(again == plan);
  CHECK(to_json(again).dump() == document.dump());
  CHECK(format_plan_report(again).find("parts by ptscotch in 3 processes\n") != std::string::npos);
  Json wrong = document;
  wrong.at("partition")["processes"] = -1;
  CHECK(fault(wrong).find("/partition/processes: expected an integer") == 0);
  wrong = document;
  wrong.at("partition")["partitioner"] = 7;
  CHECK(fault(wrong).find("/partition/partitioner: expected") == 0);
}

TEST_CASE("settings of devices are written as options take them", "[plan][plan_document]") {
  MakePlanOptions options = of_graph();
  options.settings.excluded = {{"npu", {1, 2}}};
  options.settings.memory = {{"cpu", 3'000'000}};
  options.settings.resources = {{"gpu", "host"}};
  const Json settings = to_json(planned(options)).at("options");
  CHECK(settings.at("exclude") == Json{"npu=1,2"});
  CHECK(settings.at("memory") == Json{"cpu=3000000"});
  CHECK(settings.at("resource") == Json{"gpu=host"});
}

TEST_CASE("what a plan lacks or has wrong is named with its place", "[plan][plan_document]") {
  const Json good = to_json(planned(of_graph()));
  CHECK(fault(good).empty());
  const auto changed = [&](const char* pointer, const Json& value) {
    Json document = good;
    document[Json::json_pointer(pointer)] = value;
    return fault(document);
  };
  CHECK(fault(Json::object()) == "/npu/kind: expected a document of kind 'plan'");
  CHECK(changed("/npu/kind", "profile") == "/npu/kind: expected a document of kind 'plan'");
  CHECK(changed("/npu/version", 2) == "/npu/version: expected version 1");
  CHECK(changed("/k", "three") == "/k: expected an integer 'k' in 1..2147483647, found string");
  CHECK(changed("/clusters/0/pep", -1) ==
        "/clusters/0/pep: expected an integer 'pep' in 0..2147483647, found integer");
  CHECK(changed("/peps/0/segments/0/first", 0) ==
        "/peps/0/segments/0/first: expected an integer 'first' in 1..64, found integer");
  CHECK(changed("/clusters/0/subgraphs", Json{0, "one"}) ==
        "/clusters/0/subgraphs: expected integers, found \"one\"");
  CHECK(changed("/options/exclude", Json{"npu"}) ==
        "/options/exclude: expected DEVICE=VALUE, found 'npu'");
  CHECK(changed("/options/memory", Json{"npu=lots"}) ==
        "/options/memory: expected positive numbers behind '=', found 'lots'");
  CHECK(changed("/loads_ms/cpu", "none") == "/loads_ms: expected numbers, found \"none\"");
  for (const char* key : {"options", "devices", "k", "partition", "pad", "subgraphs", "peps",
                          "clusters", "assignments", "loads_ms", "max_load_ms", "load_bound_ms",
                          "makespan_ms", "lower_bound_ms", "gap", "bounds"}) {
    Json document = good;
    document.erase(key);
    CAPTURE(key);
    CHECK(fault(document) ==
          ": the plan is not complete: the key '" + std::string(key) + "' is missing");
  }
}

TEST_CASE("what only tables show may be missing", "[plan][plan_document]") {
  Json document = to_json(planned(of_graph()));
  for (const char* key :
       {"load_gap", "least_load_ms", "least_load_gap", "best_single_device", "speedup",
        "plan_switches", "extrapolated", "compiles", "sweep", "rejected", "legal_classes"}) {
    document.erase(key);
  }
  const GnnPlan plan = plan_from_json(document, "plan.json");
  CHECK(plan.proof.least_load_ms == plan.predicted.max_load_ms);
  CHECK_FALSE(plan.predicted.best_single_device);
}

TEST_CASE("files lie beside the document that names them", "[plan][plan_document]") {
  CHECK(path_beside("folder/plan.json", "graph.mtx") == "folder/graph.mtx");
  CHECK(path_beside("plan.json", "graph.mtx") == "graph.mtx");
  CHECK(path_beside("folder/plan.json", "/data/graph.mtx") == "/data/graph.mtx");
  CHECK(path_beside("folder/plan.json", "").empty());
}
