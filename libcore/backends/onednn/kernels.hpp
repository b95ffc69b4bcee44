// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu::onednn {

/// Element-wise conversion between float32 and bfloat16, to nearest even; `from` and `to` differ.
void convert(DType from, const void* source, DType to, void* target, std::int64_t count);
/// Rounds float32 values to the nearest bfloat16, in place.
void round_to_bfloat16(float* values, std::int64_t count);

/// Sets `count` elements of float32 or bfloat16 to a number.
void fill(DType type, float number, std::byte* target, std::int64_t count);

/// An element-by-element copy in an iteration space. `element_size` is 1, 2, 4, 8 or 16.
struct StridedCopy {
  std::size_t element_size = 4;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> source_strides;
  std::vector<std::int64_t> target_strides;

  /// Joins neighbouring dimensions that lie in one run of memory in both tensors.
  void simplify();
  void run(const std::byte* source, std::byte* target) const;
};

/// Folds a batch norm into weights [groups, rows, channels, inner] and a bias [groups * channels].
/// Operands: weights, variance, scale if there is one, result; and variance, mean, scale, shift and
/// bias if there are any, result. All float32.
struct NormFold {
  float epsilon = 0.0F;
  std::int64_t groups = 1;
  std::int64_t rows = 1;
  std::int64_t channels = 1;
  std::int64_t inner = 1;
  bool has_scale = false;
  bool has_shift = false;
  bool has_bias = false;

  void run_weights(std::span<std::byte* const> operands) const;
  void run_bias(std::span<std::byte* const> operands) const;
};

/// The factors and terms of a batch norm, [2, padded channels], zero behind the channels. Operands:
/// variance, mean, weight and bias if there are any, result. All float32.
struct NormVectors {
  float epsilon = 0.0F;
  std::int64_t channels = 1;
  std::int64_t padded_channels = 1;
  bool has_scale = false;
  bool has_shift = false;

  void run(std::span<std::byte* const> operands) const;
};

enum class BinaryOp : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kMinimum,
  kPower
};

/// target = op(a, alpha * b) in an iteration space, computed in float32; strides of 0 broadcast.
/// alpha is used by kAdd and kSubtract. kMaximum and kMinimum propagate NaN.
struct BroadcastBinary {
  BinaryOp op = BinaryOp::kAdd;
  float alpha = 1.0F;
  DType type = DType::kFloat32;  ///< of a and the target
  DType b_type = DType::kFloat32;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> a_strides;
  std::vector<std::int64_t> b_strides;
  std::vector<std::int64_t> target_strides;

  void simplify();
  void run(const std::byte* a, const std::byte* b, std::byte* target) const;
};

/// Group norm of a row-major [outer, groups, rows, inner] tensor whose mean and variance are over
/// the last two dimensions; weight and bias have groups * rows elements. With one row and one group
/// and per_column, an RMS norm of rows of `inner` elements with a weight of as many. float32
/// statistics; weight and bias are float32.
struct RowNorm {
  DType type = DType::kFloat32;
  std::int64_t outer = 1;
  std::int64_t groups = 1;
  std::int64_t rows = 1;
  std::int64_t inner = 1;
  float epsilon = 0.0F;
  bool is_rms = false;      ///< no mean is taken off
  bool per_column = false;  ///< weight and bias run along the inner dimension
  bool has_weight = false;
  bool has_bias = false;

  /// Operands: source, weight, bias if there are any, result.
  void run(std::span<std::byte* const> operands) const;
};

/// Element-wise conversion between any two of float32, bfloat16, float64, the integers and bool:
/// towards zero to an integer, and true for all but 0.
struct Cast {
  DType from = DType::kFloat32;
  DType to = DType::kFloat32;
  std::int64_t count = 0;

  static bool supports(DType type) noexcept;
  void run(const std::byte* source, std::byte* target) const;
};

/// Concatenation of dense row-major tensors: each is `outer` runs of run_bytes[i] bytes.
struct PlainConcat {
  std::int64_t outer = 1;
  std::vector<std::int64_t> run_bytes;

  void run(const std::byte* const* sources, std::byte* target) const;
};

/// Rows of a table by index. run returns false if an index is not in [0, rows).
struct GatherRows {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  bool wide_indices = true;  ///< int64, else int32

  bool run(const std::byte* table, const std::byte* indices, std::byte* target) const;
};

/// One output position of a pooling window in one dimension.
struct Window {
  std::int64_t begin = 0;    ///< first input element inside the input
  std::int64_t end = 0;      ///< one past the last
  std::int64_t divisor = 1;  ///< this dimension's part of the divisor
};

/// Averages windows of `planes` row-major planes of up to three dimensions; those that are missing
/// in front have one element and one window.
struct WindowAverage {
  DType type = DType::kFloat32;
  std::int64_t planes = 1;
  std::int64_t extents[3]{1, 1, 1};
  std::vector<Window> windows[3]{{{0, 1, 1}}, {{0, 1, 1}}, {{0, 1, 1}}};
  std::int64_t divisor_override = 0;  ///< 0: the product of the windows' divisors

  void run(const std::byte* source, std::byte* target) const;
};

enum class ReductionOp : std::uint8_t { kMean, kSum, kMaximum, kMinimum };

/// Reduces the middle dimension of a row-major [outer, count, inner] tensor; sums are float64,
/// extrema propagate NaN.
struct MiddleReduction {
  ReductionOp op = ReductionOp::kMean;
  DType type = DType::kFloat32;
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;

  void run(const std::byte* source, std::byte* target) const;
};

}  // namespace npu::onednn
