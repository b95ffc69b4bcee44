// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/product/packed_gemm.hpp"

namespace npu::onednn {

/// target[image, row, column] = sum over k of source[image, row, k] * weight[column, k] with
/// constant weights, multiplied and added in float16: source and target are float32, as a
/// PackedGemm's are. AVX512-FP16 has twice the multiply-adds of float32; a CPU with AVX2 alone
/// rounds each of them to float16 in turn, which is slow, and the same but for a unit in the last
/// place of a sum.
///
/// Rows of the source and columns of the weights are brought to one magnitude by powers of two,
/// which round nothing: sums of finite numbers do not overflow, and elements lose digits only where
/// they are below 2^-18 of the largest of their row or column. Every kRun products are added up in
/// float16 (11 bits), those sums in float32.
struct HalfGemm {
  static constexpr std::string_view kName = "float16-gemm";
  static constexpr std::int64_t kRun = 64;
  std::int64_t images = 1;
  std::int64_t rows = 1;
  std::int64_t inner = 16;  ///< a multiple of 16, as the next
  std::int64_t columns = 16;
  PackedGemm::Steps source;
  PackedGemm::Steps target;
  bool has_bias = false;
  std::vector<EpilogueStep> epilogue;
  int threads = 1;
  VectorIsa isa = VectorIsa::kAvx2;

  static bool can_run(VectorIsa isa) noexcept { return isa >= VectorIsa::kAvx2; }
  std::size_t weight_halves() const;  ///< columns filled up to panels of 32
  std::size_t scales() const;         ///< likewise
  std::size_t scratch_bytes() const;

  struct Operands {
    const float* source;
    const std::uint16_t* weight;  ///< as HalfGemmWeights makes them
    const float* scale;           ///< as ColumnScales makes them
    const float* bias;            ///< null without
    EpilogueOperands epilogue;    ///< they lie like the target
    float* target;
    float* scratch;  ///< of scratch_bytes()
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

/// For each column of weights [columns, inner] the power of two that its numbers of float16 are to
/// be multiplied with; 1 for one of zeros, and behind the last up to a multiple of 32.
struct ColumnScales {
  static constexpr std::string_view kName = "column-scales";
  std::int64_t columns = 1;
  std::int64_t inner = 1;

  struct Operands {
    const float* source;
    float* target;
  };
  static Operands bind(Addresses addresses);
  void run(const Operands& operands) const;
};

/// Weights [columns, inner] divided by their columns' scales as float16 numbers in panels of 32
/// columns, [inner, 32] each, zero behind the last column: weight_halves() of them.
struct HalfGemmWeights {
  static constexpr std::string_view kName = "float16-gemm-weights";
  std::int64_t columns = 1;
  std::int64_t inner = 1;
  int threads = 1;

  struct Operands {
    const float* source;
    std::uint16_t* target;
  };
  static Operands bind(Addresses addresses);
  void run(const Operands& operands) const;
};

NPU_FIELDS(HalfGemm, images, rows, inner, columns, source, target, has_bias, epilogue, isa);
NPU_FIELDS(HalfGemmWeights, columns, inner);
NPU_FIELDS(ColumnScales, columns, inner);
Footprint footprint(const HalfGemm& kernel);
Footprint footprint(const HalfGemmWeights& kernel);
Footprint footprint(const ColumnScales& kernel);

}  // namespace npu::onednn
