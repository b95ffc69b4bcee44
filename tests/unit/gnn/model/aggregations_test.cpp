// SPDX-License-Identifier: Apache-2.0
// What is an aggregation over edges: of the models in testdata, and of blocks that come close.
#include "gnn/model/aggregations.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "gnn/model/staged_model.hpp"
#include "graph_builder.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

constexpr BlockShape kShape{10, 25, 40};

Graph layer_of(const std::string& name) {
  const StagedModel model =
      read_staged_model(std::string(NPU_TEST_DATA_DIR) + "/gnn/" + name + ".json");
  return model.block(1, 1, model.layers.front().stage_count(), kShape);
}

std::vector<Aggregation> aggregations_of(const Graph& graph) {
  std::vector<Aggregation> found;
  for (const auto& [node, aggregation] : find_aggregations(graph)) found.push_back(aggregation);
  return found;
}

// Rows of x [10, 6] that are gathered at the sources of 40 edges and given by target.
test::GraphBuilder gathered() {
  test::GraphBuilder block;
  block.input("x", {10, 6}).input("edge_index", {2, 40}, "int64");
  block.node("s", "aten.select.int", {"edge_index"}, {40}, {{"dim", 0}, {"index", 0}}, "int64");
  block.node("t", "aten.select.int", {"edge_index"}, {40}, {{"dim", 0}, {"index", 1}}, "int64");
  block.node("rows", "aten.index_select.default", {"x", "s"}, {40, 6}, {{"dim", 0}});
  block.node("zeros", "aten.zeros.default", {}, {10, 6}, {{"size", {10, 6}}});
  return block;
}

}  // namespace

TEST_CASE("a mean is one aggregation, and counts another", "[gnn][aggregations]") {
  const Graph graph = layer_of("graphsage");
  const std::vector<Aggregation> found = aggregations_of(graph);
  REQUIRE(found.size() == 2);
  const bool counts_first = !found[0].rows.valid();
  const Aggregation& mean = found[counts_first ? 1 : 0];
  CHECK_FALSE(found[counts_first ? 0 : 1].rows.valid());
  CHECK(mean.aggregate == Aggregate::kMean);
  CHECK(mean.gathers);
  CHECK(graph.tensor(mean.rows).name == kFeatureInput);
  CHECK_FALSE(mean.factor.valid());
  CHECK(graph.tensor(mean.total).name == "sum");
  CHECK(graph.tensor(mean.result).name == "mean");
}

TEST_CASE("a factor by edge is told from the rows", "[gnn][aggregations]") {
  const Graph graph = layer_of("gcn");
  const std::vector<Aggregation> found = aggregations_of(graph);
  REQUIRE(found.size() == 1);
  CHECK(found[0].aggregate == Aggregate::kSum);
  CHECK(found[0].gathers);
  CHECK(graph.tensor(found[0].factor).shape == Shape{40, 1});
}

TEST_CASE("the sums and the largest of scores are aggregations of values by edge",
          "[gnn][aggregations]") {
  const Graph graph = layer_of("gat");
  std::size_t by_edge = 0;
  std::size_t largest = 0;
  for (const Aggregation& each : aggregations_of(graph)) {
    by_edge += each.gathers ? 0 : 1;
    largest += each.aggregate == Aggregate::kLargest ? 1 : 0;
  }
  CHECK(by_edge == 2);
  CHECK(largest == 1);
  CHECK(aggregations_of(graph).size() == 3);
}

TEST_CASE("what only comes close is none", "[gnn][aggregations]") {
  const auto sum = [](const Json& attrs, const std::string& into, const std::string& by,
                      const std::string& of) {
    test::GraphBuilder block = gathered();
    block.node("ones", "aten.ones.default", {}, {10, 6}, {{"size", {10, 6}}});
    block.node("sum", "aten.index_add.default", {into, by, of}, {10, 6}, attrs).output("sum");
    return aggregations_of(block.build()).size();
  };
  CHECK(sum({{"dim", 0}}, "zeros", "t", "rows") == 1);
  CHECK(sum({{"dim", 0}, {"alpha", 2}}, "zeros", "t", "rows") == 0);
  CHECK(sum({{"dim", 0}}, "ones", "t", "rows") == 0);
  CHECK(sum({{"dim", 0}}, "x", "t", "rows") == 0);
  CHECK(sum({{"dim", 0}}, "zeros", "s", "rows") == 0);
}

TEST_CASE("the largest of rows needs every element's target", "[gnn][aggregations]") {
  const auto largest = [](const Json& attrs, const Shape& column) {
    test::GraphBuilder block = gathered();
    const std::int64_t dim = column[0] == 40 ? 1 : 0;
    block.node("column", "aten.unsqueeze.default", {"t"}, column, {{"dim", dim}}, "int64");
    block.node("places", "aten.expand.default", {"column"}, {40, 6}, {{"size", {40, 6}}}, "int64");
    block.node("most", "aten.scatter_reduce.two", {"zeros", "places", "rows"}, {10, 6}, attrs)
        .output("most");
    return aggregations_of(block.build()).size();
  };
  const Json amax = {{"dim", 0}, {"reduce", "amax"}, {"include_self", false}};
  CHECK(largest(amax, {40, 1}) == 1);
  CHECK(largest({{"dim", 0}, {"reduce", "amin"}, {"include_self", false}}, {40, 1}) == 0);
  CHECK(largest({{"dim", 0}, {"reduce", "amax"}, {"include_self", true}}, {40, 1}) == 0);
}

TEST_CASE("columns and first rows are read in place", "[gnn][aggregations]") {
  test::GraphBuilder block;
  block.input("x", {10, 6});
  block.node("y", "aten.relu.default", {"x"});
  block.node("columns", "aten.slice.Tensor", {"y"}, {10, 2},
             {{"dim", 1}, {"start", 3}, {"end", 5}});
  block.node("first", "aten.slice.Tensor", {"y"}, {4, 6}, {{"dim", 0}, {"start", 0}, {"end", 4}});
  block.node("later", "aten.slice.Tensor", {"y"}, {4, 6}, {{"dim", 0}, {"start", 2}, {"end", 6}});
  block.output("columns").output("first").output("later");
  const Graph graph = block.build();
  const EdgeMatcher matcher(graph);
  const TensorId y = graph.find_tensor("y");
  const EdgeMatcher::Columns columns = matcher.columns_of(graph.find_tensor("columns"));
  CHECK(columns.tensor == y);
  CHECK(columns.first == 3);
  CHECK(columns.stride == 6);
  CHECK(matcher.columns_of(y).tensor == y);
  CHECK(matcher.through_first_rows(graph.find_tensor("first")) == y);
  CHECK(matcher.through_first_rows(graph.find_tensor("later")) == graph.find_tensor("later"));
  CHECK(matcher.edges() == -1);
}
