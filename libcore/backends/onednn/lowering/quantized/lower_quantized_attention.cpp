// SPDX-License-Identifier: Apache-2.0
// A scaled dot product attention on integers: the products are int8 primitives of oneDNN, the
// softmax between them is float. Its result becomes integers of 16 bits in two bytes each, which
// stand in twice as many rows of one product (kernels/quantized/quantized_attention.hpp).
#include <cmath>
#include <limits>

#include "lowering/elementwise/elementwise.hpp"
#include "lowering/engine/promotion.hpp"
#include "lowering/norm/norm.hpp"
#include "lowering/quantized/quantized_product.hpp"

namespace npu::onednn {

namespace {

struct IntegerAttention {
  QuantizedSource query;
  QuantizedSource key;
  QuantizedSource value;
  Shape batch;
  std::int64_t planes = 1;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;        ///< of queries and keys
  std::int64_t value_width = 0;  ///< of values and the result
  float scale = 1.0F;

  Shape with_batch(std::int64_t rows, std::int64_t columns) const {
    Shape shape = batch;
    shape.insert(shape.end(), {rows, columns});
    return shape;
  }
};

Lowered<IntegerAttention> read_attention(Lowering& lowering, const BoundNode& node) {
  if (node.number("dropout_p") != 0.0 ||
      (node.find("enable_gqa") != nullptr && node.boolean("enable_gqa"))) {
    return NotFused{"the int8 kernel knows neither dropout nor grouped queries"};
  }
  IntegerAttention call;
  Shape shapes[3];
  QuantizedSource* sources[]{&call.query, &call.key, &call.value};
  constexpr const char* kNames[]{"query", "key", "value"};
  for (int i = 0; i < 3; ++i) {
    const TensorId tensor = tensor_argument(lowering, node, kNames[i]);
    auto source = quantized_source(lowering, tensor);
    if (!source) return source.refusal();
    *sources[i] = *std::move(source);
    shapes[i] = lowering.shape(tensor);
  }
  const auto& [query, key, value] = shapes;
  const std::size_t rank = query.size();
  if (rank < 2 || key.size() != rank || value.size() != rank) {
    return NotFused{"the operands of the attention have other ranks"};
  }
  call.batch = Shape(query.begin(), query.end() - 2);
  for (const Shape& shape : {key, value}) {
    if (Shape(shape.begin(), shape.end() - 2) != call.batch) {
      return NotFused{"the operands of the attention have other batches"};
    }
  }
  for (const std::int64_t extent : call.batch) call.planes *= extent;
  call.queries = query[rank - 2];
  call.keys = key[rank - 2];
  call.width = query.back();
  call.value_width = value.back();
  if (key.back() != call.width || value[rank - 2] != call.keys) {
    return NotFused{"the operands of the attention do not fit each other"};
  }
  constexpr std::int64_t kMostKeys = INT32_MAX / (255 * 128);
  if (call.keys > kMostKeys) return NotFused{"sums over so many keys do not fit 32 bits"};
  constexpr std::int64_t kMostMasked = std::int64_t{1} << 20;
  if (node.boolean("is_causal") &&
      call.queries > kMostMasked / std::max<std::int64_t>(1, call.keys)) {
    return NotFused{"the mask of the later keys would be a large constant"};
  }
  call.scale = node.is_none("scale") ? 1.0F / std::sqrt(static_cast<float>(call.width))
                                     : static_cast<float>(node.number("scale"));
  return call;
}

/// Planes of rows, row-major.
QuantizedSource in_planes(Lowering& lowering, QuantizedSource source, const IntegerAttention& call,
                          std::int64_t rows, std::int64_t width) {
  source.value = lowering.reshaped(lowering.plain(source.value), {call.planes, rows, width});
  return source;
}

/// -Inf where a query would look ahead.
Value causal_mask(Lowering& lowering, const IntegerAttention& call) {
  std::vector<float> mask(static_cast<std::size_t>(call.queries * call.keys), 0.0F);
  for (std::int64_t row = 0; row < call.queries; ++row) {
    for (std::int64_t column = row + 1; column < call.keys; ++column) {
      mask[static_cast<std::size_t>(row * call.keys + column)] =
          -std::numeric_limits<float>::infinity();
    }
  }
  return known_values(lowering, {call.queries, call.keys}, DType::kFloat32, mask);
}

/// The scores with what is added to them.
Lowered<Value> masked(Lowering& lowering, const BoundNode& node, const IntegerAttention& call,
                      const Value& scores) {
  const auto mask = node.tensor("attn_mask");
  const bool is_causal = node.boolean("is_causal");
  if (!mask && !is_causal) return scores;
  const Shape shape = call.with_batch(call.queries, call.keys);
  if (mask && (is_causal || lowering.dtype(*mask) != DType::kFloat32 ||
               broadcast_shape(lowering, lowering.shape(*mask), shape) != shape)) {
    return NotFused{"the mask of the attention is unusual"};
  }
  const Value added = mask ? lowering.strided(lowering.operand(*mask, DType::kFloat32))
                           : causal_mask(lowering, call);
  return lowering.reshaped(
      lowering.plain(
          add_binary(lowering, BinaryOp::kAdd, lowering.reshaped(scores, shape), added, 1.0F)),
      dimensions(scores.layout));
}

/// The means of the values as the target's numbers, or as floats.
AttentionSum sum_of(const IntegerAttention& call, const QuantizedOp& op,
                    const QuantizedSource& value) {
  AttentionSum sum;
  sum.to = DType::kFloat32;
  sum.rows = call.planes * call.queries;
  sum.count = call.keys;
  sum.width = call.value_width;
  sum.factor = value.scale;
  sum.source_zero = value.zero_point;
  if (!op.target) return sum;
  sum.to = op.target->type;
  sum.factor = value.scale / op.target->scale;
  sum.zero = op.target->zero_point;
  sum.least = op.target->least;
  sum.most = op.target->most;
  return sum;
}

}  // namespace

Lowered<Value> add_quantized_attention(Lowering& lowering, const QuantizedOp& op) {
  if (!lowering.machine().exact_int8) return kNoExactInt8;
  if (!op.steps.empty()) return NotFused{"the kernel has no functions behind an attention"};
  const BoundNode node = bound(lowering.graph(), *op.node);
  const auto read = read_attention(lowering, node);
  if (!read) return read.refusal();
  const IntegerAttention& call = *read;
  const auto query = in_planes(lowering, call.query, call, call.queries, call.width);
  auto key = in_planes(lowering, signed_source(lowering, call.key), call, call.keys, call.width);
  key.value = lowering.plain(swapped(key.value));
  const QuantizedSource value =
      in_planes(lowering, signed_source(lowering, call.value), call, call.keys, call.value_width);
  const auto scores =
      add_integer_product(lowering, query, key, call.query.scale * call.key.scale * call.scale);
  if (!scores) return scores.refusal();
  const auto with_mask = masked(lowering, node, call, *scores);
  if (!with_mask) return with_mask.refusal();
  const Value weights = add_softmax(lowering, *with_mask, 2, false);
  const Shape split{call.planes, 2 * call.queries, call.keys};
  const Value parts = lowering.temporary(DType::kUInt8, plain_layout(split, DType::kUInt8));
  lowering.add_kernel({weights}, parts, SplitRows{call.planes * call.queries, call.keys});
  // The zero point of the values is taken from their means.
  const auto products =
      add_integer_product(lowering, {parts, 1.0F, 0}, {value.value, 1.0F, 0}, 1.0F);
  if (!products) return products.refusal();
  const AttentionSum sum = sum_of(call, op, value);
  if (!std::isfinite(sum.factor)) return kFarScales;
  const Value result = lowering.temporary(
      sum.to, plain_layout({call.planes, call.queries, call.value_width}, sum.to));
  lowering.add_kernel({parts, *products}, result, sum);
  return lowering.reshaped(result, call.with_batch(call.queries, call.value_width));
}

}  // namespace npu::onednn
