// SPDX-License-Identifier: Apache-2.0
#pragma once

// The dtype that operands of several are computed in, as PyTorch has it.

#include <optional>
#include <string_view>
#include <vector>

#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

/// An argument that is a tensor or a number.
struct MixedOperand {
  std::optional<TensorId> tensor;
  Json number;  ///< where it is no tensor
};
MixedOperand mixed_argument(const Lowering& lowering, const BoundNode& node,
                            std::string_view argument);

/// The dtype that two are promoted to; refuses the node if this backend computes in none such.
DType promote(const Lowering& lowering, DType a, DType b);
/// The same for operands: numbers and tensors of rank 0 count only for the kind of number they are.
DType promoted_dtype(const Lowering& lowering, const std::vector<MixedOperand>& operands);

/// The type in which values of a dtype are computed with: int32 for smaller integers.
DType arithmetic_type(const Lowering& lowering, DType dtype);
/// A tensor converted to `dtype`, kept in `type`, or a number rounded to `dtype` with one element.
Value converted(Lowering& lowering, const MixedOperand& operand, DType dtype, DType type);
Shape shape_of(const Lowering& lowering, const MixedOperand& operand);

/// Any two types that Cast knows; the copy is no kernel of the node.
Value cast_value(Lowering& lowering, const Value& value, DType type);

/// `count` times a number, rounded to `dtype`, known when the program is loaded.
Value filled(Lowering& lowering, const Shape& shape, DType dtype, const Json& number);
/// Known elements, which have to be of `type`.
template <typename T>
Value known_values(Lowering& lowering, const Shape& shape, DType type,
                   const std::vector<T>& values) {
  const auto* bytes = static_cast<const std::byte*>(static_cast<const void*>(values.data()));
  return lowering.constant(type, shape, {bytes, bytes + values.size() * sizeof(T)});
}

}  // namespace npu::onednn
