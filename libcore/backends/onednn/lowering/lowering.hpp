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
#include <variant>
#include <vector>

#include "fusion/check_groups.hpp"
#include "kernels/epilogue.hpp"
#include "lowering/epilogue.hpp"
#include "lowering/journal.hpp"
#include "lowering/lowered.hpp"
#include "lowering/machine.hpp"
#include "lowering/quantized.hpp"
#include "lowering/repeated.hpp"
#include "npu/ir/graph.hpp"
#include "ops/op_name.hpp"
#include "ops/schema.hpp"
#include "program/implementations.hpp"
#include "program/plan.hpp"
#include "program/post_ops.hpp"
#include "program/weight_view.hpp"

namespace npu::onednn {

/// Lowers a verified sub-IR. Throws Error kUnsupported that names node, op, argument and reason for
/// what this backend does not run, kInvalidGraph where the sub-IR contradicts itself or `weights`.
/// Creates primitive descriptors, but no code.
/// Calls `checkpoint` before each node with its number and the number of nodes; it may throw.
/// Inputs and outputs lie as `boundaries` say; kInvalidGraph for a layout that there is not.
/// Where the machine prefers bfloat16, the plan computes in it if that is estimated to take less
/// time than float32; else it only stores weights in bfloat16, where reading them takes longest.
Plan lower_graph(const Graph& graph, std::span<const WeightView> weights, const Machine& machine,
                 const dnnl::engine& engine, const Checkpoint& checkpoint = {},
                 const LayoutNames& boundaries = {});

/// True for what oneDNN's primitives compute.
inline bool has_primitive_type(DType type) {
  return type == DType::kFloat32 || type == DType::kBFloat16;
}

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
  /// `stated` is the sub-IR, of which `graph` is what is computed (widened.hpp); both outlive it.
  Lowering(const Graph& graph, const Graph& stated, std::span<const WeightView> weights,
           const Machine& machine, const dnnl::engine& engine);
  Plan run(const Checkpoint& checkpoint, const LayoutNames& boundaries);

  const Machine& machine() const noexcept { return *machine_; }
  /// Channels in blocks as the machine's vectors have elements.
  Layout blocked(const Shape& shape, DType type) const {
    return blocked_layout(shape, type, machine_->lanes());
  }
  /// Convolutions of more than one tap on the longest way through the sub-IR; at least 1.
  std::int64_t convolution_depth() const noexcept { return convolution_depth_; }
  /// Floating-point operations of all nodes.
  double sub_ir_flops() const noexcept { return sub_ir_flops_; }
  /// The group being lowered, or null; an anchor has to do what its epilogue says.
  const FusionGroup* group() const noexcept { return group_; }
  /// True if the current node is an anchor with something behind it.
  bool has_epilogue() const noexcept;
  /// What that is, batch norms aside; empty if there is nothing.
  const Epilogue& epilogue() const noexcept { return epilogue_; }
  /// For an anchor of several kernels, of which not the first does what stands behind it.
  void drop_epilogue() { epilogue_ = {}; }
  /// False once an epilogue with a sum was refused.
  bool allows_sum() const noexcept { return allows_sum_; }
  /// True if the memory of a value may hold another one now: nothing reads it after this step.
  bool can_overwrite(const Value& value) const;
  /// To be called when a step overwrites it.
  void note_overwritten(const Value& value);
  /// True if the whole buffer of a value may become a part of another buffer.
  bool can_place(const Value& value) const;
  /// Makes it one, `offset_bytes` behind the beginning of `whole`.
  void place(BufferId part, BufferId whole, std::int64_t offset_bytes);
  /// Remembers what a concatenation was made of.
  void note_concat(std::vector<Value> operands, const Value& whole) {
    journal_.note([this] { concats_.pop_back(); });
    concats_.push_back({std::move(operands), whole});
  }
  /// The longest earlier concatenation, still free to be placed, of the values from `first` on;
  /// null if there is none.
  struct Concat {
    std::vector<Value> operands;
    Value whole;
  };
  const Concat* find_concat(const std::vector<Value>& values, std::size_t first) const;
  bool can_place(BufferId buffer) const;
  /// A pointwise convolution that the depthwise convolution behind it computes.
  struct Expansion {
    Value source;
    Value weight;  ///< plain, [channels, source channels, 1, 1]
    std::optional<Value> bias;
    std::vector<EpilogueStep> epilogue;  ///< without operands
  };
  /// A batch norm that the convolution of one by one behind it computes.
  struct Norm {
    Value source;
    Value vectors;  ///< [2, channels]: factors, terms
    bool relu = false;
  };
  /// Interpolations of parts of the channels that the pointwise convolution behind them reads: it
  /// is computed of each part as it is, and the results are interpolated and added.
  struct Resized {
    struct Part {
      Value source;
      Resample resample;  ///< without planes, lanes and type
    };
    Value source;  ///< one of the parts, laid out as all channels together
    std::vector<Part> parts;
  };
  /// What the kernel of the current convolution does to its source first.
  using Front = std::variant<std::monostate, Norm, Expansion, Resized>;
  const Front& front() const noexcept { return front_; }
  /// Lowers an anchor of a group's part with the work of the part in front of it.
  Lowered<Done> lower_with_front(const FusionGroup& part, Front front);
  /// The part whose anchor is read next, without lowering it.
  Lowered<Done> enter_part(const FusionGroup& part);
  std::size_t buffer_bytes(BufferId buffer) const { return plan_.buffers[index_of(buffer)].bytes; }
  /// The node that alone reads this tensor; invalid if there is none or it is a graph output.
  NodeId sole_reader(TensorId tensor) const { return only_consumer(*graph_, fusions_, tensor); }

