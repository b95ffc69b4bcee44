// SPDX-License-Identifier: Apache-2.0
// What is checked in a document that does not come from mincut, and the message if nothing can be
// checked. Corrupted proofs are in strategies/min_cut_test.cpp.
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "partition/placement/certificate.hpp"
#include "partition/plan_checks.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Graph partitioned(Strategy strategy) {
  Graph graph = graph_of(R"(
    input x
    a = relu(x) @npu
    b = relu(a) @cpu; output b)");
  graph.set_npu_member("target", *load_target("host").json);
  partition_graph(graph, {.strategy = strategy});
  return graph;
}

struct Checked {
  std::string lines;
  std::vector<std::string> errors;
};

Checked check(const Json& document) {
  Diagnostics diagnostics;
  Checked result;
  result.lines =
      check_certificate(read_valid_graph(document.dump(), "c.json"), roofline_cost(), diagnostics);
  result.errors = errors_of(diagnostics);
  return result;
}

Json document_of(Strategy strategy) { return Json::parse(write_graph(partitioned(strategy))); }

}  // namespace

TEST_CASE("check certificate: a plan without one is checked for its order and times") {
  const Checked checked = check(document_of(Strategy::kConvex));
  CHECK(checked.errors.empty());
  CHECK(checked.lines ==
        "plan: 2 partitions, 3 steps in a valid order\n"
        "times: those of the plan\n"
        "no certificate: only the strategy mincut writes one\n");
}

TEST_CASE("check certificate: a proof is followed to its bound") {
  const Checked checked = check(document_of(Strategy::kMinCut));
  CHECK(checked.errors.empty());
  CHECK(checked.lines.find("not above cpu alone\n") != std::string::npos);
  CHECK(checked.lines.find("cut: flow and cut are both ") != std::string::npos);
  CHECK(checked.lines.find("lower bound: ") != std::string::npos);
}

TEST_CASE("check certificate: what is missing or of the wrong kind") {
  const auto errors = [](Strategy strategy, const auto& change) {
    Json document = document_of(strategy);
    change(document["npu"]["partition"]);
    const Checked checked = check(document);
    CHECK(checked.lines.empty());
    return checked.errors;
  };
  using Errors = std::vector<std::string>;
  CHECK(errors(Strategy::kMinCut, [](Json& plan) { plan.erase("certificate"); }) ==
        Errors{"/npu/partition/certificate: expected an object"});
  CHECK(errors(Strategy::kConvex, [](Json& plan) { plan["metrics"]["predicted_us"] = "1"; }) ==
        Errors{"/npu/partition/metrics/predicted_us: expected a number"});
  CHECK(errors(Strategy::kConvex, [](Json& plan) { plan["cost"] = Json::object(); }) ==
        Errors{"/npu/partition/cost: the plan's times come from a table of npu-profile; "
               "give it with --profile FILE"});
  CHECK(errors(Strategy::kMinCut, [](Json& plan) { plan["certificate"].erase("lower_bound"); }) ==
        Errors{"/npu/partition/certificate/lower_bound: expected an integer"});
  CHECK(errors(Strategy::kMinCut, [](Json& plan) { plan["certificate"]["ticks_per_us"] = 10; }) ==
        Errors{"/npu/partition/certificate/ticks_per_us: expected 1000000"});
}
