// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Reduces the middle dimension of a row-major [outer, count, inner] tensor of integers or truth.
struct IntegerReduction {
  static constexpr std::string_view kName = "integer-reduction";
  enum class Op : std::uint8_t {
    kSum,      ///< int64
    kProduct,  ///< int64
    kMinimum,  ///< of the operand's type
    kMaximum,  ///< of the operand's type
    kAny,      ///< bool
    kAll,      ///< bool
  };
  Op op = Op::kSum;
  DType type = DType::kInt64;  ///< int32, int64 or bool
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;

  DType result_type() const noexcept;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

/// Where the first greatest or smallest element stands along the middle dimension of a row-major
/// [outer, count, inner] tensor, as int64; NaN is both. The elements follow, if wanted.
struct ArgReduction {
  static constexpr std::string_view kName = "arg-reduction";
  DType type = DType::kFloat32;  ///< float32, bfloat16, int32, int64 or bool
  bool greatest = true;
  bool has_values = false;
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

/// Sums of all elements up to each along the middle dimension of a row-major [outer, count, inner]
/// tensor; those of floats are kept as float64.
struct RunningSum {
  static constexpr std::string_view kName = "running-sum";
  DType type = DType::kFloat32;  ///< float32, bfloat16 or int64
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

template <>
inline constexpr int kEnumerators<IntegerReduction::Op> = 6;

NPU_FIELDS(IntegerReduction, op, type, outer, count, inner);
NPU_FIELDS(ArgReduction, type, greatest, has_values, outer, count, inner);
NPU_FIELDS(RunningSum, type, outer, count, inner);
Footprint footprint(const IntegerReduction& kernel);
Footprint footprint(const ArgReduction& kernel);
Footprint footprint(const RunningSum& kernel);

}  // namespace npu::onednn
