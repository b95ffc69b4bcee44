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
#include "kernels/sampling/resample.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Resamples the last dimensions of [batch, extents.., channels] of bytes: target = clamp(round(
/// factor * sum of weight * (source - zero)) + zero), with the taps of Resample. What leaves the
/// numbers as they are only moves them.
struct QuantizedResample {
  static constexpr std::string_view kName = "quantized-resample";
  DType from = DType::kUInt8;  ///< uint8 or int8, as `to`
  DType to = DType::kUInt8;
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t extents[3]{1, 1, 1};
  std::int64_t width[3]{1, 1, 1};  ///< taps of one element of the result
  std::array<std::vector<Tap>, 3> taps{{{Tap{}}, {Tap{}}, {Tap{}}}};
  float factor = 1.0F;
  std::int64_t source_zero = 0;
  std::int64_t zero = 0;
  std::int64_t least = 0;
  std::int64_t most = 255;
  VectorIsa isa = VectorIsa::kAny;

  /// The extent of the result.
  std::int64_t target_extent(int i) const {
    return static_cast<std::int64_t>(taps[i].size()) / width[i];
  }
  /// True if every number of the result is one of the source.
  bool only_moves() const;

  using Operands = UnaryOperands;
  static Operands bind(Addresses addresses) { return bind_unary(addresses); }
  void run(const Operands& operands) const;
};

NPU_FIELDS(QuantizedResample, from, to, batch, channels, extents, width, taps, factor, source_zero,
           zero, least, most, isa);
Footprint footprint(const QuantizedResample& kernel);

}  // namespace npu::onednn
