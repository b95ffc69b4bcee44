// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/base/simd.hpp"

namespace npu::onednn {

/// What kernels are weighed against each other by. Results do not depend on it. Costs are factors
/// of the time that a convolution or a product takes by the definition.
struct CpuRates {
  double multiply;      ///< cycles for a multiply-add of vectors
  double weight_bytes;  ///< from memory in a cycle, for all threads together
  /// Winograd: cycles for a vector of a transformed source, of one in two dimensions and in one,
  /// and of transformed results.
  double transform_source;
  double transform_flat_source;
  double transform_result;
  double copy_phase;  ///< cycles to bring a vector of a pixel to the image of its phase and back
  bool has_strided_winograd;  ///< oneDNN is slower than Winograd with a stride of 2
  double implicit;            ///< implicit GEMM, whose tiles are cut where rows end
  double copied;              ///< oneDNN with dilation
  double strided;             ///< oneDNN's kernels of several taps with a stride
  double grouped;             ///< groups that do not fill vectors,
  double permute;             ///< whose inputs are permuted first, for each of their taps
  double small_group;         ///< oneDNN multiplies such groups as matrices of their own
  double
      narrow_pointwise;   ///< weights of 16 bits beside oneDNN's pointwise convolutions of float32,
  double narrow_product;  ///< and beside its products
  std::int64_t min_rows;  ///< fewer rows of a product are bound by the weights' way from memory
  std::int64_t min_strassen_inner;    ///< from which Strassen's step is worth its sums
  std::int64_t min_strassen_columns;  ///< likewise
  /// A batch norm in front of a product saves a pass from so many channels, or up to so many rows.
  std::int64_t min_norm_inner;
  std::int64_t max_norm_rows;
  /// Multiply-adds of bfloat16 in the time of one of float32, both in the widest instructions and
  /// in registers, as scripts/bench/peak_rates.cpp measures them: of pairs, and of tiles.
  double bfloat16_pairs;
  double bfloat16_tiles;
};

/// Those of CPUs of a family (device/cpu_family.hpp) that run these vectors; of another family
/// those of the vectors.
const CpuRates& cpu_rates(std::string_view family, VectorIsa isa);

}  // namespace npu::onednn
