// SPDX-License-Identifier: Apache-2.0
// Turns a sub-IR into steps: walks the nodes in order, keeps a value per tensor, and lets one
// function per op add primitives or kernels. Nodes that stand in a fusion group are lowered
// together, where the last of them stands; if no kernel does what a group asks for, what was added
// is taken back, its parts or nodes are lowered one by one, and the plan says why.
//
// Layouts: a value stays in the layout that its producer chose (blocked behind a convolution) until
// a consumer or the host needs another; a reorder is made once per value and target layout. Views
// (permute, slice, reshape where strides allow) are strides over the same memory.
// Memory: in-place ops are functional. A step overwrites an operand only if it is the last to read
// that memory (can_overwrite); operands of a concatenation become parts of its memory (place).
// Constants: a step whose operands are all known at compile time goes to the prologue, which
// compile runs: weight reorders, folded norms, conversions, whole sub-graphs of weights. bfloat16:
// where oneDNN has no bfloat16 primitives (CPUs before AVX-512), values are kept as float32 that
// are rounded to bfloat16 after every op, which gives the same numbers. Where it has them but not
// for some node, that node alone computes in float32. float16 is float32 inside (widened.cpp).
#include "lowering/lowering.hpp"

#include <algorithm>
#include <unordered_map>

#include "lowering/promotion.hpp"
#include "lowering/widened.hpp"
#include "npu/support/error.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::onednn {

namespace {

constexpr std::size_t kMaxRank = 8;

TensorBinding binding_of(const TensorInfo& tensor) {
  return {tensor.name, tensor.dtype, tensor.shape};
}

/// Of an input or output.
TensorBinding binding_of(const TensorInfo& tensor, const LayoutNames& boundaries) {
  TensorBinding binding = binding_of(tensor);
  const auto found = boundaries.find(tensor.name);
  if (found == boundaries.end()) return binding;
  binding.layout = found->second;
  if (find_boundary_layout(binding.layout, binding.shape, binding.dtype) == nullptr) {
    throw Error(ErrorCode::kInvalidGraph,
                "there is no layout '" + binding.layout + "' for '" + tensor.name + "' (" +
                    std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape) + ")");
  }
  return binding;
}

/// Where the host has its elements.
Layout boundary_layout_of(const TensorBinding& binding) {
  const auto* named = find_boundary_layout(binding.layout, binding.shape, binding.dtype);
  return named == nullptr ? plain_layout(binding.shape, binding.dtype)
                          : named_layout(*named, binding.shape, binding.dtype);
}

}  // namespace

std::string node_text(const Node& node) {
  return "node '" + node.name + "' (" + node.op_type + ")";
}

std::string number_text(std::int64_t value) { return std::to_string(value); }

Lowering::Lowering(const Graph& graph, const Graph& stated, std::span<const WeightView> weights,
                   const Machine& machine, const dnnl::engine& engine)
    : graph_(&graph),
      stated_(&stated),
      weight_tensors_(weights),
      machine_(&machine),
      engine_(&engine),
      fusions_(check_groups(graph, machine.isa)),
      convolution_depth_(npu::onednn::convolution_depth(graph)),
      values_(graph.tensors().size()),
      set_after_(graph.tensors().size(), 0) {
  for (const Node& node : graph.nodes()) sub_ir_flops_ += node_flops(graph, node);
}

bool Lowering::has_epilogue() const noexcept {
  return group_ != nullptr && group_->kind == FusionGroup::Kind::kEpilogue;
}

void Lowering::refuse(std::string_view argument, const std::string& reason) const {
  std::string text = node_text(*node_) + ": ";
  if (!argument.empty()) text += "argument '" + std::string(argument) + "': ";
  throw Error(ErrorCode::kUnsupported, text + reason);
}

void Lowering::invalid(const std::string& reason) const {
  throw Error(ErrorCode::kInvalidGraph, node_text(*node_) + ": " + reason);
}

void Lowering::require_float(std::string_view argument, TensorId tensor) const {
  if (!has_primitive_type(dtype(tensor))) {
    refuse(argument, "dtype " + std::string(dtype_name(dtype(tensor))) +
                         " is not supported; use float32 or bfloat16");
  }
}

