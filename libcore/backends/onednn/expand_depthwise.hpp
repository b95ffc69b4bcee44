// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "epilogue_step.hpp"

namespace npu::onednn {

/// A convolution of one by one with a depthwise convolution behind it, in one pass: the front of an
/// inverted residual (Sandler et al., "MobileNetV2", 2018). What is between them is never stored as
/// a whole. float32, channels in blocks of 16 in source and target, AVX-512.
struct ExpandDepthwise {
  std::int64_t batch = 1;
  std::int64_t source_channels = 1;
  std::int64_t channels = 16;           ///< between and behind; a multiple of 16
  std::int64_t source_extent[2]{1, 1};  ///< height, width
  std::int64_t target_extent[2]{1, 1};
  std::int64_t taps = 3;    ///< in both directions: 3 or 5
  std::int64_t stride = 1;  ///< in both directions: 1 or 2
  std::int64_t pad[2]{0, 0};
  bool expand_has_bias = false;
  bool depthwise_has_bias = false;
  std::vector<EpilogueStep> expand_epilogue;  ///< without operands, as the next
  std::vector<EpilogueStep> depthwise_epilogue;
  int threads = 1;

  static bool is_available() noexcept;
  static bool supports(std::int64_t taps, std::int64_t stride) noexcept {
    return (taps == 3 || taps == 5) && (stride == 1 || stride == 2);
  }
  std::size_t scratch_bytes() const;
  /// [channels, source channels] as run reads it, of as many floats.
  void order_expand_weights(const float* weight, float* ordered) const;
  /// [channels, taps, taps] as run reads it, of as many floats.
  void order_depthwise_weights(const float* weight, float* ordered) const;
  /// A bias that is not there may be null.
  void run(const float* source, const float* expand_weight, const float* expand_bias,
           const float* depthwise_weight, const float* depthwise_bias, float* target,
           float* scratch) const;
};

}  // namespace npu::onednn
