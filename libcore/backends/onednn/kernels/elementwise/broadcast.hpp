// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

enum class BinaryOp : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kMinimum,
  kPower
};

/// target = op(a, alpha * b) in an iteration space, computed in float32; strides of 0 broadcast.
/// alpha is used by kAdd and kSubtract. kMaximum and kMinimum propagate NaN.
struct BroadcastBinary {
  static constexpr std::string_view kName = "broadcast";
  BinaryOp op = BinaryOp::kAdd;
  float alpha = 1.0F;
  DType type = DType::kFloat32;  ///< of a and the target
  DType b_type = DType::kFloat32;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> a_strides;
  std::vector<std::int64_t> b_strides;
  std::vector<std::int64_t> target_strides;

  void simplify();

  struct Operands {
    const std::byte* a;
    const std::byte* b;
    std::byte* target;
  };
  static Operands bind(Addresses addresses) { return {addresses[0], addresses[1], addresses[2]}; }
  void run(const Operands& operands) const;
};

template <>
inline constexpr int kEnumerators<BinaryOp> = 7;

NPU_FIELDS(BroadcastBinary, op, alpha, type, b_type, extents, a_strides, b_strides, target_strides);
Footprint footprint(const BroadcastBinary& kernel);

}  // namespace npu::onednn
