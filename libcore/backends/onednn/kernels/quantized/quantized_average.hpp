// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/simd.hpp"
#include "kernels/sampling/pooling.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Averages of windows of a tensor of bytes with channels last: target = clamp(round(factor *
/// (sum of source - zero)/ divisor) + zero). Missing dimensions in front have one window.
struct QuantizedAverage {
  static constexpr std::string_view kName = "quantized-average";
  DType from = DType::kUInt8;  ///< uint8 or int8, as `to`
  DType to = DType::kUInt8;
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t extents[3]{1, 1, 1};
  std::array<std::vector<Window>, 3> windows{{{{0, 1, 1}}, {{0, 1, 1}}, {{0, 1, 1}}}};
  std::int64_t divisor_override = 0;  ///< 0: the product of the windows' divisors
  float factor = 1.0F;
  std::int64_t source_zero = 0;
  std::int64_t zero = 0;
  std::int64_t least = 0;
  std::int64_t most = 255;
  VectorIsa isa = VectorIsa::kAny;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

NPU_FIELDS(QuantizedAverage, from, to, batch, channels, extents, windows, divisor_override, factor,
           source_zero, zero, least, most, isa);
Footprint footprint(const QuantizedAverage& kernel);

}  // namespace npu::onednn
