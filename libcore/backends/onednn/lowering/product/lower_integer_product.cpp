// SPDX-License-Identifier: Apache-2.0
// Exact matrix products of integers. Factors become rows and panels
// (kernels/product/integer_product.hpp); a constant right one does when a model is compiled. Bytes
// are read as they are, whatever their zero points are, which may be computed and differ by row or
// column; int32 is read at a quarter of the speed. O(1).
#include <algorithm>
#include <utility>
#include <vector>

#include "lowering/engine/promotion.hpp"
#include "lowering/product/integer_product.hpp"
#include "lowering/product/product.hpp"

namespace npu::onednn {

namespace {

/// Zero points as a vector of int32.
Value zeros_of(Lowering& lowering, const IntegerFactor& factor) {
  if (!factor.zero) return known_values(lowering, {1}, DType::kInt32, std::vector<std::int32_t>{0});
  const Value value =
      cast_value(lowering, lowering.plain(lowering.stored(*factor.zero)), DType::kInt32);
  return lowering.reshaped(value, {span_elements(value.layout)});
}

/// Words of int32.
Value words(Lowering& lowering, std::int64_t count) {
  return lowering.temporary(DType::kInt32, plain_layout({count}, DType::kInt32));
}

/// Words of four bytes of a row with its sum, or of int32.
std::int64_t row_words(DType type, std::int64_t inner) {
  return is_byte(type) ? padded_inner(type, inner) / 4 + 1 : inner;
}

/// The right factor [batch, inner, columns], row-major, as the product reads it.
Value add_panels(Lowering& lowering, const Value& right, const IntegerProduct& product) {
  if (!is_byte(right.type)) return right;
  IntegerPanels call{right.type, product.batch, product.inner, product.columns};
  const std::int64_t columns = call.panels() * IntegerPanels::kColumns;
  const Value target =
      words(lowering, product.batch * columns * row_words(call.type, product.inner));
  lowering.add_kernel({right}, target, call, KernelKind::kReorder);
  return target;
}

}  // namespace

IntegerFactor wide_factor(Lowering& lowering, TensorId tensor) {
  return {lowering.stored(tensor), std::nullopt, lowering.shape(tensor)};
}

std::optional<bool> has_many_zeros(const Lowering& lowering, const IntegerFactor& factor,
                                   std::size_t dimension) {
  if (!factor.zero) return false;
  Shape shape = lowering.shape(*factor.zero);
  const auto is_one = [](std::int64_t extent) { return extent == 1; };
  if (std::all_of(shape.begin(), shape.end(), is_one)) return false;
  if (shape.size() > factor.shape.size()) return std::nullopt;
  shape.insert(shape.begin(), factor.shape.size() - shape.size(), 1);
  if (shape[dimension] != factor.shape[dimension]) return std::nullopt;
  shape[dimension] = 1;
  if (!std::all_of(shape.begin(), shape.end(), is_one)) return std::nullopt;
  return true;
}

bool are_alike(const IntegerFactor& left, const IntegerFactor& right) {
  return is_byte(left.type()) == is_byte(right.type());
}

Value add_integer_rows(Lowering& lowering, const IntegerFactor& left, const Value& source,
                       const IntegerRows& call) {
  const Value target = words(lowering, call.rows() * row_words(call.type, call.inner()));
  const Value zero = is_byte(call.type) && left.zero ? zeros_of(lowering, left)
                                                     : zeros_of(lowering, IntegerFactor{});
  lowering.add_kernel({source, zero}, target, call, KernelKind::kReorder);
  return target;
}

void add_integer_product(Lowering& lowering, const IntegerFactor& left, const IntegerFactor& right,
                         IntegerProduct call, const Value& rows, const Value& target) {
  const Value panels = add_panels(lowering, right.value, call);
  std::vector<Value> reads{rows, panels};
  if (is_byte(right.type())) {
    call.type = DType::kUInt8;
    call.left_shift = left.type() == DType::kInt8 ? 128 : 0;
    call.right_shift = right.type() == DType::kUInt8 ? -128 : 0;
    call.uses_vnni = lowering.machine().exact_int8 && lowering.machine().has_avx512();
    reads.push_back(zeros_of(lowering, left));
    reads.push_back(zeros_of(lowering, right));
  } else {
    call.type = DType::kInt32;
  }
  lowering.add_kernel(reads, target, call);
}

Lowered<Done> define_integer_product(Lowering& lowering, const GroupContext& context,
                                     const Node& node, IntegerFactor left, IntegerFactor right) {
  if (!are_alike(left, right)) return NotFused{"one factor alone has 8 bits"};
  Shape result;
  if (left.shape.size() < 2 || right.shape.size() < 2) {
    if (is_byte(left.type()) || left.shape.empty() || right.shape.empty()) {
      return NotFused{"a factor is a vector"};
    }
  }
  const bool is_row = left.shape.size() == 1;
  const bool is_column = right.shape.size() == 1;
  if (is_row) left.shape.insert(left.shape.begin(), 1);
  if (is_column) right.shape.push_back(1);
  const Shape left_batch(left.shape.begin(), left.shape.end() - 2);
  const Shape right_batch(right.shape.begin(), right.shape.end() - 2);
  const Shape batch = broadcast_shape(lowering, left_batch, right_batch);
  const std::int64_t rows = left.shape[left.shape.size() - 2];
  const auto by_row = has_many_zeros(lowering, left, left.shape.size() - 2);
  const auto by_column = has_many_zeros(lowering, right, right.shape.size() - 1);
  if (!by_row || !by_column) return kUnusualZeros;
  left.value = lowering.reshaped(lowering.plain(left.value), left.shape);
  right.value = lowering.reshaped(lowering.plain(right.value), right.shape);
  share_batches(lowering, left.value, right.value, batch);
  left.value = lowering.plain(left.value);
  right.value = lowering.plain(right.value);
  const Shape a = dimensions(left.value.layout);
  const Shape b = dimensions(right.value.layout);
  IntegerProduct call;
  call.rows = a[a.size() - 2];
  call.inner = a.back();
  call.columns = b.back();
  for (std::size_t i = 0; i + 2 < b.size(); ++i) call.batch *= b[i];
  if (b[b.size() - 2] != call.inner) lowering.invalid("the factors do not fit each other");
  if (call.inner > kMostIntegerInner) return NotFused{"the inner dimension is too long"};
  if (*by_row && call.rows != rows) return kUnusualZeros;
  call.left_zeros = *by_row;
  call.right_zeros = *by_column;
  call.target_batch = call.rows * call.columns;
  call.target_row = call.columns;
  IntegerRows to_rows;
  to_rows.type = left.type();
  to_rows.batch = call.batch;
  to_rows.channels = call.inner;
  to_rows.extents[2] = call.rows;
  to_rows.windows[2] = call.rows;
  const Value left_rows =
      is_byte(left.type()) ? add_integer_rows(lowering, left, left.value, to_rows) : left.value;
  result = batch;
  if (!is_row) result.push_back(rows);
  if (!is_column) result.push_back(call.columns);
  const Value target = lowering.temporary(DType::kInt32, plain_layout(result, DType::kInt32));
  add_integer_product(lowering, left, right, call, left_rows, target);
  lowering.define_computed(context, node.outputs.front(), result, DType::kInt32, target);
  return Done{};
}

Lowered<Done> lower_integer_product(Lowering& lowering, const GroupContext& context,
                                    const BoundNode& node) {
  const Node& product = node.node();
  return define_integer_product(lowering, context, product,
                                wide_factor(lowering, product.inputs[0]),
                                wide_factor(lowering, product.inputs[1]));
}

}  // namespace npu::onednn
