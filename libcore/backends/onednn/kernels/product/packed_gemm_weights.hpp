// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/product/packed_gemm.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// Weights of float32 to the nearest of `type`, the bits of which are written; of float16 larger
/// ones than 65504 become infinite.
struct HalfWeights {
  static constexpr std::string_view kName = "half-weights";
  std::int64_t count = 0;
  DType type = DType::kFloat16;  ///< or bfloat16

  struct Operands {
    const float* source;
    std::uint16_t* target;
  };
  static Operands bind(Addresses addresses);
  void run(const Operands& operands) const;
};

/// Weights [columns, inner] as a PackedGemm reads them, weight_floats() of them.
struct PackedGemmWeights {
  static constexpr std::string_view kName = "packed-gemm-weights";
  PackedGemm gemm;

  struct Operands {
    const float* source;
    float* target;
  };
  static Operands bind(Addresses addresses);
  void run(const Operands& operands) const;
};

NPU_FIELDS(PackedGemmWeights, gemm);
NPU_FIELDS(HalfWeights, count, type);
Footprint footprint(const PackedGemmWeights& kernel);
Footprint footprint(const HalfWeights& kernel);

}  // namespace npu::onednn
