// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/kernel.hpp"
#include "lowering/engine/bound_epilogue.hpp"
#include "lowering/engine/candidate.hpp"

namespace npu::onednn {

/// The same elements with the last two dimensions exchanged.
Value swapped(const Value& value);

/// What lower_linear and its like share. a is [.., M, K], b is [.., K, N]; both strided. bias is a
/// float32 vector of N elements. The result is row-major in `type`.
struct MatmulCall {
  Value a{};
  Value b{};
  std::optional<Value> bias;
  float scale = 1.0F;
  DType type = DType::kFloat32;
  bool wants_blocks = false;    ///< of columns in the result, rather than rows
  std::optional<Value> addend;  ///< float32 as `type` is, not constant; broadcasts to the result
  float addend_scale = 1.0F;
};
Lowered<Value> add_matmul(Lowering& lowering, const GroupContext& context, const MatmulCall& call);
/// Brings both factors to matrices of equal batches, or, with one right matrix for all, the left
/// ones below each other.
void share_batches(Lowering& lowering, Value& a, Value& b, const Shape& batch);

/// Weights in the order of one of our kernels, `count` of them, made when they are compiled.
/// `order` reads the row-major weights.
Value ordered_weights(Lowering& lowering, const Value& weight, std::size_t count, Kernel order);

/// What one of our products reads beside its source.
struct Factors {
  Value weight;  ///< [columns, inner..]
  std::optional<Value> bias;
  const Norm* norm = nullptr;
};
/// One of our products, or none.
struct OwnProduct {
  std::optional<Value> value;
  KernelChoice choice;  ///< without a value: why it is oneDNN's
};
/// a [M, K] times the transpose of the constant weight [N, K], float32, plus the bias, by the one
/// of our matrix products that takes the least time and does all of the group's epilogue. The
/// columns of `a` may lie in blocks, and those of the result do if that is asked for and a kernel
/// does it.
OwnProduct add_matrix_product(Lowering& lowering, const GroupContext& context, const Value& a,
                              const Value& weight, const std::optional<Value>& bias,
                              bool wants_blocks);
/// Adds the first of the candidates, a Gemv, a HalfGemm or a PackedGemm, with the group's
/// epilogue.
Lowered<Value> add_first_product(Lowering& lowering, const GroupContext& context,
                                 const std::vector<Candidate>& candidates, const Value& source,
                                 const Factors& factors, const Layout& layout);
/// A product of which shape and steps are set, and the group's epilogue.
Lowered<Value> add_packed_gemm(Lowering& lowering, const GroupContext& context, PackedGemm gemm,
                               const Value& source, Factors factors, const Layout& layout,
                               KernelChoice choice);

Lowered<Done> lower_addmm(Lowering& lowering, const GroupContext& context, const BoundNode& node);
Lowered<Done> lower_einsum(Lowering& lowering, const GroupContext& context, const BoundNode& node);
void lower_grouped_product(Lowering& lowering, const GroupContext& context, const BoundNode& node);
Lowered<Done> lower_linear(Lowering& lowering, const GroupContext& context, const BoundNode& node);
Lowered<Done> lower_matmul(Lowering& lowering, const GroupContext& context, const BoundNode& node);
/// Linear nodes with one input: one product, of which each result is a part.
Lowered<Done> lower_shared_input(Lowering& lowering, const GroupContext& context);

}  // namespace npu::onednn
