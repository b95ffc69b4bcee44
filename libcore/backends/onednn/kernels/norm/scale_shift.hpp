// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// result = x * scale[channel] + shift[channel], with an optional ReLU that keeps NaN, on memory
/// [outer, groups, spatial, lanes] whose channels are groups * lanes: row-major planes have one
/// lane, channels last one group, blocked layouts 8 or 16 lanes.
struct ScaleShift {
  static constexpr std::string_view kName = "scale-shift";
  DType type = DType::kFloat32;
  std::int64_t outer = 1;
  std::int64_t groups = 1;
  std::int64_t spatial = 1;
  std::int64_t lanes = 1;
  bool has_shift = false;
  bool relu = false;
  bool scale_by_outer = false;         ///< scale has a row of channels for every outer index
  DType scale_type = DType::kFloat32;  ///< of scale; float32 with a shift
  VectorIsa isa = VectorIsa::kAny;

  std::int64_t channels() const noexcept { return groups * lanes; }

  struct Operands {
    const std::byte* source;
    const std::byte* scale;  ///< with a shift, that lies behind it: [2, channels] of float32
    std::byte* target;       ///< may be the source
  };
  static Operands bind(Addresses addresses) { return {addresses[0], addresses[1], addresses[2]}; }
  void run(const Operands& operands) const;
};

NPU_FIELDS(ScaleShift, type, outer, groups, spatial, lanes, has_shift, relu, scale_by_outer,
           scale_type, isa);
Footprint footprint(const ScaleShift& kernel);

}  // namespace npu::onednn
