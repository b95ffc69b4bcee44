// SPDX-License-Identifier: Apache-2.0
// A plan whose sections do not fit each other is refused before anything is read or made for it.
#include "gnn/plan/document/check_plan.hpp"

#include <functional>

#include "catch.hpp"
#include "gnn/make_plan.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const GnnPlan& sound_plan() {
  static const GnnPlan plan = [] {
    const std::string folder = std::string(NPU_TEST_DATA_DIR) + "/gnn/";
    MakePlanOptions options;
    options.graph = folder + "graph.mtx";
    options.model = folder + "graphsage.json";
    options.profile = folder + "profile.json";
    options.part_counts = {4};
    options.pad = 16;
    Diagnostics diagnostics;
    return make_plan(options, diagnostics).plan;
  }();
  return plan;
}

// "PLACE: TEXT" of what is wrong with the changed plan.
std::string fault(const std::function<void(GnnPlan&)>& change) {
  GnnPlan plan = sound_plan();
  change(plan);
  try {
    check_plan(plan, "plan.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidGraph);
    return error.location().pointer + ": " + error.message();
  }
  return {};
}

// As long as `text`, so that messages with sizes of parts need not be spelled out.
bool begins(const std::string& message, const std::string& text) {
  INFO(message);
  return message.starts_with(text);
}

}  // namespace

TEST_CASE("a quantum that is of no use is refused", "[plan][check_plan]") {
  CHECK(largest_pad(60, 320) == 32000);
  CHECK(largest_pad(60, 100'000) == 100'000);
  CHECK(padded_size(0, 16) == 16);
  CHECK(padded_size(17, 16) == 32);
  REQUIRE(sound_plan().choice.k == 4);
  CHECK(fault([](GnnPlan&) {}).empty());
  const auto padded = [](std::int64_t pad) {
    return fault([pad](GnnPlan& plan) {
      plan.choice.pad = pad;
      for (PlanSubgraph& subgraph : plan.choice.subgraphs) {
        subgraph.padded_nodes = padded_size(subgraph.size.n, pad);
        subgraph.padded_edges = padded_size(subgraph.size.m, pad);
      }
    });
  };
  CHECK(padded(32000).empty());
  CHECK(begins(padded(32001), "/pad: expected a quantum in 1..32000 for subgraphs of up to "));
  CHECK(begins(padded(4294968296), "/pad: "));
  CHECK(begins(fault([](GnnPlan& plan) { plan.choice.pad = 0; }), "/pad: "));
  CHECK(begins(fault([](GnnPlan& plan) { plan.choice.subgraphs[1].padded_nodes += 16; }),
               "/subgraphs/1/n_pad: expected "));
  CHECK(begins(fault([](GnnPlan& plan) { plan.choice.subgraphs[1].padded_edges = 1; }),
               "/subgraphs/1/m_pad: expected "));
}

TEST_CASE("every part is computed once in every layer, by devices that there are",
          "[plan][check_plan]") {
  CHECK(begins(fault([](GnnPlan& plan) { plan.choice.k = 5; }),
               "/k: the plan has 4 subgraphs, k says 5"));
  CHECK(fault([](GnnPlan& plan) { plan.choice.subgraphs[2].size.id = 1; }) ==
        "/subgraphs/2: subgraph 1 is listed twice");
  CHECK(fault([](GnnPlan& plan) {
          plan.choice.subgraphs[2].size.halo = plan.choice.subgraphs[2].size.n;
        }) == "/subgraphs/2: the subgraph owns no node");
  CHECK(fault([](GnnPlan& plan) { plan.devices[1].name = plan.devices[0].name; }) ==
        "/devices/1: device 'cpu' is listed twice");
  CHECK(fault([](GnnPlan& plan) { plan.choice.device_plans[0].id = 3; }) ==
        "/peps/0/id: expected 0, its place in the list");
  CHECK(fault([](GnnPlan& plan) { plan.choice.device_plans[0].segments.clear(); }) ==
        "/peps/0/segments: the plan has no segments");
  CHECK(fault([](GnnPlan& plan) { plan.choice.device_plans[0].segments[0].first = 2; }) ==
        "/peps/0/segments/0: segments are not contiguous from stage 1");
  CHECK(fault([](GnnPlan& plan) {
          plan.choice.device_plans[0].segments[0].shares[0].device = "tpu";
        }) == "/peps/0/segments/0: device 'tpu' is not in the plan's devices");
  CHECK(fault([](GnnPlan& plan) {
          plan.choice.device_plans[0].segments[0].shares[0].ratio = 0.25;
        }) == "/peps/0/segments/0: the ratios of a segment do not sum up to 1");
  CHECK(fault([](GnnPlan& plan) { plan.choice.clusters[0].device_plan = 1000; }) ==
        "/clusters/0/pep: there is no device plan 1000");
  CHECK(fault([](GnnPlan& plan) { plan.choice.clusters[0].subgraphs[0] = 1000; }) ==
        "/clusters/0: subgraph 1000 is unknown");
  CHECK(begins(fault([](GnnPlan& plan) {
                 plan.choice.clusters[0].subgraphs.push_back(plan.choice.clusters[0].subgraphs[0]);
               }),
               "/clusters/0: subgraph "));
  CHECK(begins(fault([](GnnPlan& plan) { plan.choice.clusters[0].subgraphs.pop_back(); }),
               "/clusters: layer 1 has clusters for 3 of 4 subgraphs"));
  CHECK(fault([](GnnPlan& plan) { plan.choice.clusters.clear(); }) ==
        "/clusters: the plan has no clusters");
  CHECK(begins(fault([](GnnPlan& plan) { plan.choice.assignments[0].subgraph = 77; }),
               "/assignments/0: "));
  CHECK(
      begins(fault([](GnnPlan& plan) { plan.choice.assignments[1] = plan.choice.assignments[0]; }),
             "/assignments/1: "));
  CHECK(begins(fault([](GnnPlan& plan) { plan.choice.assignments.pop_back(); }),
               "/assignments: expected one for each of 4 subgraphs in each of 2 layers, found 7"));
  CHECK(begins(fault([](GnnPlan& plan) { plan.choice.assignments[0].device_plan = 1000; }),
               "/assignments/0/pep: the subgraph's cluster has device plan "));
  CHECK(begins(fault([](GnnPlan& plan) { plan.choice.device_plans.back().layer = 1; }),
               "/clusters/"));
}

TEST_CASE("whatever is changed in a plan, it is read or refused", "[plan][check_plan]") {
  const Json document = to_json(sound_plan());
  std::vector<Json::json_pointer> pointers;
  const std::function<void(const Json&, const Json::json_pointer&)> add =
      [&](const Json& json, const Json::json_pointer& at) {
        pointers.push_back(at);
        if (json.is_object()) {
          for (const auto& [key, value] : json.items()) add(value, at / key);
        } else if (json.is_array()) {
          for (std::size_t i = 0; i < json.size(); ++i) add(json[i], at / i);
        }
      };
  add(document, Json::json_pointer());
  const std::vector<Json> values{
      7, -1.5, "n", Json(), Json::array({"m"}), Json{{"name", 1}}, std::int64_t{1} << 60};
  for (std::size_t p = 0; p < pointers.size(); ++p) {
    const Json& value = values[p % values.size()];
    Json changed = document;
    changed[pointers[p]] = value;
    CAPTURE(pointers[p].to_string(), value.dump());
    // Anything but Error escapes, and fails the test.
    try {
      check_plan(plan_from_json(changed, "plan.json"), "plan.json");
    } catch (const Error& error) {
      CHECK_FALSE(error.message().empty());
    }
  }
}
