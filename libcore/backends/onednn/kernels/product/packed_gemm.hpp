// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// target[image, row, column] = sum over k of source[image, row, k] * weight[column, k] with
/// constant weights: a linear layer, or a pointwise convolution on channels in blocks of
/// lanes_of(isa). float32, AVX2, AVX-512 or NEON; the weights may have 16 bits, and are then
/// multiplied as the floats that they are.
struct PackedGemm {
  static constexpr std::string_view kName = "packed-gemm";
  static constexpr std::string_view kStrassenName = "strassen";
  /// Distances in floats; a block is lanes_of(isa) elements of a row, which lie together.
  struct Steps {
    std::int64_t image = 0;
    std::int64_t row = 0;
    std::int64_t block = 16;
  };
  std::int64_t images = 1;
  std::int64_t rows = 1;
  std::int64_t inner = 16;    ///< a multiple of 16, as the next
  std::int64_t columns = 16;  ///< with use_strassen multiples of 32 and of 64
  Steps source;
  Steps target;
  bool use_strassen = false;  ///< seven products of quadrants for eight (Strassen 1969, Winograd's
                              ///< form)
  /// The weights are those that a product with use_strassen reads, too; `inner` and `columns` are
  /// such multiples.
  bool strassen_order = false;
  DType weight_type = DType::kFloat32;  ///< or float16, bfloat16
  bool has_norm = false;   ///< elements of the source are first multiplied with factors, one for
                           ///< each k, and terms added
  bool norm_relu = false;  ///< negative ones then become 0
  bool has_bias = false;
  std::vector<EpilogueStep> epilogue;
  int threads = 1;
  VectorIsa isa = VectorIsa::kAvx2;

  static bool can_run(VectorIsa isa) noexcept { return isa >= VectorIsa::kAvx2; }
  std::string_view name() const noexcept { return use_strassen ? kStrassenName : kName; }
  bool has_strassen_order() const noexcept { return use_strassen || strassen_order; }
  std::size_t weight_floats() const { return static_cast<std::size_t>(inner * columns); }
  std::size_t scratch_bytes() const;

  struct Operands {
    const float* source;
    const float* weight;        ///< as PackedGemmWeights makes them
    const float* norm;          ///< [2, inner]: factors, then terms; null without
    const float* bias;          ///< null without
    EpilogueOperands epilogue;  ///< they lie like the target
    float* target;
    float* scratch;  ///< of scratch_bytes()
    /// In the place of `weight`: the same, each rounded to `weight_type`.
    const std::uint16_t* halves = nullptr;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

NPU_FIELDS(PackedGemm::Steps, image, row, block);
NPU_FIELDS(PackedGemm, images, rows, inner, columns, source, target, use_strassen, strassen_order,
           weight_type, has_norm, norm_relu, has_bias, epilogue, isa);
Footprint footprint(const PackedGemm& kernel);

}  // namespace npu::onednn
