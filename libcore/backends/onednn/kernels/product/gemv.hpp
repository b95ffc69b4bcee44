// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// target[row, column] = sum over k of source[row, k] * weight[column, k] for a few rows, as
/// classifiers and recurrent layers have them: the time is that of reading the weights. float32;
/// the weights may have 16 bits, and are then multiplied as the floats that they are.
struct Gemv {
  static constexpr std::string_view kName = "gemv";
  static constexpr std::int64_t kMaxRows = 4;
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  std::int64_t source_row = 0;  ///< from one row to the next, in floats; elements lie together
  DType weight_type = DType::kFloat32;  ///< or float16, bfloat16
  bool has_bias = false;
  std::vector<EpilogueStep> epilogue{};
  int threads = 1;
  VectorIsa isa = VectorIsa::kAny;

  struct Operands {
    const float* source;
    const float* weight;        ///< [columns, inner]
    const float* bias;          ///< null without
    EpilogueOperands epilogue;  ///< they lie like the target
    float* target;
    /// In the place of `weight`: the same, each rounded to `weight_type`.
    const std::uint16_t* halves = nullptr;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

NPU_FIELDS(Gemv, rows, inner, columns, source_row, weight_type, has_bias, epilogue, isa);
Footprint footprint(const Gemv& kernel);

}  // namespace npu::onednn
