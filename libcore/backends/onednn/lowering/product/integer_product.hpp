// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exact products of integers, whose results are int32.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/product/integer_product.hpp"
#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

/// Integers, and what stands for zero among them.
struct IntegerFactor {
  Value value{};  ///< uint8, int8 or int32
  std::optional<TensorId> zero;
  Shape shape;

  DType type() const { return value.type; }
};
/// A tensor of int32, whose zero is 0.
IntegerFactor wide_factor(Lowering& lowering, TensorId tensor);

/// Whether there is a zero point for each of `count` elements of a dimension, or for all at once;
/// nothing for anything else.
std::optional<bool> has_many_zeros(const Lowering& lowering, const IntegerFactor& factor,
                                   std::size_t dimension);
/// Both factors as bytes, or both as int32.
bool are_alike(const IntegerFactor& left, const IntegerFactor& right);

inline constexpr std::int64_t kMostIntegerInner = 1 << 22;
inline const NotFused kUnusualZeros{"zero points differ in other dimensions than rows and columns"};

/// The left factor, which lies as `source` does, as rows.
Value add_integer_rows(Lowering& lowering, const IntegerFactor& left, const Value& source,
                       const IntegerRows& call);
/// The product of rows and a right factor [batch, inner, columns] in `target`.
void add_integer_product(Lowering& lowering, const IntegerFactor& left, const IntegerFactor& right,
                         IntegerProduct call, const Value& rows, const Value& target);

/// Sets the result of a matrix product.
Lowered<Done> define_integer_product(Lowering& lowering, const GroupContext& context,
                                     const Node& node, IntegerFactor left, IntegerFactor right);
/// A matrix product of int32.
Lowered<Done> lower_integer_product(Lowering& lowering, const GroupContext& context,
                                    const BoundNode& node);

}  // namespace npu::onednn
