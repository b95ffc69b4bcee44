// SPDX-License-Identifier: Apache-2.0
// The values of a graph's tensors while its nodes are lowered, and the lowering of one node.
//
// Memory: in-place ops are functional. A step overwrites an operand only if it is the last to read
// that memory (can_overwrite). bfloat16: where oneDNN has no bfloat16 primitives (CPUs before
// AVX-512), values are kept as float32 that are rounded to bfloat16 after every op, which gives the
// same numbers. Where it has them but not for some node, that node alone computes in float32.
// float16 is float32 inside (widened.cpp).
#include "lowering/engine/lowering.hpp"

#include <algorithm>
#include <utility>

#include "lowering/engine/bound_epilogue.hpp"
#include "lowering/engine/op_table.hpp"
#include "lowering/engine/promotion.hpp"
#include "npu/support/error.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::onednn {

namespace {

/// Convolutions of more than one tap on the longest way through a graph; at least 1.
std::int64_t depth_of_convolutions(const Graph& graph) {
  std::vector<std::int64_t> depths(graph.tensors().size(), 0);
  std::int64_t deepest = 1;
  for (const Node& node : graph.nodes()) {
    std::int64_t depth = 0;
    for (const TensorId id : node.inputs) {
      depth = std::max(depth, depths[index_of(id)]);
    }
    if (node.op_type.starts_with("aten.conv") && node.inputs.size() > 1) {
      const Shape& weight = graph.tensor(node.inputs[1]).shape;
      const bool has_taps =
          std::any_of(weight.begin() + std::min<std::ptrdiff_t>(2, std::ssize(weight)),
                      weight.end(), [](std::int64_t extent) { return extent > 1; });
      if (has_taps) ++depth;
    }
    for (const TensorId id : node.outputs) depths[index_of(id)] = depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

}  // namespace

Lowering::Lowering(const Graph& graph, const Graph& stated, std::span<const WeightView> weights,
                   const Machine& machine, const dnnl::engine& engine, const EntryRows& entries)
    : PlanBuilder(machine, engine),
      graph_(&graph),
      stated_(&stated),
      fusions_(check_groups(graph, machine.isa)),
      values_(graph.tensors().size()),
      set_after_(graph.tensors().size(), 0),
      weight_tensors_(weights),
      entries_(&entries),
      convolution_depth_(depth_of_convolutions(graph)) {
  for (const Node& node : graph.nodes()) sub_ir_flops_ += node_flops(graph, node);
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
  plan_.weights.push_back({info.name, info.dtype, info.shape});
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

std::optional<Value>& Lowering::changed_value(TensorId tensor) {
  std::optional<Value>& value = values_[index_of(tensor)];
  journal_.keep(value);
  return value;
}

void Lowering::set_value(TensorId tensor, const Value& value) {
  changed_value(tensor) = value;
  std::size_t& steps = set_after_[index_of(tensor)];
  journal_.keep(steps);
  steps = plan_.steps.size();
  const std::int32_t buffer = value.buffer.value;
  journal_.note([this, buffer] { readers_.at(buffer).pop_back(); });
  readers_[buffer].push_back(tensor);
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

void Lowering::define_computed(const GroupContext& context, TensorId tensor, const Shape& computed,
                               DType dtype, const Value& value) {
  check_result(tensor, computed, dtype);
  if (context.moves_numbers) return set_value(tensor, value);
  Value result = value;
  if (context.has_epilogue() && tensor == node_->outputs.front()) {
    tensor = graph_->node(context.group->nodes.back()).outputs.front();
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

void Lowering::define_moved(TensorId tensor, const Shape& computed, DType dtype,
                            const Value& value) {
  check_result(tensor, computed, dtype);
  set_value(tensor, value);
}

bool Lowering::rounds_to_float16() const {
  return stated_->tensor(result()).dtype == DType::kFloat16 &&
         stated_->tensor(node_->inputs.front()).dtype != DType::kFloat16;
}

bool Lowering::can_overwrite(const Value& value) const {
  if (!fills_buffer(value)) return false;
  const auto found = readers_.find(value.buffer.value);
  if (found == readers_.end()) return true;
  return std::all_of(found->second.begin(), found->second.end(),
                     [&](TensorId id) { return fusions_.last_use[index_of(id)] <= position_; });
}

Lowered<Done> Lowering::lower_in_types(const GroupContext& context, const Node& node) {
  const LoweringRow* row = find_lowering(node.op_type);
  const OpInfo* info = find_op(node.op_type);
  if (row != nullptr && std::holds_alternative<BareFunction>(row->lower)) {
    std::get<BareFunction>(row->lower)(*this, node);
    return Done{};
  }
  if (row == nullptr || info == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                node_text(node) + ": the onednn backend does not run this op");
  }
  const BoundNode bound(*graph_, node, info->schema);
  if (const auto* anchor = std::get_if<AnchorFunction>(&row->lower)) {
    return (*anchor)(*this, context, bound);
  }
  lower_bound(*row, *this, context, bound);
  return Done{};
}

Lowered<Done> Lowering::lower_node(GroupContext context, const Node& node) {
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
  context.compute_type = storage_type(dtype(node.outputs.front())) == DType::kBFloat16
                             ? DType::kBFloat16
                             : DType::kFloat32;
  if (context.compute_type == DType::kFloat32) return lower_in_types(context, node);

  try {
    Transaction attempt(journal_);
    Lowered<Done> done = lower_in_types(context, node);
    if (done) attempt.keep();
    return done;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
  }
  context.compute_type = DType::kFloat32;
  return lower_in_types(context, node);
}

Lowered<GroupContext> Lowering::enter(const KernelGroup& group) {
  node_ = &graph_->node(group.anchor());
  Lowered<Epilogue> epilogue = read_epilogue(*this, group);
  if (!epilogue) return epilogue.refusal();
  GroupContext context;
  context.group = &group;
  context.epilogue = *std::move(epilogue);
  context.compute_type = storage_type(dtype(node_->outputs.front()));
  return context;
}

}  // namespace npu::onednn
