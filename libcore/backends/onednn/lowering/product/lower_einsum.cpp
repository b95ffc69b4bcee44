// SPDX-License-Identifier: Apache-2.0
// einsum of two operands: labels in both operands and the result are batches, those in both
// operands alone are contracted, and those of one operand are rows or columns. Each operand is
// permuted, which costs nothing, and reshaped to matrices, which costs a copy where its strides do
// not allow it; then one matrix product. O(labels) besides.
#include "lowering/product/product.hpp"
#include "ops/einsum.hpp"

namespace npu::onednn {

namespace {

/// The value with its dimensions in the order of `to`; labels that it does not have are not there.
Value permuted(Lowering& lowering, const Value& value, const std::string& from,
               const std::string& to) {
  if (from.empty()) return value;
  Value result = lowering.strided(value);
  std::vector<int> permutation(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) permutation[i] = static_cast<int>(to.find(from[i]));
  result.layout = result.layout.permute_axes(permutation);
  return result;
}

}  // namespace

Lowered<Done> lower_einsum(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  std::vector<Shape> shapes;
  for (const TensorId id : tensors) {
    lowering.require_float("tensors", id);
    if (lowering.dtype(id) != lowering.dtype(tensors[0])) {
      lowering.refuse("tensors", "their dtypes differ");
    }
    shapes.push_back(lowering.shape(id));
  }
  std::string reason;
  const auto einsum = read_einsum_product(node.string("equation"), shapes, reason);
  if (!einsum) lowering.refuse("equation", reason);
  const DType dtype = lowering.dtype(tensors[0]);
  const Shape shape = einsum->shape_of(einsum->result);
  lowering.check_result(lowering.result(), shape, dtype);
  const auto matrix = [&](std::size_t i, const std::string& order, const Shape& as) {
    const Value value = permuted(lowering, lowering.operand(tensors[i], context.compute_type),
                                 einsum->operands[i], order);
    return lowering.reshaped(value, as);
  };
  const std::string& batch = einsum->batch;
  const std::string& rows = einsum->rows;
  const std::string& columns = einsum->columns;
  const std::string& inner = einsum->inner;
  const std::int64_t planes = einsum->count_of(batch);
  const std::int64_t m = einsum->count_of(rows);
  const std::int64_t n = einsum->count_of(columns);
  const std::int64_t k = einsum->count_of(inner);
  MatmulCall call;
  call.type = context.compute_type;
  call.a = matrix(0, batch + rows + inner, {planes, m, k});
  call.b = matrix(1, batch + inner + columns, {planes, k, n});
  // What the product gives, with its dimensions where the result has them.
  const std::string made = batch + rows + columns;
  if (context.has_epilogue() && made != einsum->result) {
    return NotFused{"the product's dimensions are in another order than the result's"};
  }
  const auto product = add_matmul(lowering, context, call);
  if (!product) return product.refusal();
  const Value value =
      permuted(lowering, lowering.reshaped(*product, einsum->shape_of(made)), made, einsum->result);
  lowering.define_computed(context, lowering.result(), shape, dtype, value);
  return Done{};
}

}  // namespace npu::onednn
