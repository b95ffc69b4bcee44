// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "epilogue_step.hpp"

namespace npu::onednn {

/// A convolution with stride 1 and without dilation by minimal filtering (Winograd 1980; Lavin and
/// Gray 2016): float32, channels in blocks of 16 in source and target, AVX-512.
struct Winograd {
  /// Outputs of a tile and taps of the kernel, by dimension: F(4, 3) is {4, 3}.
  struct Filter {
    std::int64_t tile[2]{1, 1};
    std::int64_t taps[2]{1, 1};
    std::int64_t points(int i) const { return tile[i] + taps[i] - 1; }
    std::int64_t products() const { return points(0) * points(1); }
  };
  Filter filter;
  std::int64_t batch = 1;
  std::int64_t source_channels = 16;  ///< a multiple of 16, as the next
  std::int64_t target_channels = 16;
  std::int64_t source_extent[2]{1, 1};  ///< height, width
  std::int64_t target_extent[2]{1, 1};
  std::int64_t pad[2]{0, 0};  ///< in front; what lies outside counts as zero
  bool has_bias = false;
  std::vector<EpilogueStep> epilogue;
  int threads = 1;

  std::int64_t tiles() const;
  std::size_t weight_floats() const;
  std::size_t scratch_bytes() const;
  /// Weights [target channels, source channels, taps..] as run reads them, weight_floats() of them.
  void transform_weights(const float* weight, float* transformed) const;
  /// `operands`: those that the epilogue adds or multiplies with, in its order. They and the target
  /// lie like the target. `scratch` has scratch_bytes().
  void run(const float* source, const float* weight, const float* bias,
           std::span<const float* const> operands, float* target, float* scratch) const;
};

/// The filters that there are kernels for, with kernels of this size, tile by tile.
std::vector<Winograd::Filter> winograd_filters(std::int64_t kernel_height,
                                               std::int64_t kernel_width);

}  // namespace npu::onednn
