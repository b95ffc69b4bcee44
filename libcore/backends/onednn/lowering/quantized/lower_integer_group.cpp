// SPDX-License-Identifier: Apache-2.0
// MatMulInteger and ConvInteger of ONNX, with the conversions of their operands and the
// subtractions of their zero points: a product that reads the bytes themselves. O(nodes of the
// group).
#include <algorithm>
#include <cstdint>
#include <vector>

#include "lowering/convolution/convolution.hpp"
#include "lowering/engine/promotion.hpp"
#include "lowering/product/integer_product.hpp"
#include "lowering/quantized/quantized.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::onednn {

namespace {

/// A constant of int32 as bytes, if they hold it.
Lowered<IntegerFactor> narrowed(Lowering& lowering, TensorId tensor) {
  const auto numbers = lowering.known_numbers(tensor);
  const Shape& shape = lowering.shape(tensor);
  const auto is_held = [](double number) { return number >= -128 && number <= 127; };
  if (!numbers || !std::all_of(numbers->begin(), numbers->end(), is_held)) {
    return NotFused{"a factor is neither converted from 8 bits nor a constant that they hold"};
  }
  std::vector<std::int8_t> bytes;
  for (const double number : *numbers) bytes.push_back(static_cast<std::int8_t>(number));
  return IntegerFactor{known_values(lowering, shape, DType::kInt8, bytes), std::nullopt, shape};
}

/// What a factor of a group's product is made of.
Lowered<IntegerFactor> factor_of(Lowering& lowering, const KernelGroup& group, TensorId tensor) {
  const Graph& graph = lowering.graph();
  IntegerFactor factor;
  factor.shape = lowering.shape(tensor);
  const auto maker = [&](TensorId id) -> const Node* {
    const NodeId producer = graph.tensor(id).producer;
    const bool is_member =
        std::find(group.nodes.begin(), group.nodes.end(), producer) != group.nodes.end();
    return producer.valid() && is_member ? &graph.node(producer) : nullptr;
  };
  const Node* node = maker(tensor);
  if (node == nullptr) return narrowed(lowering, tensor);
  if (fusion_role(node->op_type) == FusionRole::kSub) {
    factor.zero = node->inputs[1];
    node = maker(node->inputs[0]);
  }
  if (node == nullptr || !is_byte(lowering.dtype(node->inputs[0]))) {
    return NotFused{"a factor is not converted from 8 bits"};
  }
  factor.value = lowering.stored(node->inputs[0]);
  return factor;
}

}  // namespace

Lowered<Done> lower_integer_group(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  const Node& product = lowering.graph().node(group.nodes.back());
  const auto left = factor_of(lowering, group, product.inputs[0]);
  if (!left) return left.refusal();
  const auto right = factor_of(lowering, group, product.inputs[1]);
  if (!right) return right.refusal();
  if (fusion_role(product.op_type) == FusionRole::kConv) {
    return define_integer_convolution(lowering, context, bound(lowering.graph(), product), *left,
                                      *right);
  }
  return define_integer_product(lowering, context, product, *left, *right);
}

}  // namespace npu::onednn
