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
  bool is_causal = false;   ///< query i sees keys up to i + offset
  std::int64_t offset = 0;  ///< with `valid` and without a past: valid - queries
  bool is_offset_by_valid = false;
};

struct Attended {
  Value* y = nullptr;
  Value* scores = nullptr;  ///< if they were asked for
};

/// `mode` is Attention's qk_matmul_output_mode, or -1 if no scores are asked for.
Attended attend(Op& op, Heads heads, std::int64_t mode);

/// [batch, length, heads * size] as [batch, heads, length, size].
Value* split_heads(Op& op, Value* x, std::int64_t heads);
/// And back.
Value* merge_heads(Op& op, Value* x);

/// What a rotary embedding does to x, [batch, length, heads, size]; cos and sin are [batch or 1,
/// length, half of the rotated size].
Value* rotated(Op& op, Value* x, Value* cos, Value* sin, bool is_interleaved);

/// Operands one after another along an axis.
Value* concatenated(Op& op, const std::vector<Value*>& parts, std::int64_t axis);

}  // namespace npu::onnx
