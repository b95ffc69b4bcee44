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

/// A pointwise convolution with a depthwise convolution behind it, in one pass: the front of an
/// inverted residual (Sandler et al., "MobileNetV2", 2018). What is between them is never stored as
/// a whole. float32, or bfloat16 between kernels and in the products of the first convolution,
/// whose results stay float32 for the second one. Channels in blocks of lanes_of(isa) in source and
/// target; AVX2, AVX-512 or NEON.
struct ExpandDepthwise {
  static constexpr std::string_view kName = "expand-depthwise";
  std::int64_t batch = 1;
  std::int64_t source_channels = 16;    ///< whole blocks, but for AVX-512
  std::int64_t channels = 16;           ///< between and behind; a multiple of lanes_of(isa)
  std::int64_t source_extent[2]{1, 1};  ///< height, width
  std::int64_t target_extent[2]{1, 1};
  std::int64_t taps = 3;    ///< in both directions: 3 or 5
  std::int64_t stride = 1;  ///< in both directions: 1 or 2
  std::int64_t pad[2]{0, 0};
  /// Source, weights of the first convolution and target are bfloat16, and `source_channels` is
  /// even.
  bool bfloat16 = false;
  bool expand_has_bias = false;
  bool depthwise_has_bias = false;
  std::vector<EpilogueStep> expand_epilogue;  ///< without operands, as the next
  std::vector<EpilogueStep> depthwise_epilogue;
  int threads = 1;
  VectorIsa isa = VectorIsa::kAvx2;

  static bool can_run(VectorIsa isa) noexcept { return isa >= VectorIsa::kAvx2; }
  static bool supports(std::int64_t taps, std::int64_t stride) noexcept {
    return (taps == 3 || taps == 5) && (stride == 1 || stride == 2);
  }
  std::size_t scratch_bytes() const;

  struct Operands {
    const std::byte* source;
    /// [channels, source channels], as PanelWeights makes them, for bfloat16 in pairs.
    const float* expand_weight;
    const float* depthwise_weight;  ///< [channels, taps, taps], likewise, never in pairs
    const float* expand_bias;       ///< null without, as the next
    const float* depthwise_bias;
    std::byte* target;
    float* scratch;  ///< of scratch_bytes()
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

/// Weights [channels, inner] in panels of channels, as ExpandDepthwise reads them: two vectors of
/// its `isa`.
struct PanelWeights {
  static constexpr std::string_view kName = "panel-weights";
  std::int64_t channels = 16;
  std::int64_t inner = 1;
  std::int64_t panel = 32;
  /// Rounded to bfloat16, two neighbours of `inner`, which is even, in the place of a float.
  bool pairs = false;

  std::size_t floats() const noexcept {
    return static_cast<std::size_t>(channels * inner / (pairs ? 2 : 1));
  }

  struct Operands {
    const float* source;
    float* target;
  };
  static Operands bind(Addresses addresses);
  void run(const Operands& operands) const;
};

NPU_FIELDS(ExpandDepthwise, batch, source_channels, channels, source_extent, target_extent, taps,
           stride, pad, bfloat16, expand_has_bias, depthwise_has_bias, expand_epilogue,
           depthwise_epilogue, isa);
NPU_FIELDS(PanelWeights, channels, inner, panel, pairs);
Footprint footprint(const ExpandDepthwise& kernel);
Footprint footprint(const PanelWeights& kernel);

}  // namespace npu::onednn
