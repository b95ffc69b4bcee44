// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "epilogue_step.hpp"

namespace npu::onednn {

/// target[row, column] = sum over k of source[row, k] * weight[column, k] for a few rows, as
/// classifiers and recurrent layers have them: the time is that of reading the weights. float32.
struct VectorProduct {
  static constexpr std::int64_t kMostRows = 4;
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  std::int64_t source_row = 0;  ///< from one row to the next, in floats; elements lie together
  bool has_bias = false;
  std::vector<EpilogueStep> epilogue{};
  int threads = 1;

  /// `weight` is [columns, inner]; `operands`: those that the epilogue adds or multiplies with, in
  /// its order. They lie like the target.
  void run(const float* source, const float* weight, const float* bias,
           const float* const* operands, float* target) const;
};

}  // namespace npu::onednn
