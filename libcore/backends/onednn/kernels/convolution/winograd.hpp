// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"

namespace npu::onednn {

/// A convolution with stride 1 or 2 and without dilation by Winograd's algorithm (Winograd
/// 1980; Lavin and Gray 2016): float32, channels in blocks of lanes_of(isa) in source and target,
/// AVX2 or AVX-512.
struct Winograd {
  static constexpr std::string_view kName = "winograd";
  /// Outputs of a tile and taps of the kernel, by dimension: F(4, 3) is {4, 3}. With stride 2 the
  /// taps are those of two filters, of the even and of the odd ones.
  struct Filter {
    std::int64_t tile[2]{1, 1};
    std::int64_t taps[2]{1, 1};
    std::int64_t stride = 1;
    /// Source elements of a tile, and what they are transformed to.
    std::int64_t points(int i) const { return stride * (tile[i] - 1) + taps[i]; }
    std::int64_t products() const { return points(0) * points(1); }
    /// What the taps are transformed to: with stride 2 the last products have a weight in common,
    /// the only odd tap of three.
    std::int64_t weights(int i) const { return stride == 1 ? points(i) : tile[i] + 2; }
    std::int64_t all_weights() const { return weights(0) * weights(1); }
    std::int64_t all_taps() const { return taps[0] * taps[1]; }
  };
  /// Source channels that are added up in one go.
  static constexpr std::int64_t kMostSummed = 128;
  Filter filter;
  std::int64_t batch = 1;   ///< images
  std::int64_t frames = 1;  ///< so many of them at a time lie within each block of channels
  std::int64_t source_channels = 16;  ///< a multiple of 16, as the next
  std::int64_t target_channels = 16;
  std::int64_t source_extent[2]{1, 1};  ///< height, width
  std::int64_t target_extent[2]{1, 1};
  std::int64_t pad[2]{0, 0};  ///< in front; what lies outside counts as zero
  bool has_bias = false;
  std::vector<EpilogueStep> epilogue;
  int threads = 1;
  VectorIsa isa = VectorIsa::kAvx2;

  static bool can_run(VectorIsa isa) noexcept { return isa >= VectorIsa::kAvx2; }
  std::int64_t tiles() const;
  /// The rounding error of a result, root mean square, relative to that of the results, in units of
  /// 2^-24: an estimate for independent operands with a mean of 0.
  double rounding() const;
  std::size_t weight_floats() const;
  std::size_t scratch_bytes() const;

  struct Operands {
    const float* source;
    const float* weight;        ///< as WinogradWeights makes them
    const float* bias;          ///< null without
    EpilogueOperands epilogue;  ///< they lie like the target
    float* target;
    float* scratch;  ///< of scratch_bytes()
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

/// The filters that there are kernels for, with kernels of this size, tile by tile.
std::vector<Winograd::Filter> winograd_filters(std::int64_t kernel_height,
                                               std::int64_t kernel_width, std::int64_t stride = 1);

NPU_FIELDS(Winograd::Filter, tile, taps, stride);
NPU_FIELDS(Winograd, filter, batch, frames, source_channels, target_channels, source_extent,
           target_extent, pad, has_bias, epilogue, isa);
Footprint footprint(const Winograd& kernel);

}  // namespace npu::onednn