  const Graph& graph() const noexcept { return *graph_; }
  const dnnl::engine& engine() const noexcept { return *engine_; }
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

  /// Whether the sub-IR says that the current node makes float16 of another dtype.
  bool rounds_to_float16() const;

  /// What a tensor is dequantized from; null if it is not.
  const Dequantization* dequantization(TensorId tensor) const;
  /// The result of a node that dequantizes, which is computed when something reads it.
  void define_dequantized(TensorId tensor, const Dequantization& dequantization);
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
  /// Sets an operand of the current group to quantized numbers, whatever its own dtype is: until
  /// they are taken, ops that only move or compare elements work on them. Returns what it was.
  std::optional<Value> replace_by_numbers(TensorId operand, const Value& numbers);
  /// The numbers that the op of the current group has made of `operand`, which becomes `floats`.
  Value take_numbers(TensorId result, TensorId operand, const std::optional<Value>& floats);

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
  /// The same, but a dimension in blocks stays so where it is a dimension of `shape`, too.
  Value viewed(const Value& value, const Shape& shape);

  /// True if the content is known when the program is loaded.
  bool is_constant(const Value& value) const;
  Value temporary(DType type, const Layout& layout);
  Value constant(float number);
  /// Row-major elements of `type` that are known now.
  Value constant(DType type, const Shape& shape, std::vector<std::byte> bytes);

  /// Adds a primitive; its scratchpad operand is added here.
  void add_primitive(const dnnl::primitive_desc_base& primitive,
                     std::initializer_list<PrimitiveOperand> reads, const Value& write);
  void add_primitive(const dnnl::primitive_desc_base& primitive,
                     std::span<const PrimitiveOperand> reads, const Value& write);
  /// Adds a kernel of our own for this machine's instruction set: it gets the addresses of what it
  /// reads, of what it writes and, if it asks for any, of scratch memory.
  void add_kernel(std::span<const Value> reads, const Value& write, Kernel kernel,
                  KernelKind kind = KernelKind::kCompute, std::size_t scratch_bytes = 0);
  void add_kernel(std::initializer_list<Value> reads, const Value& write, Kernel kernel,
                  KernelKind kind = KernelKind::kCompute, std::size_t scratch_bytes = 0);
  /// Says why the kernel was taken whose step is added next.
  void note_choice(KernelChoice choice) { choice_ = std::move(choice); }
  /// Copies a value into memory that exists already, in another layout.
  void copy_into(const Value& from, const Value& to, KernelKind kind);

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
  /// For a change that a transaction takes back.
  BufferInfo& changed_buffer(BufferId buffer);
  std::optional<Value>& changed_value(TensorId tensor);
  void set_value(TensorId tensor, const Value& value);
  void lower_group(const FusionGroup& group);
  void lower_group_nodes(const FusionGroup& group);
  Lowered<Done> try_group(const FusionGroup& group, bool with_sum);
  Lowered<Done> dispatch_group(const FusionGroup& group);
  Lowered<Done> set_group(const FusionGroup& group);
  void clear_group();
  void lower_front(const FusionGroup& group, std::size_t count);
  void lower_pieces(const FusionGroup& group);
  void lower_one_by_one(std::span<const NodeId> nodes);
  void note_splits();
  /// An operand in a part of a buffer as one in the buffer itself.
  Operand resolved(Operand operand) const;
  void resolve_parts();
  void collect_constants();
  void collect_taps();
  BufferId add_buffer(BufferInfo info);
  void generate(Step& step) const;
  void add_step(Step step);
  Value copied(const Value& value, DType type, const Layout& layout);
  const Value* find_copy(const Value& value, DType type, const Layout& layout) const;
  void bind_inputs(const LayoutNames& boundaries);
  void bind_outputs(const LayoutNames& boundaries);
  /// Makes the value of a tensor that waits to be read.
  void make_deferred(TensorId tensor);
  Value weight(TensorId tensor);
  /// The data that was passed for a weight; throws Error kInvalidGraph if it is not what the sub-IR
  /// says.
  const WeightView& given_weight(const TensorInfo& info) const;
  void lower_alone(const Node& node);
  Lowered<Done> lower_node(const Node& node);
  Lowered<Done> lower_in_types(const Node& node);

