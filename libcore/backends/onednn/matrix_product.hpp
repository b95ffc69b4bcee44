// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "epilogue_step.hpp"

namespace npu::onednn {

/// target[image, row, column] = sum over k of source[image, row, k] * weight[column, k] with
/// constant weights: a linear layer, or a convolution of one by one on channels in blocks of 16.
/// float32, AVX-512.
struct MatrixProduct {
  /// Distances in floats; a block is 16 elements of a row, which lie together.
  struct Steps {
    std::int64_t image = 0;
    std::int64_t row = 0;
    std::int64_t block = 16;
  };
  std::int64_t images = 1;
  std::int64_t rows = 1;
  std::int64_t inner = 16;    ///< a multiple of 16, as the next
  std::int64_t columns = 16;  ///< with is_fast multiples of 32 and of 64
  Steps source;
  Steps target;
  bool is_fast = false;    ///< seven products of halves for eight (Strassen 1969, Winograd's form)
  bool has_norm = false;   ///< elements of the source are first multiplied with factors, one for
                           ///< each k, and terms added
  bool norm_relu = false;  ///< negative ones then become 0
  bool has_bias = false;
  std::vector<EpilogueStep> epilogue;
  int threads = 1;

  static bool is_available();
  std::size_t weight_floats() const { return static_cast<std::size_t>(inner * columns); }
  std::size_t scratch_bytes() const;
  /// Weights [columns, inner] as run reads them.
  void order_weights(const float* weight, float* ordered) const;

  struct Operands {
    const float* source;
    const float* norm;  ///< [2, inner]: factors, then terms; null without
    const float* weight;
    const float* bias;             ///< null without
    const float* const* epilogue;  ///< those that it adds or multiplies with; they lie like target
    float* target;
    float* scratch;  ///< of scratch_bytes()
  };
  void run(const Operands& operands) const;
};

}  // namespace npu::onednn
