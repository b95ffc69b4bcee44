// SPDX-License-Identifier: Apache-2.0
#pragma once

// An attention as it is read from a graph, and what the kernels that compute one take over from it.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "lowering/engine/key_mask.hpp"
#include "lowering/engine/lowering.hpp"
#include "lowering/engine/repeated.hpp"

namespace npu::onednn {

struct AttentionCall {
  Repeated query{};
  Repeated key{};  ///< [.., S, D]
  Repeated value{};
  std::optional<Repeated> mask;
  std::optional<Value> factor;   ///< [.., 1, 1]
  std::optional<Value> sinks;    ///< [.., 1, 1], float32
  std::optional<Repeated> bias;  ///< of an attention over a cache, behind the cap
  float scale = 1.0F;
  float cap = 0.0F;
  float least_query_length = 0.0F;  ///< as the kernel has it, and the next
  float least_key_length = 0.0F;
  bool causal = false;
  bool mask_keeps = true;
  float mask_fill = -std::numeric_limits<float>::infinity();
  bool zero_blocked = false;
  bool zero_nan = false;
};

/// The batch dimensions of an attention, and the shape of its result.
struct AttentionShapes {
  Shape batch;
  Shape result;
};
/// Refuses the node if operands do not fit each other, or the result.
AttentionShapes attention_shapes(const Lowering& lowering, const AttentionCall& call,
                                 TensorId result);

/// First elements and strides of the matrices of an operand, which becomes row-major if it has
/// none.
Matrices take_matrices(Lowering& lowering, const Shape& batch, Repeated& operand);

template <typename To>
void set(const Matrices& from, To& strides, std::vector<std::int64_t>& offsets) {
  std::copy_n(from.strides, 2, strides);
  offsets = from.offsets;
}

/// Sets sizes, strides and offsets of a kernel's query, key and value.
template <typename Kernel>
void set_planes(Lowering& lowering, AttentionCall& call, const Shape& batch, Kernel& kernel) {
  kernel.type = call.query.source.type;
  const Shape query = call.query.shape();
  kernel.queries = query[query.size() - 2];
  kernel.width = query.back();
  kernel.value_width = call.value.shape().back();
  kernel.scale = call.scale;
  kernel.threads = lowering.machine().threads;
  set(take_matrices(lowering, batch, call.query), kernel.query_strides, kernel.query_offsets);
  set(take_matrices(lowering, batch, call.key), kernel.key_strides, kernel.key_offsets);
  set(take_matrices(lowering, batch, call.value), kernel.value_strides, kernel.value_offsets);
}

/// Where the result is written: swapped if the next op wants it so.
Value attention_target(Lowering& lowering, const AttentionShapes& shapes, DType type,
                       TensorId result);
/// Sets where a kernel writes.
template <typename Kernel>
void set_target(const AttentionShapes& shapes, const Value& target, Kernel& kernel) {
  kernel.result_row = strides_of(target.layout)[shapes.result.size() - 2];
  kernel.result_offsets = matrices_of(view_of(target), shapes.batch)->offsets;
}

/// A tensor that broadcasts to scores of shape `space`, as a view for scores of shape `scores` that
/// are the same matrices. Nothing if they cut it.
std::optional<Repeated> scores_view(Lowering& lowering, TensorId tensor, DType type,
                                    const Shape& space, const Shape& scores);

/// The kernel over a cache, which reads what the mask follows from; nothing where the operands are
/// none that it takes.
std::optional<Value> add_cached_attention(Lowering& lowering, AttentionCall call,
                                          const KeyMask& mask, TensorId result);
/// The same kernel over all keys that a mask of numbers does not hide, for an attention of few
/// queries, which does not pay for packing keys and values; nothing where it is none that it takes.
std::optional<Value> add_attention_of_few(Lowering& lowering, const AttentionCall& call,
                                          TensorId result);

}  // namespace npu::onednn
