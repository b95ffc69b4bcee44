// SPDX-License-Identifier: Apache-2.0
#pragma once

// What stands behind the anchor of a group: read from the sub-IR once, and then bound to the values
// of the kernel that is to do it.

#include <initializer_list>
#include <optional>
#include <vector>

#include "lowering/engine/node_arguments.hpp"
#include "program/post_ops.hpp"

namespace npu::onednn {

/// What stands behind the anchor of a group. A group of another kind has nothing there.
Lowered<Epilogue> read_epilogue(const Lowering& lowering, const KernelGroup& group);

/// An epilogue with its operands as values that lie like the result, or broadcast to it.
struct BoundEpilogue {
  struct Op {
    EpilogueOp op;
    std::optional<Value> operand;
    bool accumulates = false;  ///< the result is stored over the operand
  };
  std::vector<Op> ops;
  std::optional<Value> accumulated;  ///< the operand that the result is stored over

  /// The operands that a step reads beside that one, in order.
  std::vector<Value> reads() const;
};
/// The group's epilogue for a kernel whose result lies as `target` says. `anchor_reads` are
/// operands that must not be overwritten; without `may_accumulate` no operand is.
Lowered<BoundEpilogue> bind_epilogue(Lowering& lowering, const GroupContext& context,
                                     const Layout& target,
                                     std::initializer_list<Value> anchor_reads,
                                     bool may_accumulate = true);
/// Where a step stores its result: over the value that it is added to, or in memory of its own.
Value target_of(Lowering& lowering, const std::optional<Value>& accumulated, DType type,
                const Layout& layout);

/// The epilogue as post-ops of a primitive, and what the primitive reads for it.
struct PostOps {
  dnnl::post_ops operations;
  std::vector<PrimitiveOperand> reads;
};
Lowered<PostOps> post_ops_of(const Lowering& lowering, const BoundEpilogue& epilogue);
PostOpRecord post_op_of(const Eltwise& function);
/// Why a node is no post-op behind others.
NotFused second_function(const Lowering& lowering, NodeId node);

/// The epilogue as steps of one of our kernels, which reads `bound.reads()`.
struct OwnEpilogue {
  BoundEpilogue bound;
  std::vector<EpilogueStep> steps;
};
/// For a kernel that reads `source`.
Lowered<OwnEpilogue> own_epilogue(Lowering& lowering, const GroupContext& context,
                                  const Value& source, const Layout& layout);

}  // namespace npu::onednn
