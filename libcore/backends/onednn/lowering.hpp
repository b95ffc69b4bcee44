// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "npu/backend.h"
#include "npu/ir/graph.hpp"
#include "npu/ops/schema.hpp"
#include "plan.hpp"

namespace npu::onednn {

/// What lowering depends on besides the sub-IR.
struct Machine {
  dnnl::engine engine;
  bool native_bfloat16 = false;  ///< oneDNN has bfloat16 primitives for this CPU
};

/// Lowers a verified sub-IR. Throws Error kUnsupported that names node, op, argument and reason for
/// what this backend does not run, kInvalidGraph where the sub-IR contradicts itself or `weights`.
/// Creates primitive descriptors, but no code.
Plan lower_graph(const Graph& graph, std::span<const npu_tensor> weights, const Machine& machine);

/// One operand of a primitive.
struct PrimitiveOperand {
  int argument;  ///< DNNL_ARG_*
  Value value;
};

/// What a lowering function works with: the values of a graph under construction, and the steps
/// that it adds.
///
/// A node computes in `compute_type()`: bfloat16 if its tensors are and oneDNN has a primitive for
/// it, else float32 with its result rounded. Functions ask for operands in that type and hand in
/// results in it; they need not know how tensors are kept.
class Lowering {
 public:
  Lowering(const Graph& graph, std::span<const npu_tensor> weights, const Machine& machine);
  Plan run();

  const Graph& graph() const noexcept { return *graph_; }
  const dnnl::engine& engine() const noexcept { return machine_->engine; }
  const Node& node() const noexcept { return *node_; }
  const Shape& shape(TensorId tensor) const { return graph_->tensor(tensor).shape; }
  DType dtype(TensorId tensor) const { return graph_->tensor(tensor).dtype; }
  /// The only result of the node.
  TensorId result() const { return node_->outputs.front(); }

  /// Refuses the node. `argument` may be empty.
  [[noreturn]] void refuse(std::string_view argument, const std::string& reason) const;
  /// The sub-IR contradicts itself at this node.
  [[noreturn]] void invalid(const std::string& reason) const;
  /// The shape and dtype that the op's rules give a result have to be those that the sub-IR states.
  /// Setting a result checks that, too; asked first, it keeps a wrong document from making oneDNN
  /// work on absurd sizes.
  void check_result(TensorId tensor, const Shape& computed, DType dtype) const;
  /// Refuses the node unless the tensor is float32 or bfloat16.
  void require_float(std::string_view argument, TensorId tensor) const;

  DType compute_type() const noexcept { return compute_type_; }
  /// How a tensor of this type is kept in memory.
  DType storage_type(DType dtype) const noexcept;

  /// A tensor as it is kept, in whatever layout.
  Value stored(TensorId tensor);
  /// A floating-point tensor converted to `type` if it is kept in another, in whatever layout.
  Value operand(TensorId tensor, DType type);
  Value operand(TensorId tensor) { return operand(tensor, compute_type_); }
  /// The same tensor in row-major order; no copy if it is already.
  Value plain(const Value& value);
  /// The same tensor with no gaps in memory; views with gaps become row-major.
  Value dense(const Value& value);
  /// The same tensor with strides and without blocks.
  Value strided(const Value& value);
  Value in_layout(const Value& value, const Layout& layout);
  Value in_type(const Value& value, DType type);
  /// A row-major value seen with another shape of as many elements.
  Value reshaped(const Value& value, const Shape& shape);

  /// True if the content is known when the program is loaded.
  bool is_constant(const Value& value) const;
  Value temporary(DType type, const Layout& layout);
  Value constant(float number);

  /// Adds a primitive; its scratchpad operand is added here.
  void add_primitive(const dnnl::primitive_desc_base& primitive,
                     std::initializer_list<PrimitiveOperand> reads, const Value& write);
  void add_primitive(const dnnl::primitive_desc_base& primitive,
                     std::span<const PrimitiveOperand> reads, const Value& write);
  void add_kernel(std::span<const Value> reads, const Value& write, KernelFunction kernel);
  void add_kernel(std::initializer_list<Value> reads, const Value& write, KernelFunction kernel);

  /// Sets a result that arithmetic made, in memory of its own; it is rounded to the tensor's type.
  /// `computed` and `dtype` are what the op's rules give, and have to be what the sub-IR states.
  void define_computed(TensorId tensor, const Shape& computed, DType dtype, const Value& value);
  /// Sets a result whose elements are elements of operands, in their storage type.
  void define_moved(TensorId tensor, const Shape& computed, DType dtype, const Value& value);

  /// Attributes for a primitive that takes its scratchpad from the arena.
  static dnnl::primitive_attr attributes();