DType Lowering::storage_type(DType dtype) const noexcept {
  if (dtype == DType::kFloat16) dtype = DType::kFloat32;
  if (dtype == DType::kBFloat16 && !machine_->native_bfloat16) return DType::kFloat32;
  if (dtype == DType::kFloat32 && machine_->prefer_bfloat16 && machine_->native_bfloat16) {
    return DType::kBFloat16;
  }
  return dtype;
}

Value Lowering::in_layout(const Value& value, const Layout& layout) {
  if (value.layout != layout) return copied(value, value.type, layout);
  // Equal layouts may still state other strides where an extent is 1, and by these oneDNN chooses.
  Value same = value;
  same.layout = layout;
  return same;
}

Value Lowering::plain(const Value& value) {
  const Layout layout = plain_layout(dimensions(value.layout), value.type);
  if (is_plain(value.layout)) {
    Value same = value;
    same.layout = layout;
    return same;
  }
  return copied(value, value.type, layout);
}

Value Lowering::dense(const Value& value) { return is_dense(value.layout) ? value : plain(value); }

Value Lowering::strided(const Value& value) {
  return is_strided(value.layout) ? value : plain(value);
}

Value Lowering::in_type(const Value& value, DType type) {
  if (value.type == type) return value;
  const Value source = dense(value);
  return copied(source, type, with_type(source.layout, type));
}

Value Lowering::reshaped(const Value& value, const Shape& shape) {
  if (dimensions(value.layout) == shape) return is_strided(value.layout) ? value : plain(value);
  if (!is_plain(value.layout) && is_strided(value.layout)) {
    // The same memory where strides allow.
    if (const auto strides = view_strides(value.layout, shape)) {
      Value result = value;
      result.layout = strided_layout(shape, *strides, value.type);
      return result;
    }
  }
  Value result = plain(value);
  result.layout = plain_layout(shape, value.type);
  return result;
}

Value Lowering::viewed(const Value& value, const Shape& shape) {
  if (is_plain(value.layout)) return reshaped(value, shape);
  const auto layout = view_blocks(value.layout, shape);
  if (!layout) return reshaped(value, shape);
  Value result = value;
  result.layout = *layout;
  return result;
}

BoundNode bound(const Graph& graph, const Node& node) {
  return BoundNode(graph, node, find_op(node.op_type)->schema);
}

const WeightView& Lowering::given_weight(const TensorInfo& info) const {
  const auto found =
      std::find_if(weight_tensors_.begin(), weight_tensors_.end(),
                   [&](const WeightView& candidate) { return candidate.name == info.name; });
  if (found == weight_tensors_.end()) {
    throw Error(ErrorCode::kInvalidGraph, "no data was passed for weight '" + info.name + "'");
  }
  if (found->dtype != info.dtype || found->shape != info.shape) {
    throw Error(ErrorCode::kInvalidGraph,
                "weight '" + info.name + "' was passed with another dtype or shape " +
                    shape_text(found->shape) + "; the sub-IR says " +
                    std::string(dtype_name(info.dtype)) + " " + shape_text(info.shape));
  }
  const bool has_data = found->data != nullptr || machine_->only_checks;
  if (found->bytes != static_cast<std::uint64_t>(info.bytes()) || !has_data) {
    throw Error(ErrorCode::kInvalidGraph,
                "weight '" + info.name + "' was passed with " + std::to_string(found->bytes) +
                    " bytes; its shape needs " + std::to_string(info.bytes()));
  }
  return *found;
}

Value Lowering::weight(TensorId tensor) {
  const TensorInfo& info = stated_->tensor(tensor);
  given_weight(info);
  const std::size_t index = plan_.weights.size();
  const Layout layout = plain_layout(info.shape, info.dtype);
  const auto bytes = static_cast<std::size_t>(info.bytes());
  journal_.note([this] { plan_.weights.pop_back(); });
  plan_.weights.push_back(binding_of(info));
  const Value value{info.dtype, layout,
                    add_buffer({BufferKind::kWeight, bytes, index, {}, {}, 0, false}), 0};
  const bool is_narrowed =
      info.dtype == DType::kFloat64 && graph_->tensor(tensor).dtype == DType::kFloat32;
  return is_narrowed ? cast_value(*this, value, DType::kFloat32) : value;
}

