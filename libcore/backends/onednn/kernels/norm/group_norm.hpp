// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/simd.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Group norm, of which instance norm is the case of one channel in a group, of [outer, channels,
/// spatial] with channels in blocks of `lanes`: [outer, channels / lanes, spatial, lanes]. Mean and
/// variance of a group are float64.
struct GroupNorm {
  static constexpr std::string_view kName = "group-norm";
  static constexpr std::int64_t kMaxLanes = 16;
  DType type = DType::kFloat32;
  std::int64_t outer = 1;
  std::int64_t channels = 1;  ///< a multiple of `lanes`
  std::int64_t spatial = 1;
  std::int64_t lanes = 1;       ///< 1 or 16
  std::int64_t group_size = 1;  ///< channels; divides 16 or is a multiple of it, with lanes of 16
  float epsilon = 0.0F;
  bool has_weight = false;  ///< of `vector` elements, as the bias
  bool has_bias = false;
  std::int64_t vector = 1;  ///< channels without those that only fill the last block
  VectorIsa isa = VectorIsa::kAny;

  /// True if the kernel can work on such channels.
  static bool supports(std::int64_t lanes, std::int64_t group_size) noexcept {
    return lanes == 1 || (lanes == 16 && (16 % group_size == 0 || group_size % 16 == 0));
  }

  struct Operands {
    const std::byte* source;
    const float* weight;  ///< null without, as the next
    const float* bias;
    std::byte* target;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

NPU_FIELDS(GroupNorm, type, outer, channels, spatial, lanes, group_size, epsilon, has_weight,
           has_bias, vector, isa);
Footprint footprint(const GroupNorm& kernel);

}  // namespace npu::onednn