 private:
  struct Copy {
    Value from;
    Value to;
  };
  /// How far the plan had grown, to take back what was added since.
  struct Mark {
    std::size_t buffers;
    std::size_t prologue;
    std::size_t steps;
    std::size_t weights;
  };
  void undo(const Mark& mark);
  BufferId add_buffer(BufferInfo info);
  void add_step(Step step);
  Value copied(const Value& value, DType type, const Layout& layout);
  const Value* find_copy(const Value& value, DType type, const Layout& layout) const;
  void bind_inputs();
  void bind_outputs();
  Value weight(TensorId tensor);
  void lower_node(const Node& node);
  void lower_in_types(const Node& node);

  const Graph* graph_;
  std::span<const npu_tensor> weight_tensors_;
  const Machine* machine_;
  const Node* node_ = nullptr;
  std::int32_t node_index_ = -1;
  DType compute_type_ = DType::kFloat32;
  Plan plan_;
  std::vector<std::optional<Value>> values_;          ///< by TensorId
  std::map<std::int32_t, std::vector<Copy>> copies_;  ///< by source buffer: reorders made so far
};

/// Lowers one node of one op type.
using LowerFunction = void (*)(Lowering& lowering, const BoundNode& node);

/// One row of the table of ops.
struct LoweringRow {
  std::string_view op_type;
  LowerFunction lower;
};

/// Every op that this backend lowers, by name.
std::span<const LoweringRow> lowering_table();
const LoweringRow* find_lowering(std::string_view op_type);

/// "node 'x' (aten.relu.default)".
std::string node_text(const Node& node);
std::string number_text(std::int64_t value);

/// `dimension` counted from the front; refuses the node if it is outside the rank.
std::size_t normalize_dimension(const Lowering& lowering, std::string_view argument,
                                std::int64_t dimension, std::size_t rank);
/// The shape that two shapes broadcast to; refuses the node if they do not.
Shape broadcast_shape(const Lowering& lowering, const Shape& a, const Shape& b);
/// The required tensor argument; refuses the node if it is a number or None.
TensorId tensor_argument(const Lowering& lowering, const BoundNode& node, std::string_view name);

// Lowering functions, by family; see lowering_table.cpp for what uses them.
void lower_convolution(Lowering& lowering, const BoundNode& node);
void lower_batch_norm(Lowering& lowering, const BoundNode& node);
void lower_layer_norm(Lowering& lowering, const BoundNode& node);
void lower_unary(Lowering& lowering, const BoundNode& node);
void lower_binary(Lowering& lowering, const BoundNode& node);
void lower_max_pool(Lowering& lowering, const BoundNode& node);
void lower_average_pool(Lowering& lowering, const BoundNode& node);
void lower_adaptive_average_pool(Lowering& lowering, const BoundNode& node);
void lower_mean(Lowering& lowering, const BoundNode& node);
void lower_softmax(Lowering& lowering, const BoundNode& node);
void lower_linear(Lowering& lowering, const BoundNode& node);
void lower_addmm(Lowering& lowering, const BoundNode& node);
void lower_matmul(Lowering& lowering, const BoundNode& node);
void lower_attention(Lowering& lowering, const BoundNode& node);
void lower_alias(Lowering& lowering, const BoundNode& node);
void lower_dropout(Lowering& lowering, const BoundNode& node);
void lower_to(Lowering& lowering, const BoundNode& node);
void lower_reshape(Lowering& lowering, const BoundNode& node);
void lower_flatten(Lowering& lowering, const BoundNode& node);
void lower_squeeze(Lowering& lowering, const BoundNode& node);
void lower_unsqueeze(Lowering& lowering, const BoundNode& node);
void lower_permute(Lowering& lowering, const BoundNode& node);
void lower_transpose(Lowering& lowering, const BoundNode& node);
void lower_slice(Lowering& lowering, const BoundNode& node);
void lower_select(Lowering& lowering, const BoundNode& node);
void lower_expand(Lowering& lowering, const BoundNode& node);
void lower_cat(Lowering& lowering, const BoundNode& node);
void lower_split(Lowering& lowering, const BoundNode& node);
void lower_unbind(Lowering& lowering, const BoundNode& node);
void lower_arange(Lowering& lowering, const BoundNode& node);
void lower_embedding(Lowering& lowering, const BoundNode& node);
/// getitem has no schema.
void lower_getitem(Lowering& lowering, const Node& node);

/// What lower_linear and its like share. a is [.., M, K], b is [.., K, N]; both strided. bias is a
/// float32 vector of N elements. The result is row-major in `type`.
struct MatmulCall {
  Value a{};
  Value b{};
  std::optional<Value> bias;
  float scale = 1.0F;
  DType type = DType::kFloat32;
};
Value add_matmul(Lowering& lowering, const MatmulCall& call);
/// Softmax or log-softmax of a dense float value along a dimension.
Value add_softmax(Lowering& lowering, const Value& value, std::size_t dimension, bool logarithm);
/// op(a, alpha * b) broadcast; operands in any layout, of which a has the type of the result.
Value add_binary(Lowering& lowering, BinaryOp op, const Value& a, const Value& b, float alpha);

}  // namespace npu::onednn
