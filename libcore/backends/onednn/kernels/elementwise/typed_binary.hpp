// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/simd.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// target = op(a, b) in an iteration space, computed in the operands' own type as PyTorch does;
/// strides of 0 broadcast. Integers wrap around.
struct TypedBinary {
  static constexpr std::string_view kName = "typed-binary";
  enum class Op : std::uint8_t {
    // Integers only; the result has their type.
    kAdd,  ///< a + alpha * b
    kMultiply,
    kMinimum,
    kMaximum,
    kAbsoluteDifference,
    kBitAnd,
    kBitOr,
    kBitXor,
    // Numbers; the result has their type. Integers are not divided by zero.
    kFloorDivide,
    kTruncateDivide,
    kRemainder,  ///< of the sign of b
    kFmod,       ///< of the sign of a
    // Any type; the result is bool. What is not 0 is true.
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kLogicalAnd,
    kLogicalOr,
    kLogicalXor,
  };
  Op op = Op::kAdd;
  DType type = DType::kInt64;  ///< of both operands: float32, bfloat16, int32, int64 or bool
  std::int64_t alpha = 1;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> a_strides;
  std::vector<std::int64_t> b_strides;
  std::vector<std::int64_t> target_strides;
  std::string node{};  ///< for messages
  VectorIsa isa = VectorIsa::kAny;

  static bool supports(Op op, DType type) noexcept;
  static constexpr bool gives_bool(Op op) noexcept { return op >= Op::kEqual; }

  void simplify();

  struct Operands {
    const std::byte* a;
    const std::byte* b;
    std::byte* target;
  };
  static Operands bind(Addresses addresses) { return {addresses[0], addresses[1], addresses[2]}; }
  /// Throws Error kFailed if an integer would be divided by zero.
  void run(const Operands& operands) const;
};

/// target = condition ? a : b in an iteration space, whatever the elements are; strides of 0
/// broadcast.
struct Select {
  static constexpr std::string_view kName = "select";
  std::size_t element_size = 4;  ///< 1, 2, 4 or 8
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> condition_strides;  ///< of bytes
  std::vector<std::int64_t> a_strides;
  std::vector<std::int64_t> b_strides;
  std::vector<std::int64_t> target_strides;
  VectorIsa isa = VectorIsa::kAny;

  void simplify();

  struct Operands {
    const std::byte* condition;
    const std::byte* a;
    const std::byte* b;
    std::byte* target;
  };
  static Operands bind(Addresses addresses) {
    return {addresses[0], addresses[1], addresses[2], addresses[3]};
  }
  void run(const Operands& operands) const;
};

template <>
inline constexpr int kEnumerators<TypedBinary::Op> = 21;

NPU_FIELDS(TypedBinary, op, type, alpha, extents, a_strides, b_strides, target_strides, node, isa);
NPU_FIELDS(Select, element_size, extents, condition_strides, a_strides, b_strides, target_strides,
           isa);
Footprint footprint(const TypedBinary& kernel);
Footprint footprint(const Select& kernel);

}  // namespace npu::onednn
