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

enum class BinaryOp : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide, kMaximum, kMinimum };

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

/// Averages windows of `planes` row-major planes of height x width.
struct WindowAverage {
  DType type = DType::kFloat32;
  std::int64_t planes = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::vector<Window> rows;
  std::vector<Window> columns;
  std::int64_t divisor_override = 0;  ///< 0: the product of the windows' divisors

  void run(const std::byte* source, std::byte* target) const;
};

/// Mean over the middle dimension of a row-major [outer, count, inner] tensor.
struct MiddleMean {
  DType type = DType::kFloat32;
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;

  void run(const std::byte* source, std::byte* target) const;
};

/// Sets scores[.., i, j] to -infinity where j > i, for `planes` row-major planes.
struct CausalMask {
  std::int64_t planes = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;

  void run(float* scores) const;
};

/// Rows of softmax results become 0 where every score is minus infinity.
struct BlockedRows {
  std::int64_t columns = 1;
  std::int64_t rows = 1;

  void run(const float* scores, float* weights) const;
};

}  // namespace npu::onednn
