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

/// RMS norm (Zhang and Sennrich, arXiv:1910.07467) of each of [rows, inner], by float32 weights
/// [inner]. Sums are float64.
struct RmsNorm {
  static constexpr std::string_view kName = "rms-norm";
  DType type = DType::kFloat32;
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  float epsilon = 0.0F;
  bool has_weight = false;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const std::byte* source;
    const float* weight;  ///< null without
    std::byte* target;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

NPU_FIELDS(RmsNorm, type, rows, inner, epsilon, has_weight, isa);
Footprint footprint(const RmsNorm& kernel);

}  // namespace npu::onednn
