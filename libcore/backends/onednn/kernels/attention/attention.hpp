// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// softmax(scale * factor * query key^T + mask) value for any number of planes (batch times heads),
/// on strided operands, computed in float32; queries and keys may be divided by their lengths.
struct Attention {
  static constexpr std::string_view kName = "attention";
  DType type = DType::kFloat32;       ///< of query, key, value and result
  DType mask_type = DType::kFloat32;  ///< kBool: scores are kept or become `mask_fill`
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t width = 1;        ///< of a query and a key
  std::int64_t value_width = 1;  ///< of a value and a result
  float scale = 1.0F;
  /// Above 0, each query or key is divided by its length (2-norm), or by this if that is more.
  float least_query_length = 0.0F;
  float least_key_length = 0.0F;
  bool has_factor = false;  ///< a number for each plane
  bool causal = false;
  bool has_mask = false;
  bool mask_keeps = true;  ///< what true means in a mask of bool; else it fills
  float mask_fill = -std::numeric_limits<float>::infinity();
  bool zero_blocked = false;  ///< a query with no key left gives zeros, not NaN
  bool zero_nan = false;      ///< a query whose weights are NaN gives zeros

  /// Strides in elements: [row, column].
  std::int64_t query_strides[2]{};
  std::int64_t key_strides[2]{};
  std::int64_t value_strides[2]{};
  std::int64_t mask_strides[2]{};
  std::int64_t result_row = 0;  ///< results are dense along their width
  /// First elements, by plane.
  std::vector<std::int64_t> query_offsets;
  std::vector<std::int64_t> key_offsets;
  std::vector<std::int64_t> value_offsets;
  std::vector<std::int64_t> mask_offsets;
  std::vector<std::int64_t> factor_offsets;
  std::vector<std::int64_t> result_offsets;

  int threads = 1;
  VectorIsa isa = VectorIsa::kAny;
  /// Bytes of scratch memory that run needs.
  std::size_t scratch_bytes() const;
  /// How many planes in a row have the same keys and values: heads of queries that share one.
  std::int64_t shared_planes() const;

  struct Operands {
    const std::byte* query;
    const std::byte* key;
    const std::byte* value;
    const std::byte* mask;  ///< null without
    std::byte* result;
    float* scratch;
    const float* factor = nullptr;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

NPU_FIELDS(Attention, type, mask_type, queries, keys, width, value_width, scale, least_query_length,
           least_key_length, has_factor, causal, has_mask, mask_keeps, mask_fill, zero_nan,
           zero_blocked, query_strides, key_strides, value_strides, mask_strides, result_row,
           query_offsets, key_offsets, value_offsets, mask_offsets, factor_offsets, result_offsets,
           isa);
Footprint footprint(const Attention& kernel);

}  // namespace npu::onednn