Value Lowering::stored(TensorId tensor) {
  make_deferred(tensor);
  std::optional<Value>& value = values_[index_of(tensor)];
  if (!value) changed_value(tensor) = weight(tensor);
  // Inputs and weights come in the tensor's own type. The tensor is read from the copy from now on,
  // which nothing may overwrite before its last reader.
  if (value->type != storage_type(value->type)) {
    set_value(tensor, in_type(*value, storage_type(value->type)));
  }
  return *value;
}

Value Lowering::operand(TensorId tensor, DType type) {
  make_deferred(tensor);
  // A weight goes from its own type to the wanted one, not through the type that values are kept
  // in.
  std::optional<Value>& value = values_[index_of(tensor)];
  if (!value && graph_->tensor(tensor).kind == TensorKind::kWeight) {
    changed_value(tensor) = weight(tensor);
  }
  if (value && value->type == type) return *value;
  const bool is_wide = value && (value->type == DType::kFloat32 || value->type == DType::kFloat16);
  if (is_wide && is_constant(*value)) return in_type(*value, type);
  return in_type(stored(tensor), type);
}

void Lowering::check_result(TensorId tensor, const Shape& computed, DType dtype) const {
  const TensorInfo& info = graph_->tensor(tensor);
  if (info.shape != computed) {
    invalid("result '" + info.name + "' is stated as " + shape_text(info.shape) +
            ", but the op gives " + shape_text(computed));
  }
  if (info.dtype != dtype) {
    invalid("result '" + info.name + "' is stated as " + std::string(dtype_name(info.dtype)) +
            ", but the op gives " + std::string(dtype_name(dtype)));
  }
}

void Lowering::define_computed(TensorId tensor, const Shape& computed, DType dtype,
                               const Value& value) {
  check_result(tensor, computed, dtype);
  if (moves_numbers_) return set_value(tensor, value);
  Value result = value;
  if (has_epilogue() && tensor == node_->outputs.front()) {
    tensor = graph_->node(group_->nodes.back()).outputs.front();
    if (shape(tensor) != computed) result = viewed(result, shape(tensor));
  }
  if (result.type != storage_type(dtype)) {
    result = in_type(result, storage_type(dtype));
  } else if (dtype == DType::kBFloat16 && result.type == DType::kFloat32) {
    const std::int64_t count = span_elements(result.layout);
    add_kernel({result}, result, RoundToBFloat16{count}, KernelKind::kReorder);
  }
  set_value(tensor, result);
}

bool Lowering::rounds_to_float16() const {
  return stated_->tensor(result()).dtype == DType::kFloat16 &&
         stated_->tensor(node_->inputs.front()).dtype != DType::kFloat16;
}

void Lowering::define_moved(TensorId tensor, const Shape& computed, DType dtype,
                            const Value& value) {
  check_result(tensor, computed, dtype);
  set_value(tensor, value);
}

void Lowering::bind_inputs(const LayoutNames& boundaries) {
  for (const TensorId id : stated_->graph_inputs()) {
    const TensorInfo& info = stated_->tensor(id);
    const std::size_t index = plan_.inputs.size();
    plan_.inputs.push_back(binding_of(info, boundaries));
    if (info.bytes() == 0) continue;
    const auto bytes = static_cast<std::size_t>(info.bytes());
    values_[index_of(id)] =
        Value{info.dtype, boundary_layout_of(plan_.inputs.back()),
              add_buffer({BufferKind::kInput, bytes, index, {}, {}, 0, false}), 0};
  }
}

