// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lowering/engine/dequantization.hpp"
#include "lowering/engine/entry_rows.hpp"
#include "lowering/engine/group_context.hpp"
#include "lowering/engine/key_mask.hpp"
#include "lowering/engine/lowered.hpp"
#include "lowering/engine/plan_builder.hpp"
#include "lowering/engine/repeated.hpp"
#include "program/weight_view.hpp"

namespace npu::onednn {

/// What a lowering function works with: the plan that it adds steps to, and the values of a graph's
/// tensors.
class Lowering : public PlanBuilder {
 public:
  /// `stated` is the sub-IR, of which `graph` is what is computed (widened.hpp); these and
  /// `entries` outlive it.
  Lowering(const Graph& graph, const Graph& stated, std::span<const WeightView> weights,
           const Machine& machine, const dnnl::engine& engine, const EntryRows& entries);

  const Graph& graph() const noexcept { return *graph_; }
  const Shape& shape(TensorId tensor) const { return graph_->tensor(tensor).shape; }
  DType dtype(TensorId tensor) const { return graph_->tensor(tensor).dtype; }
  /// The only result of the node.
  TensorId result() const { return node_->outputs.front(); }
  /// Convolutions of more than one tap on the longest way through the sub-IR; at least 1.
  std::int64_t convolution_depth() const noexcept { return convolution_depth_; }
  /// Rows of the node that is being lowered in all entries; `rows` are those in this one.
  RowRange rows_in_entries(std::int64_t rows) const { return entries_->of(node(), rows); }
  /// Floating-point operations of all nodes.
  double sub_ir_flops() const noexcept { return sub_ir_flops_; }
  /// The node that alone reads this tensor; invalid if there is none or it is a graph output.
  NodeId sole_reader(TensorId tensor) const { return only_consumer(*graph_, fusions_, tensor); }

  /// Lowers a node; what it computes in is set here.
  Lowered<Done> lower_node(GroupContext context, const Node& node);
  /// Makes the anchor of a group, or of a part of one, the current node, and says what it is
  /// lowered as.
  Lowered<GroupContext> enter(const KernelGroup& group);

  /// The shape and dtype that the op's rules give a result have to be those that the sub-IR states.
  /// Setting a result checks that, too; asked first, it keeps a wrong document from making oneDNN
  /// work on absurd sizes.
  void check_result(TensorId tensor, const Shape& computed, DType dtype) const;
  /// Refuses the node unless the tensor is float32 or bfloat16.
  void require_float(std::string_view argument, TensorId tensor) const;
  /// Whether the sub-IR says that the current node makes float16 of another dtype.
  bool rounds_to_float16() const;

  /// How a tensor of this type is kept in memory.
  DType storage_type(DType dtype) const noexcept;

  /// A tensor as it is kept, in whatever layout.
  Value stored(TensorId tensor);
  /// A floating-point tensor converted to `type` if it is kept in another, in whatever layout.
  Value operand(TensorId tensor, DType type);
  /// Sets a result that arithmetic made, in memory of its own; it is rounded to the tensor's type.
  /// `computed` and `dtype` are what the op's rules give, and have to be what the sub-IR states.
  void define_computed(const GroupContext& context, TensorId tensor, const Shape& computed,
                       DType dtype, const Value& value);
  /// Sets a result whose elements are elements of operands, in their storage type.
  void define_moved(TensorId tensor, const Shape& computed, DType dtype, const Value& value);

  /// True if the memory of a value may hold another one now: nothing reads it after this step.
  bool can_overwrite(const Value& value) const;

  /// What a tensor is dequantized from; null if it is not.
  const Dequantization* dequantization(TensorId tensor) const;
  using MakeFloats = Value (*)(Lowering& lowering, const Dequantization& from);
  /// The result of a node that dequantizes, which `make` computes when something reads it as
  /// floats.
  void define_dequantized(TensorId tensor, const Dequantization& from, MakeFloats make);
  /// What a tensor that is a mask over keys follows from; null if it is none.
  const KeyMask* key_mask(TensorId tensor) const;
  using MakeMask = Value (*)(Lowering& lowering, const KeyMask& from);
  /// The result of a node that is such a mask, which `make` computes when something reads it as a
  /// tensor.
  void define_key_mask(TensorId tensor, const KeyMask& from, MakeMask make);
  /// The view that a tensor is as long as nothing has asked for a copy of it; null for others.
  const Repeated* repeated(TensorId tensor) const;
  /// A result that is a view with repeated elements, of which a copy is made when something reads
  /// it as a value.
  void define_repeated(TensorId tensor, DType dtype, Repeated view);
  /// A tensor as `operand` gives it, without a copy of its repeated elements.
  Repeated operand_view(TensorId tensor, DType type);
  /// Those of a weight of int8; nothing for other tensors, and for questions, which have no data.
  std::optional<std::span<const std::int8_t>> known_bytes(TensorId tensor) const;
  /// The numbers of a weight of the sub-IR; nothing if a step computes the tensor.
  std::optional<std::vector<double>> known_numbers(TensorId tensor) const;
  /// Sets an operand of a group to quantized numbers, whatever its own dtype is: until they are
  /// taken, ops that only move or compare elements work on them. Returns what it was.
  std::optional<Value> replace_by_numbers(TensorId operand, const Value& numbers);
  /// The numbers that the op of the group has made of `operand`, which becomes `floats`.
  Value take_numbers(TensorId result, TensorId operand, const std::optional<Value>& floats);

 protected:
  std::optional<Value>& changed_value(TensorId tensor);
  void set_value(TensorId tensor, const Value& value);

  const Graph* graph_;   ///< what is lowered
  const Graph* stated_;  ///< the sub-IR, whose inputs, weights and outputs the host passes
  CheckedGroups fusions_;
  std::int32_t position_ = 0;                 ///< in the list of nodes
  std::vector<std::optional<Value>> values_;  ///< by TensorId
  std::vector<std::size_t> set_after_;        ///< by TensorId: steps that there were then

 private:
  struct Dequantized {
    Dequantization from;
    MakeFloats make;
  };

  struct WaitingMask {
    KeyMask from;
    MakeMask make;
  };

  Lowered<Done> lower_in_types(const GroupContext& context, const Node& node);
  /// Makes the value of a tensor that waits to be read.
  void make_deferred(TensorId tensor);
  Value weight(TensorId tensor);
  /// The data that was passed for a weight; throws Error kInvalidGraph if it is not what the sub-IR
  /// says.
  const WeightView& given_weight(const TensorInfo& info) const;

  std::span<const WeightView> weight_tensors_;
  const EntryRows* entries_;
  std::int64_t convolution_depth_;
  double sub_ir_flops_ = 0.0;
  std::map<TensorId, Dequantized> dequantizations_;
  std::map<TensorId, WaitingMask> key_masks_;
  std::map<TensorId, Repeated> repeated_;
  std::map<std::int32_t, std::vector<TensorId>> readers_;  ///< tensors that lie in a buffer
};

}  // namespace npu::onednn
