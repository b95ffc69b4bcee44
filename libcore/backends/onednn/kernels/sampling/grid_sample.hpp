// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn {

/// Samples of planes [batch, channels, height, width] at positions that are computed: a grid
/// [batch, target height, target width, 2] has x and y from -1 to 1. float32, row-major.
struct GridSample {
  static constexpr std::string_view kName = "grid-sample";
  enum class Mode : std::uint8_t { kBilinear, kNearest, kBicubic };
  enum class Padding : std::uint8_t { kZeros, kBorder, kReflection };
  Mode mode = Mode::kBilinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;  ///< -1 and 1 are the middles of the outermost elements, else their
                               ///< outer edges
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t source_extent[2]{1, 1};
  std::int64_t target_extent[2]{1, 1};
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const float* source;
    const float* grid;
    float* target;
  };
  static Operands bind(Addresses addresses) {
    OperandReader in(addresses);
    return {in.next<const float>(), in.next<const float>(), in.next<float>()};
  }
  void run(const Operands& operands) const;
};

template <>
inline constexpr int kEnumerators<GridSample::Mode> = 3;
template <>
inline constexpr int kEnumerators<GridSample::Padding> = 3;

NPU_FIELDS(GridSample, mode, padding, align_corners, batch, channels, source_extent, target_extent,
           isa);
Footprint footprint(const GridSample& kernel);

}  // namespace npu::onednn