  const Graph* graph_;   ///< what is lowered
  const Graph* stated_;  ///< the sub-IR, whose inputs, weights and outputs the host passes
  std::span<const WeightView> weight_tensors_;
  const Machine* machine_;
  const dnnl::engine* engine_;
  FusionPlan fusions_;
  std::int64_t convolution_depth_;
  double sub_ir_flops_ = 0.0;
  const FusionGroup* group_ = nullptr;
  std::int32_t group_index_ = -1;  ///< in Plan::groups
  Epilogue epilogue_;              ///< of group_
  Front front_;
  bool allows_sum_ = true;
  bool binds_outputs_ = false;
  std::int32_t position_ = 0;  ///< in the list of nodes
  const Node* node_ = nullptr;
  std::int32_t node_index_ = -1;
  DType compute_type_ = DType::kFloat32;
  KernelChoice choice_;
  Plan plan_;
  Journal journal_;  ///< of what follows, of plan_ and of fusions_.last_use
  std::vector<std::optional<Value>> values_;  ///< by TensorId
  std::vector<std::size_t> set_after_;        ///< by TensorId: steps that there were then
  std::map<TensorId, Dequantization> dequantizations_;
  std::map<TensorId, Repeated> repeated_;
  bool moves_numbers_ = false;  ///< the current node works on quantized numbers as they are
  std::vector<Concat> concats_;
  std::map<std::int32_t, std::vector<TensorId>> readers_;  ///< tensors that lie in a buffer
  std::map<std::int32_t, std::vector<Copy>> copies_;  ///< by source buffer: reorders made so far
};

/// Throws Error for a sub-IR that no lowering function should see: kUnsupported for a tensor with
/// an extent that oneDNN does not count, kInvalidGraph for a result whose stated shape is not the
/// one that the operands give.
void check_shapes(const Graph& graph);
/// Convolutions of more than one tap on the longest way through a graph; at least 1.
std::int64_t convolution_depth(const Graph& graph);

