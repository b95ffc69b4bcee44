// SPDX-License-Identifier: Apache-2.0
// Linear layers before aggregations: where they move, and where they stay.
#include "gnn/block/linear_before_aggregate.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

StagedModel model_of(const std::string& name) {
  return read_staged_model(std::string(NPU_TEST_DATA_DIR) + "/gnn/" + name + ".json");
}

std::vector<const Node*> nodes_of(const Graph& block, const std::string& op) {
  std::vector<const Node*> found;
  for (const Node& node : block.nodes()) {
    if (node.op_type == op) found.push_back(&node);
  }
  return found;
}

const Shape& result_shape(const Graph& block, const Node* node) {
  return block.tensor(node->outputs[0]).shape;
}

Graph whole_layer(const StagedModel& model, std::int32_t layer, const BlockShape& shape) {
  return model.block(layer, 1, model.layers.at(layer - 1).stage_count(), shape);
}

Graph moved(const StagedModel& model, std::int32_t layer, const BlockShape& shape) {
  Graph block = whole_layer(model, layer, shape);
  CHECK(linear_before_aggregate(block, shape));
  return block;
}

void check_stays(Graph block, const BlockShape& shape) {
  const std::string before = write_graph(block);
  CHECK_FALSE(linear_before_aggregate(block, shape));
  CHECK(write_graph(block) == before);
}

}  // namespace

TEST_CASE("a narrowing layer moves in front of its aggregation", "[runtime][gnn]") {
  const StagedModel model = model_of("graphsage");
  // Layer 2 goes from 8 to 4 columns: its two products of the same rows become one.
  const Graph narrowing = moved(model, 2, {100, 100, 1000});
  CHECK(nodes_of(narrowing, "aten.linear.default").size() == 1);
  CHECK(nodes_of(narrowing, "aten.slice.Tensor").size() == 2);
  for (const Node* gather : nodes_of(narrowing, "aten.embedding.default")) {
    CHECK(result_shape(narrowing, gather) == Shape{1000, 4});
  }
  // Layer 1 goes from 6 to 8 columns.
  check_stays(whole_layer(model, 1, {100, 100, 1000}), {100, 100, 1000});
  // As many halo rows as edges: each would be multiplied to be read once.
  check_stays(whole_layer(model, 2, {10, 1000, 1000}), {10, 1000, 1000});
}

TEST_CASE("owned rows share a product with few halo rows", "[runtime][gnn]") {
  const StagedModel model = model_of("graphsage");
  const Graph joined = moved(model, 2, {100, 110, 1000});
  const std::vector<const Node*> products = nodes_of(joined, "aten.linear.default");
  REQUIRE(products.size() == 1);
  CHECK(joined.tensor(products[0]->inputs[0]).shape == Shape{110, 8});
  CHECK(result_shape(joined, products[0]) == Shape{110, 8});
  // With six halo rows for each owned one a product of its own is cheaper.
  CHECK(nodes_of(moved(model, 2, {100, 700, 9000}), "aten.linear.default").size() == 2);
}

TEST_CASE("what else reads an aggregation keeps it where it is", "[runtime][gnn]") {
  const StagedModel model = model_of("gcn");
  const BlockShape shape{100, 100, 1000};
  Graph block = model.block(2, 1, 6, shape);
  const TensorInfo& sum = block.tensor(nodes_of(block, "aten.linear.default").at(0)->inputs[0]);
  Json document = Json::parse(write_graph(block));
  document["graph_outputs"].push_back(
      {{"name", sum.name}, {"shape", sum.shape}, {"dtype", "float32"}});
  check_stays(read_valid_graph(document.dump(), "block"), shape);
}

TEST_CASE("own rows that are added to a sum move with it", "[runtime][gnn]") {
  // GCN adds each node's own row to the sum of its neighbours' before the linear layer, from 8 to 4
  // columns: both are made of products then.
  const StagedModel model = model_of("gcn");
  for (const std::int64_t halo : {0, 10}) {
    const Graph block = moved(model, 2, {100, 100 + halo, 1000});
    const std::vector<const Node*> products = nodes_of(block, "aten.linear.default");
    REQUIRE(products.size() == 1);
    CHECK(result_shape(block, products[0]) == Shape{100 + halo, 4});
    for (const Node* sum : nodes_of(block, "aten.index_add.default")) {
      CHECK(result_shape(block, sum) == Shape{100, 4});
    }
  }
}
