// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/attention/key_ranges.hpp"
#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::onednn {

/// softmax(scale * query key^T) value over a cache, of whose keys each query looks at a range: what
/// lies outside of all ranges is neither read nor computed. Planes are batch times heads; in a row
/// they may share keys and values. A query without keys gives zeros. With a cap, a score s is
/// cap * tanh(s) in front of the softmax; with a bias, that of its key is added behind the cap.
/// With sinks, each plane has one more score, which has a share of the softmax and no value. Keys
/// in front of all and behind all that a bias shows are passed over if it may hide some, as one
/// that has the mask of a source in it does.
struct CachedAttention {
  static constexpr std::string_view kName = "cached-attention";
  DType type = DType::kFloat32;  ///< of query, key, value, bias and result
  std::int64_t queries = 1;
  std::int64_t width = 1;        ///< of a query and a key
  std::int64_t value_width = 1;  ///< of a value and a result
  float scale = 1.0F;
  float cap = 0.0F;  ///< 0: there is none
  bool has_sinks = false;
  bool has_bias = false;
  float hidden_bias = 0.0F;  ///< a bias of this or less hides a key; 0: none does for certain
  bool zero_blocked = true;  ///< a query with no key left gives zeros, not NaN
  KeyRanges ranges;

  /// Strides in elements: [row, column].
  std::int64_t query_strides[2]{};
  std::int64_t key_strides[2]{};    ///< the column's is 1
  std::int64_t value_strides[2]{};  ///< likewise
  std::int64_t bias_strides[2]{};   ///< the column's is that of keys
  std::int64_t result_row = 0;      ///< results are dense along their width
  /// First elements, by plane.
  std::vector<std::int64_t> query_offsets;
  std::vector<std::int64_t> key_offsets;
  std::vector<std::int64_t> value_offsets;
  std::vector<std::int64_t> result_offsets;
  std::vector<std::int64_t> sink_offsets;  ///< empty without; sinks are float32
  std::vector<std::int64_t> bias_offsets;  ///< empty without; a bias has the type of queries

  int threads = 1;
  VectorIsa isa = VectorIsa::kAny;
  /// Bytes of scratch memory that run needs.
  std::size_t scratch_bytes() const;

  struct Operands {
    const std::byte* query;
    const std::byte* key;
    const std::byte* value;
    const std::int64_t* positions;  ///< null without
    const std::int64_t* valid;      ///< null without
    const float* sinks;             ///< null without
    const std::byte* bias;          ///< null without
    std::byte* result;
    float* scratch;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
  /// How many rows of keys run goes through, by which its time is proportional.
  std::int64_t visited_keys(const Operands& operands) const;
};

NPU_FIELDS(CachedAttention, type, queries, width, value_width, scale, cap, has_sinks, has_bias,
           hidden_bias, zero_blocked, ranges, query_strides, key_strides, value_strides,
           bias_strides, result_row, query_offsets, key_offsets, value_offsets, result_offsets,
           sink_offsets, bias_offsets, isa);
Footprint footprint(const CachedAttention& kernel);

}  // namespace npu::onednn
