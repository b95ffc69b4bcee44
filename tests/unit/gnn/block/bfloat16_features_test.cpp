// SPDX-License-Identifier: Apache-2.0
// What of the blocks of the models in testdata becomes bfloat16, and what stays.
#include "gnn/block/bfloat16_features.hpp"

#include <string>

#include "catch.hpp"
#include "gnn/block/linear_before_aggregate.hpp"
#include "gnn/model/staged_model.hpp"
#include "ops/op_catalogue.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

constexpr BlockShape kNarrowShape{100, 110, 1000};

Graph narrowed(const std::string& name, std::int32_t layer) {
  const StagedModel model =
      read_staged_model(std::string(NPU_TEST_DATA_DIR) + "/gnn/" + name + ".json");
  Graph block = model.block(layer, 1, model.layers.at(layer - 1).stage_count(), kNarrowShape);
  linear_before_aggregate(block, kNarrowShape);
  CHECK(bfloat16_features(block, load_staged_weights(model, {})));
  return block;
}

}  // namespace

TEST_CASE("linear layers read and write bfloat16, and sums stay float32", "[gnn][bfloat16]") {
  const auto [name, layer] = GENERATE(table<std::string, std::int32_t>(
      {{"graphsage", 1}, {"graphsage", 2}, {"gcn", 1}, {"gcn", 2}, {"gat", 1}, {"largest", 1}}));
  CAPTURE(name, layer);
  const Graph block = narrowed(name, layer);
  CHECK(block.tensor(block.find_tensor(kFeatureInput)).dtype == DType::kBFloat16);
  std::size_t products = 0;
  for (const Node& node : block.nodes()) {
    CAPTURE(node.name);
    const TensorInfo& result = block.tensor(node.outputs[0]);
    const FusionRole role = fusion_role(node.op_type);
    if (role == FusionRole::kLinear) {
      ++products;
      CHECK(result.dtype == DType::kBFloat16);
      for (const TensorId input : node.inputs) {
        CHECK(block.tensor(input).dtype == DType::kBFloat16);
      }
    }
    if (role == FusionRole::kIndexAdd || role == FusionRole::kScatterReduce) {
      CHECK(result.dtype == DType::kFloat32);
    }
    const bool is_rounded = result.name.ends_with("@bf16") || result.name.ends_with("@owned") ||
                            result.name.ends_with("@weights");
    if (result.dtype == DType::kBFloat16) CHECK(is_rounded);
  }
  CHECK(products > 0);
  for (const TensorId output : block.graph_outputs()) {
    CHECK(block.tensor(output).dtype == DType::kFloat32);
    CHECK(block.tensor(output).name == "out");
  }
}

TEST_CASE("a block without features stays as it is", "[gnn][bfloat16]") {
  const StagedModel model =
      read_staged_model(std::string(NPU_TEST_DATA_DIR) + "/gnn/graphsage.json");
  Graph block = model.block(1, 7, 7, kNarrowShape);
  CHECK_FALSE(bfloat16_features(block, load_staged_weights(model, {})));
}