/// Numbers as oneDNN takes them.
inline dnnl::memory::dims dims(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

/// The functions, applied one after the other, that a node of one operand stands for.
std::vector<Eltwise> unary_functions(const Lowering& lowering, const BoundNode& node);
/// The linear function that a node of arithmetic with a number stands for.
Eltwise number_function(const Lowering& lowering, const BoundNode& node);

/// Lowers one node of one op type.
using LowerFunction = void (*)(Lowering& lowering, const BoundNode& node);
/// Likewise for an op that may be the anchor of a group, and may then be refused with it.
using AnchorFunction = Lowered<Done> (*)(Lowering& lowering, const BoundNode& node);

/// One row of the table of ops.
struct LoweringRow {
  std::string_view op_type;
  std::variant<LowerFunction, AnchorFunction> lower;
};

/// Null for an op that this backend does not run.
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

/// A list argument with one value for every spatial dimension; each has to be at least `least`.
std::vector<std::int64_t> spatial_argument(const Lowering& lowering, const BoundNode& node,
                                           std::string_view name, std::size_t rank,
                                           std::int64_t least);
/// What an average pooling averages.
struct AverageWindows {
  Shape input;                               ///< [N, C, spatial..]
  Shape output;                              ///< likewise
  std::vector<std::vector<Window>> windows;  ///< by spatial dimension and position
  std::int64_t divisor = 0;                  ///< 0: that of each window
};
AverageWindows read_average(Lowering& lowering, const BoundNode& node);
/// The mean over all dimensions behind the channels, which stay as dimensions of 1; nothing if
/// oneDNN has no pooling of that rank, or none that is fast for images in rows.
std::optional<Value> add_plane_mean(Lowering& lowering, const Value& value);

/// What stands behind the anchor of a group. A group of another kind has nothing there.
Lowered<Epilogue> read_epilogue(const Lowering& lowering, const FusionGroup& group);

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
/// The current group's epilogue for a kernel whose result lies as `target` says. `anchor_reads` are
/// operands that must not be overwritten; without `may_accumulate` no operand is.
Lowered<BoundEpilogue> bind_epilogue(Lowering& lowering, const Layout& target,
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
/// The epilogue as steps of a kernel of our own, which reads `epilogue.reads()`.
Lowered<std::vector<EpilogueStep>> steps_of(const BoundEpilogue& epilogue);
/// Both, for a kernel of our own that reads `source`.
struct OwnEpilogue {
  BoundEpilogue bound;
  std::vector<EpilogueStep> steps;
};
Lowered<OwnEpilogue> own_epilogue(Lowering& lowering, const Value& source, const Layout& layout);
/// Weights [.., channels, ..] and bias with the batch norms of the current group's epilogue folded
/// in. `weight` is float32 or bfloat16 and plain; dimension 0 counts channels, or for a transposed
/// convolution dimension 1 within each of `groups` runs of dimension 0.
struct FoldedWeights {
  Value weight;
  std::optional<Value> bias;  ///< float32
};
Lowered<FoldedWeights> fold_norms(Lowering& lowering, const Value& weight,
                                  const std::optional<Value>& bias, std::int64_t groups,
                                  bool transposed);
/// True for oneDNN's plain loops, which stand in where no fast kernel fits.
bool is_reference(const dnnl::primitive_desc& primitive);
/// The float tensor that a dequantization gives.
Value add_dequantize(Lowering& lowering, const Dequantization& from);
Lowered<Done> lower_quantized_group(Lowering& lowering, const FusionGroup& group);
/// A product of integers of 8 bits whose result is int32, with what makes its factors.
Lowered<Done> lower_integer_group(Lowering& lowering, const FusionGroup& group);
/// A matrix product or a convolution of int32.
Lowered<Done> lower_wide_product(Lowering& lowering, const BoundNode& node);
Lowered<Done> lower_attention_group(Lowering& lowering, const FusionGroup& group);
Lowered<Done> lower_shared_input(Lowering& lowering, const FusionGroup& group);
Lowered<Done> lower_squeeze_excite_group(Lowering& lowering, const FusionGroup& group);
Lowered<Done> lower_norm_pointwise_group(Lowering& lowering, const FusionGroup& group);
Lowered<Done> lower_expand_depthwise_group(Lowering& lowering, const FusionGroup& group);
Lowered<Done> lower_written_gelu_group(Lowering& lowering, const FusionGroup& group);
Lowered<Done> lower_resized_pointwise_group(Lowering& lowering, const FusionGroup& group);

// Lowering functions, by family; see lowering_table.cpp for what uses them.
Lowered<Done> lower_convolution(Lowering& lowering, const BoundNode& node);
Lowered<Done> lower_batch_norm(Lowering& lowering, const BoundNode& node);
void lower_layer_norm(Lowering& lowering, const BoundNode& node);
void lower_unary(Lowering& lowering, const BoundNode& node);
void lower_binary(Lowering& lowering, const BoundNode& node);
void lower_max_pool(Lowering& lowering, const BoundNode& node);
void lower_average_pool(Lowering& lowering, const BoundNode& node);
void lower_adaptive_average_pool(Lowering& lowering, const BoundNode& node);
Lowered<Done> lower_transposed_convolution(Lowering& lowering, const BoundNode& node);
void lower_group_norm(Lowering& lowering, const BoundNode& node);
void lower_rms_norm(Lowering& lowering, const BoundNode& node);
void lower_power(Lowering& lowering, const BoundNode& node);
void lower_reduction(Lowering& lowering, const BoundNode& node);
void lower_reshape_as(Lowering& lowering, const BoundNode& node);
void lower_grid_sample(Lowering& lowering, const BoundNode& node);
Lowered<Done> lower_instance_norm(Lowering& lowering, const BoundNode& node);
void lower_recurrence(Lowering& lowering, const BoundNode& node);
void lower_resample(Lowering& lowering, const BoundNode& node);
void lower_unflatten(Lowering& lowering, const BoundNode& node);
void lower_move_dimension(Lowering& lowering, const BoundNode& node);
void lower_narrow(Lowering& lowering, const BoundNode& node);
void lower_pad(Lowering& lowering, const BoundNode& node);
void lower_quantize(Lowering& lowering, const BoundNode& node);
void lower_dequantize(Lowering& lowering, const BoundNode& node);
void lower_stack(Lowering& lowering, const BoundNode& node);
void lower_softmax(Lowering& lowering, const BoundNode& node);
Lowered<Done> lower_linear(Lowering& lowering, const BoundNode& node);
Lowered<Done> lower_addmm(Lowering& lowering, const BoundNode& node);
Lowered<Done> lower_matmul(Lowering& lowering, const BoundNode& node);
void lower_attention(Lowering& lowering, const BoundNode& node);
void lower_alias(Lowering& lowering, const BoundNode& node);
void lower_channel_norm(Lowering& lowering, const BoundNode& node);
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
void lower_unfold(Lowering& lowering, const BoundNode& node);
void lower_cat(Lowering& lowering, const BoundNode& node);
void lower_split(Lowering& lowering, const BoundNode& node);
void lower_unbind(Lowering& lowering, const BoundNode& node);
void lower_arange(Lowering& lowering, const BoundNode& node);
void lower_fill(Lowering& lowering, const BoundNode& node);
void lower_linspace(Lowering& lowering, const BoundNode& node);
void lower_meshgrid(Lowering& lowering, const BoundNode& node);
void lower_copy(Lowering& lowering, const BoundNode& node);
void lower_roll(Lowering& lowering, const BoundNode& node);
void lower_flip(Lowering& lowering, const BoundNode& node);
void lower_repeat(Lowering& lowering, const BoundNode& node);
void lower_repeat_interleave(Lowering& lowering, const BoundNode& node);
void lower_slice_scatter(Lowering& lowering, const BoundNode& node);
void lower_select_scatter(Lowering& lowering, const BoundNode& node);
void lower_shuffle(Lowering& lowering, const BoundNode& node);
void lower_triangle(Lowering& lowering, const BoundNode& node);
void lower_typed_binary(Lowering& lowering, const BoundNode& node);
void lower_typed_unary(Lowering& lowering, const BoundNode& node);
void lower_typed_clamp(Lowering& lowering, const BoundNode& node);
void lower_where(Lowering& lowering, const BoundNode& node);
void lower_masked_fill(Lowering& lowering, const BoundNode& node);
void lower_index(Lowering& lowering, const BoundNode& node);
void lower_index_put(Lowering& lowering, const BoundNode& node);
void lower_index_select(Lowering& lowering, const BoundNode& node);
void lower_gather(Lowering& lowering, const BoundNode& node);
void lower_scatter(Lowering& lowering, const BoundNode& node);
Lowered<Done> lower_einsum(Lowering& lowering, const BoundNode& node);
void lower_vector_norm(Lowering& lowering, const BoundNode& node);
void lower_integer_reduction(Lowering& lowering, const BoundNode& node);
void lower_arg_reduction(Lowering& lowering, const BoundNode& node);
void lower_running_sum(Lowering& lowering, const BoundNode& node);
void lower_sort(Lowering& lowering, const BoundNode& node);
void lower_grouped_product(Lowering& lowering, const BoundNode& node);
/// True for arithmetic on floats of one dtype, perhaps with a number, that is not rounded.
bool has_one_float_dtype(const Lowering& lowering, const BoundNode& node);
void lower_embedding(Lowering& lowering, const BoundNode& node);
/// getitem has no schema.
void lower_getitem(Lowering& lowering, const Node& node);

/// A node of the graph with its arguments by the schema of its op, which has to have one.
BoundNode bound(const Graph& graph, const Node& node);
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
Lowered<Value> add_matmul(Lowering& lowering, const MatmulCall& call);
/// Brings both factors to matrices of equal batches, or, with one right matrix for all, the left
/// ones below each other.
void share_batches(Lowering& lowering, Value& a, Value& b, const Shape& batch);
/// a [M, K] times the transpose of the constant weight [N, K], float32, plus the bias, by the
/// matrix product of our own that takes the least time and does all of the current group's
/// epilogue; nothing if oneDNN's does. The columns of `a` may lie in blocks, and those of the
/// result do if that is asked for and a kernel does it.
std::optional<Value> add_matrix_product(Lowering& lowering, const Value& a, const Value& weight,
                                        const std::optional<Value>& bias, bool wants_blocks);
/// Softmax or log-softmax of a dense float value along a dimension.
Value add_softmax(Lowering& lowering, const Value& value, std::size_t dimension, bool logarithm);
/// A function as a primitive in the layout of its operand, over it if nothing reads it later.
Value add_function(Lowering& lowering, const Eltwise& eltwise, const Value& source);
/// op(a, alpha * b) broadcast; operands in any layout, of which a has the type of the result.
Value add_binary(Lowering& lowering, BinaryOp op, const Value& a, const Value& b, float alpha);

}  // namespace npu::onednn
