// SPDX-License-Identifier: Apache-2.0
// The products of the models in testdata that are computed beside the programs of a block.
#include "gnn/block/find_products.hpp"

#include <string>
#include <variant>

#include "catch.hpp"
#include "gnn/block/block_steps.hpp"
#include "gnn/model/staged_model.hpp"

using namespace npu;
using namespace npu::gnn;

TEST_CASE("the products of a block take what alone reads them along", "[gnn][products]") {
  const auto [name, products, has_relu] =
      GENERATE(table<std::string, int, bool>({{"graphsage", 2, true}, {"gat", 1, false}}));
  CAPTURE(name);
  const StagedModel model =
      read_staged_model(std::string(NPU_TEST_DATA_DIR) + "/gnn/" + name + ".json");
  const auto last = model.layers.front().stage_count();
  const Graph graph = model.block(1, 1, last, {10, 10, 40});
  const auto weights = load_staged_weights(model, {});
  PackedWeights packed;
  OwnKernels own = find_reductions(graph, weights);
  add_products(graph, weights, packed, own);
  int count = 0;
  bool any_relu = false;
  for (const auto& [node, kernel] : own) {
    const auto* product = std::get_if<Product>(&kernel);
    if (product == nullptr) continue;
    ++count;
    any_relu = any_relu || product->relu;
    CHECK(product->weights->columns == graph.tensor(product->result).shape.back());
  }
  CHECK(count == products);
  CHECK(any_relu == has_relu);
  // No node is left that multiplies by weights, and nothing is computed twice.
  for (const NodeId left : nodes_in_programs(graph, own)) {
    CHECK(graph.node(left).op_type != "aten.linear.default");
  }
}