void Lowering::bind_outputs(const LayoutNames& boundaries) {
  for (const TensorId id : stated_->graph_outputs()) {
    const TensorInfo& info = stated_->tensor(id);
    const std::size_t index = plan_.outputs.size();
    const TensorBinding& binding = plan_.outputs.emplace_back(binding_of(info, boundaries));
    node_index_ = info.kind == TensorKind::kResult ? info.producer.value : -1;
    if (info.bytes() == 0 || info.shape.size() > kMaxRank) {
      throw Error(ErrorCode::kUnsupported, "graph output '" + info.name + "' of shape " +
                                               shape_text(info.shape) +
                                               ": a tensor without elements or of rank above " +
                                               std::to_string(kMaxRank) + " is not supported");
    }
    const Value native = stored(id);
    plan_.native_layouts.push_back(boundary_name(native.layout, info.dtype));
    const Value value =
        binding.layout.empty()
            ? plain(native)
            : in_layout(native, with_type(boundary_layout_of(binding), native.type));
    BufferInfo& buffer = plan_.buffers[index_of(value.buffer)];
    const auto bytes = static_cast<std::size_t>(info.bytes());
    const bool writes_in_place = buffer.kind == BufferKind::kArena && value.offset == 0 &&
                                 value.type == info.dtype && buffer.bytes == bytes &&
                                 buffer.parent.value < 0;
    if (writes_in_place) {
      buffer.kind = BufferKind::kOutput;
      buffer.index = index;
      continue;
    }
    const Value target{info.dtype, boundary_layout_of(binding),
                       add_buffer({BufferKind::kOutput, bytes, index, {}, {}, 0, false}), 0};
    const DType from = value.type;
    const DType to = info.dtype;
    const std::int64_t count = span_elements(target.layout);
    const Kernel kernel = from == to ? Kernel{CopyBytes{static_cast<std::int64_t>(bytes)}}
                                     : Kernel{Convert{from, to, count}};
    add_kernel({value}, target, kernel, KernelKind::kReorder);
  }
}

Lowered<Done> Lowering::lower_in_types(const Node& node) {
  if (node.op_type == kGetitem) {
    lower_getitem(*this, node);
    return Done{};
  }
  const LoweringRow* row = find_lowering(node.op_type);
  const OpInfo* info = find_op(node.op_type);
  if (row == nullptr || info == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                node_text(node) + ": the onednn backend does not run this op");
  }
  const BoundNode bound(*graph_, node, info->schema);
  if (const auto* anchor = std::get_if<AnchorFunction>(&row->lower)) return (*anchor)(*this, bound);
  std::get<LowerFunction>(row->lower)(*this, bound);
  return Done{};
}

/// A node that is in no group, so that nothing stands behind it that a kernel could refuse.
void Lowering::lower_alone(const Node& node) {
  const Lowered<Done> done = lower_node(node);
  if (!done) refuse("", done.refusal().reason);
}

Lowered<Done> Lowering::lower_node(const Node& node) {
  node_ = &node;
  if (node.outputs.empty()) refuse("", "a node without results is not supported");
  for (const auto* tensors : {&node.inputs, &node.outputs}) {
    for (const TensorId id : *tensors) {
      const TensorInfo& info = graph_->tensor(id);
      if (info.bytes() == 0) refuse("", "tensor '" + info.name + "' has no elements");
      if (info.shape.size() > kMaxRank) {
        refuse("", "tensor '" + info.name + "' has rank " + std::to_string(info.shape.size()) +
                       "; the largest supported is " + std::to_string(kMaxRank));
      }
    }
  }
  compute_type_ = storage_type(dtype(node.outputs.front())) == DType::kBFloat16 ? DType::kBFloat16
                                                                                : DType::kFloat32;
  if (compute_type_ == DType::kFloat32) return lower_in_types(node);

  try {
    Transaction attempt(journal_);
    Lowered<Done> done = lower_in_types(node);
    if (done) attempt.keep();
    return done;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
  }
  choice_ = {};
  compute_type_ = DType::kFloat32;
  return lower_in_types(node);
}

/// Operands in parts of a buffer become operands in the buffer itself.
void Lowering::resolve_parts() {
  for (Step& step : plan_.steps) {
    for (Operand& operand : step.operands) operand = resolved(operand);
  }
}

void Lowering::collect_constants() {
  std::vector<bool> seen(plan_.buffers.size(), false);
  for (const Step& step : plan_.steps) {
    for (std::size_t i = 0; i < step.read_count; ++i) {
      const auto index = index_of(step.operands[i].buffer);
      const BufferKind kind = plan_.buffers[index].kind;
      if (seen[index] || (kind != BufferKind::kWeight && kind != BufferKind::kConstant)) continue;
      seen[index] = true;
      plan_.constants.push_back(step.operands[i].buffer);
    }
  }
}

