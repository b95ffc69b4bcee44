// SPDX-License-Identifier: Apache-2.0
// Turns a sub-IR into steps: walks the nodes in order, keeps a value per tensor, and lets one
// function per op add primitives or kernels. Nodes that stand in a fusion group are lowered
// together, where the last of them stands; if no kernel does what a group asks for, what was added
// is taken back, its parts or nodes are lowered one by one, and the plan says why
// (walk_groups.cpp). Operands of a concatenation become parts of its memory (place), which is
// resolved at the end. O(nodes + steps) besides the functions.
#include "lowering/engine/graph_walk.hpp"

#include "npu/support/error.hpp"

namespace npu::onednn {

namespace {

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

void GraphWalk::bind_inputs(const LayoutNames& boundaries) {
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

void GraphWalk::bind_outputs(const LayoutNames& boundaries) {
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

/// A node that is in no group, so that nothing stands behind it that a kernel could refuse.
void GraphWalk::lower_alone(const Node& node) {
  const Lowered<Done> done = lower_node({}, node);
  if (!done) refuse("", done.refusal().reason);
}

/// Operands in parts of a buffer become operands in the buffer itself.
void GraphWalk::resolve_parts() {
  for (Step& step : plan_.steps) {
    for (Operand& operand : step.operands) operand = resolved(operand);
  }
}

void GraphWalk::collect_constants() {
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

Plan GraphWalk::run(const Checkpoint& checkpoint, const LayoutNames& boundaries) {
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
      const KernelGroup& group = fusions_.groups[static_cast<std::size_t>(group_index)];
      const bool at_first = group.kind == KernelGroup::Kind::kSharedInput;
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
  bind_aliases();
  collect_constants();
  collect_taps();
  note_splits();
  return std::move(plan_);
}

}  // namespace npu::onednn
