// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/movement/copies.hpp"

namespace npu::onednn {

/// A convolution with stride 1 and any dilation as one product of matrices for each tap, whose left
/// factor is the source where it lies (implicit GEMM; Chetlur et al. 2014): float32, channels in
/// blocks of lanes_of(isa) in source and target, AVX2, AVX-512 or NEON.
struct ImplicitGemm {
  static constexpr std::string_view kName = "implicit-gemm";
  std::int64_t batch = 1;
  std::int64_t source_channels = 16;    ///< a multiple of 16
  std::int64_t target_channels = 32;    ///< of 2 * lanes_of(isa), as weights lie
  std::int64_t source_extent[2]{1, 1};  ///< height, width
  std::int64_t target_extent[2]{1, 1};
  std::int64_t taps[2]{1, 1};
  std::int64_t dilation[2]{1, 1};
  std::int64_t pad[2]{0, 0};  ///< in front; what lies outside counts as zero, and takes no time
  bool has_bias = false;
  std::vector<EpilogueStep> epilogue;
  int threads = 1;
  VectorIsa isa = VectorIsa::kAvx2;

  static bool can_run(VectorIsa isa) noexcept { return isa >= VectorIsa::kAvx2; }
  /// Target channels whose weights lie together.
  std::int64_t panel() const { return 2 * lanes_of(isa); }
  std::int64_t all_taps() const { return taps[0] * taps[1]; }
  /// Brings weights [target channels, inputs, taps..] into the order of `weight`.
  StridedCopy weight_order() const;
  std::size_t scratch_bytes() const;

  struct Operands {
    const float* source;
    const float* weight;        ///< [panels, taps.., source channels, panel()]
    const float* bias;          ///< null without
    EpilogueOperands epilogue;  ///< they lie like the target
    float* target;
    float* scratch;  ///< of scratch_bytes()
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

NPU_FIELDS(ImplicitGemm, batch, source_channels, target_channels, source_extent, target_extent,
           taps, dilation, pad, has_bias, epilogue, isa);
Footprint footprint(const ImplicitGemm& kernel);

}  // namespace npu::onednn
