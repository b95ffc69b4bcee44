// SPDX-License-Identifier: Apache-2.0
// A plan runs with the files that it was made for, or not at all.
#include "gnn/run/plan_loader.hpp"

#include <algorithm>

#include "catch.hpp"
#include "gnn/make_plan.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kLoaderFolder = std::string(NPU_TEST_DATA_DIR) + "/gnn/";

/// A plan of two parts in a folder of its own.
class PlanFolder {
 public:
  PlanFolder() {
    MakePlanOptions options;
    options.graph = kLoaderFolder + "graph.mtx";
    options.model = kLoaderFolder + "gcn.json";
    options.profile = kLoaderFolder + "profile.json";
    options.part_counts = {2};
    options.output = run.plan = folder_ / "plan.json";
    Diagnostics diagnostics;
    plan = make_plan(options, diagnostics).plan;
    run.features = kLoaderFolder + "x.npy";
  }

  LoadedPlan load() {
    write_file_atomically(run.plan, write_document(to_json(plan)));
    PhaseTimes times;
    return load_plan(run, times);
  }

  /// The message and file of the refusal.
  std::string refusal() {
    try {
      load();
    } catch (const Error& error) {
      const std::string& file = error.location().file;
      return file.substr(file.rfind('/') + 1) + ": " + error.message();
    }
    return {};
  }

  std::string in_folder(const std::string& name, const std::string& text) {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }

  GnnPlan plan;
  RunPlanOptions run;

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a plan is loaded with all that it names", "[gnn][plan_loader]") {
  PlanFolder folder;
  const LoadedPlan loaded = folder.load();
  CHECK(loaded.plan == folder.plan);
  CHECK(loaded.nodes == 60);
  CHECK(loaded.parts.size() == static_cast<std::size_t>(loaded.plan.choice.k));
  CHECK(loaded.features.shape()[0] == 60);
  CHECK_FALSE(loaded.weights.empty());
  float edges = 0;
  for (std::int64_t v = 0; v < 60; ++v) edges += loaded.degree.as<float>()[v];
  CHECK(edges == static_cast<float>(loaded.plan.files.graph_edges));
}

TEST_CASE("files that the plan was not made for are refused", "[gnn][plan_loader]") {
  {
    PlanFolder folder;
    folder.run.plan = kLoaderFolder + "gcn.json";
    PhaseTimes times;
    CHECK_THROWS_WITH(load_plan(folder.run, times),
                      Catch::Matchers::Contains("expected a plan of npu-plan"));
  }
  {
    PlanFolder folder;
    folder.plan.files.model.clear();
    CHECK(folder.refusal().find("it can only be simulated (--simulate)") != std::string::npos);
  }
  {
    PlanFolder folder;
    folder.plan.files.model_hash = "0123456789abcdef";
    CHECK(folder.refusal() == "gcn.json: the plan was made for another version of the model");
  }
  {
    PlanFolder folder;
    folder.plan.choice.partition->hash = "0123456789abcdef";
    CHECK(folder.refusal() == "plan.part: the partition is not the one of the plan");
  }
  {
    PlanFolder folder;
    folder.plan.choice.partition->file.clear();
    CHECK(folder.refusal().find("the plan names no partition file") != std::string::npos);
  }
  {
    PlanFolder folder;
    folder.plan.choice.partition->file = folder.in_folder("short.part", "0\n1\n");
    CHECK(folder.refusal() == "short.part: the partition has 2 lines, the graph has 60 nodes");
  }
  {
    PlanFolder folder;
    folder.plan.choice.k = 1;
    CHECK(folder.refusal() == "plan.json: the plan has 2 subgraphs, k says 1");
  }
  {
    PlanFolder folder;
    folder.run.features = kLoaderFolder + "gcn.expected.npy";
    CHECK(folder.refusal().find("the features are [60, ") != std::string::npos);
  }
}

TEST_CASE("a plan that does not fit its graph is refused before it takes memory",
          "[gnn][plan_loader]") {
  {
    PlanFolder folder;
    folder.plan.choice.pad = 4294968296;
    CHECK(folder.refusal().starts_with("plan.json: expected a quantum in 1..32000 for subgraphs"));
  }
  {
    // Consistent in itself, but of other parts.
    PlanFolder folder;
    folder.plan.choice.subgraphs[0].size.n += 1;
    CHECK(folder.refusal().starts_with("plan.json: counted as "));
  }
  {
    PlanFolder folder;
    folder.plan.choice.subgraphs[1].size.m -= 1;
    CHECK(folder.refusal().starts_with("plan.json: counted as "));
  }
  {
    PlanFolder folder;
    folder.plan.choice.subgraphs[1].size.id = 2;
    for (PlanCluster& cluster : folder.plan.choice.clusters) {
      std::replace(cluster.subgraphs.begin(), cluster.subgraphs.end(), std::int64_t{1},
                   std::int64_t{2});
    }
    for (PlanAssignment& assignment : folder.plan.choice.assignments) {
      if (assignment.subgraph == 1) assignment.subgraph = 2;
    }
    CHECK(folder.refusal() == "plan.json: part 2 is not below k");
  }
  {
    PlanFolder folder;
    std::erase_if(folder.plan.choice.clusters,
                  [](const auto& cluster) { return cluster.layer == 2; });
    std::erase_if(folder.plan.choice.assignments,
                  [](const auto& entry) { return entry.layer == 2; });
    CHECK(folder.refusal() == "plan.json: the plan has 1 layers, the model 2");
  }
}
