// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op.hpp"

namespace npu::onnx {

/// Attention of heads: q is [batch, heads, queries, size], k and v may have fewer heads.
struct Heads {
  Value* q = nullptr;
  Value* k = nullptr;
  Value* v = nullptr;
  Value* mask = nullptr;   ///< bool, or floats that are added; null: none
  Value* valid = nullptr;  ///< int64 [batch]: the keys that count; null: all
  double scale = 0;
  double softcap = 0;       ///< 0: none
  Value* sinks = nullptr;   ///< [heads]: scores that have a share of the softmax alone
  bool is_causal = false;   ///< query i sees keys up to i + offset
  std::int64_t offset = 0;  ///< with `valid` and without a past: valid - queries
  bool is_offset_by_valid = false;
  std::int64_t left = -1;  ///< keys in front of a query's own place that it sees; -1: all
  std::int64_t right = -1;

  bool has_window() const noexcept { return left >= 0 || right >= 0; }
};

struct Attended {
  Value* y = nullptr;
  Value* scores = nullptr;  ///< if they were asked for
};

/// 0, 1 and so on, `count` of them, in int64; of a template a node, since their number varies.
Value* ascending(Op& op, std::int64_t count, const Shape& shape);

/// `mode` is Attention's qk_matmul_output_mode, or -1 if no scores are asked for.
Attended attend(Op& op, Heads heads, std::int64_t mode);

/// One row of a table for each position, [batch, length, size].
Value* rows_at(Op& op, Value* table, Value* positions);

/// [batch, length, heads * size] as [batch, heads, length, size].
Value* split_heads(Op& op, Value* x, std::int64_t heads);
/// And back.
Value* merge_heads(Op& op, Value* x);

/// What a rotary embedding does to x, [batch, length, heads, size]; cos and sin are [batch or 1,
/// length, half of the rotated size].
Value* rotated(Op& op, Value* x, Value* cos, Value* sin, bool is_interleaved);

}  // namespace npu::onnx
