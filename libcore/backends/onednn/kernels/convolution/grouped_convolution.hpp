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

/// A convolution whose groups have any number of channels, where several of them share a vector or
/// one of them ends within it: ResNeXt (Xie et al., 2017), depthwise ones with a multiplier.
/// float32, channels in blocks of lanes_of(isa) in source and target; AVX2, AVX-512 or NEON. In one
/// dimension the height is 1.
struct GroupedConvolution {
  static constexpr std::string_view kName = "grouped-convolution";
  std::int64_t batch = 1;
  std::int64_t groups = 1;
  std::int64_t source_channels = 16;    ///< a multiple of `groups` and of lanes_of(isa)
  std::int64_t target_channels = 16;    ///< likewise
  std::int64_t source_extent[2]{1, 1};  ///< height, width
  std::int64_t target_extent[2]{1, 1};
  std::int64_t taps[2]{1, 1};
  std::int64_t stride[2]{1, 1};
  std::int64_t dilation[2]{1, 1};
  std::int64_t pad[2]{0, 0};  ///< in front; what lies outside counts as zero
  bool has_bias = false;
  std::vector<EpilogueStep> epilogue;
  int threads = 1;
  VectorIsa isa = VectorIsa::kAvx2;

  static bool can_run(VectorIsa isa) noexcept { return isa >= VectorIsa::kAvx2; }
  /// Source channels that a result is a sum over.
  std::int64_t inputs() const { return source_channels / groups; }
  std::int64_t all_taps() const { return taps[0] * taps[1]; }
  /// Brings weights [target channels, inputs, taps..] into the order of `weight`.
  StridedCopy weight_order() const;
  std::size_t scratch_bytes() const;

  struct Operands {
    const float* source;
    const float* weight;        ///< [target channels / lanes, inputs(), taps.., lanes]
    const float* bias;          ///< null without
    EpilogueOperands epilogue;  ///< they lie like the target
    float* target;
    float* scratch;  ///< of scratch_bytes()
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

NPU_FIELDS(GroupedConvolution, batch, groups, source_channels, target_channels, source_extent,
           target_extent, taps, stride, dilation, pad, has_bias, epilogue, isa);
Footprint footprint(const GroupedConvolution& kernel);

}  // namespace npu::onednn