Plan Lowering::run(const Checkpoint& checkpoint, const LayoutNames& boundaries) {
  plan_.node_count = graph_->nodes().size();
  bind_inputs(boundaries);
  for (const Node& node : graph_->nodes()) {
    const auto index = static_cast<std::size_t>(&node - graph_->nodes().data());
    position_ = static_cast<std::int32_t>(index);
    node_index_ = position_;
    if (checkpoint) checkpoint(index, plan_.node_count);
    if (fusions_.dead[index]) continue;
    const std::int32_t group_index = fusions_.group_of[index];
    try {
      if (group_index < 0) {
        lower_alone(node);
        continue;
      }
      const FusionGroup& group = fusions_.groups[static_cast<std::size_t>(group_index)];
      const bool at_first = group.kind == FusionGroup::Kind::kSharedInput;
      const NodeId where = at_first ? group.nodes.front() : group.nodes.back();
      if (index_of(where) == index) lower_group(group);
    } catch (const dnnl::error& error) {
      if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
      throw Error(ErrorCode::kUnsupported,
                  node_text(*node_) + ": oneDNN has no primitive for it: " + error.message);
    }
  }
  binds_outputs_ = true;
  bind_outputs(boundaries);
  resolve_parts();
  collect_constants();
  collect_taps();
  note_splits();
  return std::move(plan_);
}

namespace {

/// Whether products in bfloat16, which are oneDNN's, take less time than what a plan in float32
/// has: other kernels multiply less than the definition asks for.
bool gains_by_bfloat16(const Plan& plan, double rate) {
  constexpr double kWorthIt = 0.95;  // what is gained has to be worth the rounding
  double floats = 0.0;
  double narrow = 0.0;
  for (const Step& step : plan.steps) {
    if (!step.choice.cycles || !step.choice.primitive_cycles) continue;
    floats += *step.choice.cycles;
    narrow += *step.choice.primitive_cycles / rate;
  }
  return narrow < kWorthIt * floats;
}

}  // namespace

Plan lower_graph(const Graph& graph, std::span<const WeightView> weights, const Machine& machine,
                 const dnnl::engine& engine, const Checkpoint& checkpoint,
                 const LayoutNames& boundaries) {
  check_shapes(graph);
  const std::optional<Graph> wide = widened(graph);
  const auto lower_on = [&](const Machine& chosen, const Checkpoint& watch) {
    return Lowering(wide ? *wide : graph, graph, weights, chosen, engine).run(watch, boundaries);
  };
  if (!machine.prefer_bfloat16) return lower_on(machine, checkpoint);
  // Two passes at most, of which each is a half.
  const auto pass = [&](std::size_t passes_before) {
    Checkpoint watch;
    if (!checkpoint) return watch;
    watch = [&checkpoint, passes_before](std::size_t done, std::size_t total) {
      checkpoint(passes_before * total + done, 2 * total);
    };
    return watch;
  };
  Machine floats = machine;
  floats.prefer_bfloat16 = false;
  floats.weight_type = DType::kBFloat16;
  Plan plan = lower_on(floats, pass(0));
  const bool gains = machine.native_bfloat16 && machine.bfloat16_rate > 0.0 &&
                     gains_by_bfloat16(plan, machine.bfloat16_rate);
  if (!gains) return plan;
  plan = lower_on(machine, pass(1));
  plan.computes_in_bfloat16 = true;
  return plan;
}

std::size_t normalize_dimension(const Lowering& lowering, std::string_view argument,
                                std::int64_t dimension, std::size_t rank) {
  const auto limit = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  if (dimension < -limit || dimension >= limit) {
    lowering.invalid("argument '" + std::string(argument) + "': dimension " +
                     number_text(dimension) + " is not in a tensor of rank " +
                     std::to_string(rank));
  }
  return static_cast<std::size_t>(dimension < 0 ? dimension + limit : dimension);
}

Shape broadcast_shape(const Lowering& lowering, const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      lowering.invalid("shapes " + shape_text(a) + " and " + shape_text(b) + " do not broadcast");
    }
    result[result.size() - 1 - i] = from_a == 1 ? from_b : from_a;
  }
  return result;
}

TensorId tensor_argument(const Lowering& lowering, const BoundNode& node, std::string_view name) {
  const auto tensor = node.tensor(name);
  if (!tensor) lowering.refuse(name, "only a tensor is supported here");
  return *tensor;
}

}  // namespace npu::onednn
