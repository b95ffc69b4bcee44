// SPDX-License-Identifier: Apache-2.0
// Which values between partitions get a layout, by answers that are made up here, and which
// compiled partitions do not belong together.
#include "compile/boundary_layouts.hpp"

#include <utility>

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using npu::test::GraphBuilder;

namespace {

using Names = std::vector<std::string>;

/// a: x -> first; b: first -> second; c: first, second -> third.
Graph chain(bool is_output = false) {
  GraphBuilder builder;
  builder.input("x").node("first", "aten.relu.default", {"x"});
  builder.node("second", "aten.neg.default", {"first"});
  builder.node("third", "aten.add.Tensor", {"first", "second"}).output("third");
  if (is_output) builder.output("second");
  return builder.build();
}

PartitionPlan plan_of(const Graph& graph, const Names& devices) {
  PartitionPlan plan;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::vector<NodeId> nodes{NodeId{static_cast<std::int32_t>(i)}};
    plan.partitions.push_back({devices[i], nodes, find_boundary(graph, nodes)});
    plan.steps.push_back({PlanStep::Kind::kPartition, static_cast<std::int32_t>(i)});
  }
  return plan;
}

struct Question {
  std::size_t partition = 0;
  LayoutNames inputs;
  bool operator==(const Question&) const = default;
};

/// Answers by partition; notes what is asked.
struct Backends {
  std::vector<LayoutOffers> answers;
  std::vector<Question> asked = {};

  std::map<std::string, std::string> agree(const Graph& graph, const PartitionPlan& plan) {
    const auto agreed = agree_layouts(
        graph, plan, [](const std::string& device) { return device != "cpu"; },
        [&](std::size_t partition, const LayoutNames& inputs) {
          asked.push_back({partition, inputs});
          return answers[partition];
        });
    std::map<std::string, std::string> named;
    for (const auto& [id, layout] : agreed) named[graph.tensor(id).name] = layout;
    return named;
  }
};

/// Of partitions of a backend that does not matter.
std::vector<CompiledPartition> compiled(const std::vector<LayoutNames>& layouts) {
  std::vector<CompiledPartition> partitions;
  for (const LayoutNames& each : layouts) {
    partitions.emplace_back();
    partitions.back().layouts = each;
  }
  return partitions;
}

}  // namespace

TEST_CASE("a value gets the first layout of its producer that all readers take", "[layouts]") {
  const Graph graph = chain();
  const PartitionPlan plan = plan_of(graph, {"npu", "npu", "npu"});
  Backends backends{{{{"first", {"b:1", "b:2", "b:3"}}},
                     {{"first", {"b:3", "b:2"}}, {"second", {"b:4"}}},
                     {{"first", {"b:1", "b:2", "b:3"}}, {"second", {"b:4"}}}}};
  CHECK(backends.agree(graph, plan) == LayoutNames{{"first", "b:2"}, {"second", "b:4"}});
  // Each is asked once, and told what its inputs could come in by then.
  CHECK(backends.asked == std::vector<Question>{{0, {}},
                                                {1, {{"first", "b:1"}}},
                                                {2, {{"first", "b:2"}, {"second", "b:4"}}}});
}

TEST_CASE("a value that one reader does not take stays row-major", "[layouts]") {
  const Graph graph = chain();
  const PartitionPlan plan = plan_of(graph, {"npu", "npu", "npu"});
  Backends backends{{{{"first", {"b:1"}}}, {{"first", {"b:1"}}}, {{"second", {"b:1"}}}}};
  CHECK(backends.agree(graph, plan).empty());
}

TEST_CASE("outputs and what crosses to another device stay row-major", "[layouts]") {
  const LayoutOffers all{
      {"x", {"b:1"}}, {"first", {"b:1"}}, {"second", {"b:1"}}, {"third", {"b:1"}}};
  Backends backends{{all, all, all}};
  const Graph graph = chain(true);
  CHECK(backends.agree(graph, plan_of(graph, {"npu", "npu", "npu"})) ==
        LayoutNames{{"first", "b:1"}});
  const Graph inner = chain();
  CHECK(backends.agree(inner, plan_of(inner, {"npu", "gpu", "npu"})).empty());
  CHECK(backends.agree(inner, plan_of(inner, {"gpu", "npu", "npu"})) ==
        LayoutNames{{"second", "b:1"}});
  // Nobody is asked for a device that takes no part.
  backends.asked.clear();
  CHECK(backends.agree(inner, plan_of(inner, {"cpu", "cpu", "cpu"})).empty());
  CHECK(backends.asked.empty());
}

TEST_CASE("a transfer of what is on the device already moves nothing", "[layouts]") {
  // The plan of strategy contiguous: first goes to the gpu's reader of x alone, and to its own.
  GraphBuilder builder;
  builder.input("x").node("first", "aten.relu.default", {"x"});
  builder.node("second", "aten.neg.default", {"x"});
  builder.node("third", "aten.add.Tensor", {"first", "second"}).output("third");
  const Graph graph = builder.build();
  PartitionPlan plan = plan_of(graph, {"npu", "gpu", "npu"});
  const TensorId first = graph.find_tensor("first");
  const TensorId second = graph.find_tensor("second");
  plan.transfers.push_back({1, 2, "npu", {first, second}, 32});
  const LayoutOffers all{{"first", {"b:1"}}, {"second", {"b:1"}}};
  Backends backends{{all, all, all}};
  CHECK(backends.agree(graph, plan) == LayoutNames{{"first", "b:1"}});
  const auto made = compiled({{{"first", "b:1"}}, {}, {{"first", "b:1"}}});
  const auto refused = Catch::Contains("goes to another device and has to be row-major");
  CHECK_THROWS_WITH(check_layouts(graph, plan, made), !refused);  // backend "" is not there
  // A transfer to a device where nobody reads it moves it all the same.
  plan.transfers.push_back({0, 1, "gpu", {first}, 16});
  CHECK(backends.agree(graph, plan).empty());
  CHECK_THROWS_WITH(check_layouts(graph, plan, made), refused);
}

TEST_CASE("options without layouts are those that there were before", "[layouts]") {
  CHECK(compile_options_text("f32", {}) == R"({"precision":"f32"})");
  CHECK(compile_options_text("f32", {{"b", "l:2"}, {"a", "l:1"}}) ==
        R"({"precision":"f32","boundary_layouts":{"a":"l:1","b":"l:2"}})");
}

TEST_CASE("answers come back from the cache as they were", "[layouts]") {
  const LayoutOffers offers{{"a", {"l:1", "l:2"}}, {"b", {"l:3"}}};
  CHECK(read_offers_json(offers_json(offers)) == offers);
  CHECK(read_offers_json(Json::object()) == LayoutOffers());
  CHECK_FALSE(read_offers_json(Json::array()).has_value());
  CHECK_FALSE(read_offers_json(Json{{"a", {1}}}).has_value());
}

TEST_CASE("partitions with other layouts are refused", "[layouts]") {
  const Graph graph = chain();
  PartitionPlan plan = plan_of(graph, {"npu", "npu", "npu"});
  CHECK_NOTHROW(check_layouts(graph, plan, compiled({{}, {}, {}})));
  CHECK_THROWS_WITH(
      check_layouts(graph, plan, compiled({{{"first", "b:1"}}, {{"first", "b:1"}}, {}})),
      Catch::Contains("partition 2 has 'first' row-major, partition 0 in layout 'b:1'"));
  CHECK_THROWS_WITH(
      check_layouts(graph, plan, compiled({{}, {{"second", "b:1"}}, {{"second", "b:2"}}})),
      Catch::Contains("partition 2 has 'second' in layout 'b:2', partition 1 in layout 'b:1'"));
  CHECK_THROWS_WITH(check_layouts(graph, plan, compiled({{{"third", "b:1"}}, {}, {}})),
                    Catch::Contains("partition 0 has the layout of a tensor that is none of its"));
  plan.partitions[2].device = "cpu";
  plan.transfers.push_back({1, 2, "cpu", {graph.find_tensor("second")}, 16});
  CHECK_THROWS_WITH(
      check_layouts(graph, plan, compiled({{}, {{"second", "b:1"}}, {{"second", "b:1"}}})),
      Catch::Contains("which goes to another device and has to be row-major"));
}
