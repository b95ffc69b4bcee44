// SPDX-License-Identifier: Apache-2.0
// Buffers, steps, copies in other layouts and types, and places within other buffers. Whatever is
// added or changed goes through the journal, so that a refused group is taken back as a whole.
//
// A value stays in the layout that its producer chose until a consumer or the host needs another; a
// reorder is made once per value and target layout. Views (permute, slice, reshape where strides
// allow) are strides over the same memory. A step whose operands are all known at compile time goes
// to the prologue, which compile runs: weight reorders, folded norms, conversions.
#include "lowering/engine/plan_builder.hpp"

#include <algorithm>
#include <utility>

#include "npu/support/error.hpp"
#include "program/implementations.hpp"
#include "program/primitive_record.hpp"
#include "support/checked.hpp"

namespace npu::onednn {

namespace {

bool same_value(const Value& a, const Value& b) {
  return a.type == b.type && a.offset == b.offset && a.buffer == b.buffer && a.layout == b.layout;
}

std::size_t bytes_of(DType type, const Layout& layout) {
  if (layout.data.extra.flags != 0) return layout.get_size();  // sums behind weights
  return static_cast<std::size_t>(span_elements(layout)) * dtype_size(type);
}

}  // namespace

void PlanBuilder::refuse(std::string_view argument, const std::string& reason) const {
  std::string text = node_text(*node_) + ": ";
  if (!argument.empty()) text += "argument '" + std::string(argument) + "': ";
  throw Error(ErrorCode::kUnsupported, text + reason);
}

void PlanBuilder::invalid(const std::string& reason) const {
  throw Error(ErrorCode::kInvalidGraph, node_text(*node_) + ": " + reason);
}

BufferInfo& PlanBuilder::changed_buffer(BufferId buffer) {
  BufferInfo& info = plan_.buffers[index_of(buffer)];
  journal_.note([this, buffer, kind = info.kind, parent = info.parent, offset = info.parent_offset,
                 has_parts = info.has_parts] {
    BufferInfo& old = plan_.buffers[index_of(buffer)];
    old.kind = kind;
    old.parent = parent;
    old.parent_offset = offset;
    old.has_parts = has_parts;
  });
  return info;
}

BufferId PlanBuilder::add_buffer(BufferInfo info) {
  journal_.note([this] { plan_.buffers.pop_back(); });
  plan_.buffers.push_back(std::move(info));
  return BufferId{static_cast<std::int32_t>(plan_.buffers.size() - 1)};
}

Value PlanBuilder::temporary(DType type, const Layout& layout) {
  return {type, layout,
          add_buffer({BufferKind::kArena, bytes_of(type, layout), 0, {}, {}, 0, false}), 0};
}

Value PlanBuilder::constant(DType type, const Shape& shape, std::vector<std::byte> bytes) {
  const std::size_t count = bytes.size();
  return {type, plain_layout(shape, type),
          add_buffer({BufferKind::kConstant, count, 0, std::move(bytes), {}, 0, false}), 0};
}

Value PlanBuilder::constant(float number) {
  const auto* bytes = static_cast<const std::byte*>(static_cast<const void*>(&number));
  return constant(DType::kFloat32, {1}, {bytes, bytes + sizeof number});
}

bool PlanBuilder::is_constant(const Value& value) const {
  const BufferKind kind = plan_.buffers[index_of(value.buffer)].kind;
  return kind == BufferKind::kWeight || kind == BufferKind::kConstant;
}

/// Makes a primitive as a load does. oneDNN may have a descriptor and no code for it, so that is
/// asked here, where another kernel, or another device, may do the node's work; what is generated
/// stays in its cache for a load that follows.
void PlanBuilder::generate(Step& step) const {
  try {
    step.primitive = make_primitive(record_of_primitive(step), engine());
  } catch (const Error& error) {
    refuse("", error.message());
  }
  static_cast<void>(with_code(step.primitive));
}

void PlanBuilder::add_step(Step step) {
  if (!step.kernel && !machine_->only_checks) generate(step);
  step.node = node_index_;
  step.group = group_index_;
  step.binds_output = binds_outputs_;
  const auto buffer_of = [&](const Operand& operand) -> BufferInfo& {
    return plan_.buffers[index_of(operand.buffer)];
  };
  // So that the step adds to what the program computes, though all that it reads is constant.
  const auto is_written = [&](BufferId buffer) {
    return std::any_of(plan_.steps.begin(), plan_.steps.end(), [&](const Step& before) {
      return std::any_of(before.operands.begin() + static_cast<std::ptrdiff_t>(before.read_count),
                         before.operands.end(),
                         [&](const Operand& operand) { return operand.buffer == buffer; });
    });
  };
  bool constant = true;
  for (std::size_t i = 0; i < step.read_count; ++i) {
    const BufferKind kind = buffer_of(step.operands[i]).kind;
    constant = constant && (kind == BufferKind::kWeight || kind == BufferKind::kConstant);
  }
  for (std::size_t i = step.read_count; i < step.operands.size(); ++i) {
    // A part of another buffer is written by the program, whatever it is copied from.
    const BufferInfo& buffer = buffer_of(step.operands[i]);
    constant = constant && buffer.kind != BufferKind::kOutput && buffer.parent.value < 0 &&
               !is_written(step.operands[i].buffer);
  }
  if (!constant) {
    journal_.note([this] { plan_.steps.pop_back(); });
    plan_.steps.push_back(std::move(step));
    return;
  }
  for (std::size_t i = step.read_count; i < step.operands.size(); ++i) {
    changed_buffer(step.operands[i].buffer).kind = BufferKind::kConstant;
  }
  journal_.note([this] { plan_.prologue.pop_back(); });
  plan_.prologue.push_back(std::move(step));
}

void PlanBuilder::add_primitive(const dnnl::primitive_desc_base& primitive,
                                std::initializer_list<PrimitiveOperand> reads, const Value& write) {
  add_primitive(primitive, std::span(reads.begin(), reads.size()), write);
}

void PlanBuilder::add_primitive(const dnnl::primitive_desc_base& primitive,
                                std::span<const PrimitiveOperand> reads, const Value& write,
                                KernelChoice choice) {
  Step step;
  step.choice = std::move(choice);
  step.primitive = primitive;
  const auto add_operand = [&](int argument, const Value& value) {
    step.operands.push_back(value.operand());
    step.arguments.push_back(argument);
    step.layouts.push_back(value.layout);
  };
  for (const PrimitiveOperand& read : reads) add_operand(read.argument, read.value);
  step.read_count = reads.size();
  add_operand(DNNL_ARG_DST, write);
  const Layout scratchpad = primitive.scratchpad_desc();
  if (scratchpad.get_size() != 0) {
    step.operands.push_back(
        {add_buffer({BufferKind::kArena, scratchpad.get_size(), 0, {}, {}, 0, false}), 0});
    step.arguments.push_back(DNNL_ARG_SCRATCHPAD);
    step.layouts.push_back(scratchpad);
  }
  add_step(std::move(step));
}

void PlanBuilder::add_kernel(std::initializer_list<Value> reads, const Value& write, Kernel kernel,
                             KernelKind kind) {
  add_kernel(std::span(reads.begin(), reads.size()), write, std::move(kernel), kind);
}

void PlanBuilder::add_kernel(std::span<const Value> reads, const Value& write, Kernel kernel,
                             KernelKind kind, KernelChoice choice) {
  set_isa(kernel, machine_->isa);
  // What load would not take is refused here, where it has a node and another kernel may do it.
  if (const std::string refusal = kernel_refusal(kernel); !refusal.empty()) {
    refuse("", "kernel '" + std::string(kernel_name(kernel)) + "' does not compute it: " + refusal);
  }
  Step step;
  step.kind = kind;
  step.choice = std::move(choice);
  for (const Value& read : reads) step.operands.push_back(read.operand());
  step.read_count = reads.size();
  step.operands.push_back(write.operand());
  if (const std::size_t scratch = scratch_bytes_of(kernel); scratch != 0) {
    step.operands.push_back({add_buffer({BufferKind::kArena, scratch, 0, {}, {}, 0, false}), 0});
  }
  step.kernel = std::move(kernel);
  add_step(std::move(step));
}

dnnl::primitive_attr PlanBuilder::attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

const Value* PlanBuilder::find_copy(const Value& value, DType type, const Layout& layout) const {
  const auto found = copies_.find(value.buffer.value);
  if (found == copies_.end()) return nullptr;
  for (const Copy& copy : found->second) {
    if (same_value(copy.from, value) && copy.to.type == type && copy.to.layout == layout)
      return &copy.to;
  }
  return nullptr;
}

Value PlanBuilder::copied(const Value& value, DType type, const Layout& layout) {
  if (const Value* copy = find_copy(value, type, layout)) return *copy;
  const Value target = temporary(type, layout);
  if (value.type != type) {
    const std::int64_t count = span_elements(value.layout);
    const DType from = value.type;
    add_kernel({value}, target, Convert{from, type, count}, KernelKind::kReorder);
  } else {
    copy_into(value, target, KernelKind::kReorder);
  }
  const std::int32_t from = value.buffer.value;
  journal_.note([this, from] { copies_.at(from).pop_back(); });
  copies_[from].push_back({value, target});
  return target;
}

void PlanBuilder::copy_into(const Value& from, const Value& to, KernelKind kind) {
  if (from.type == DType::kFloat32 || is_byte(from.type) ||
      (from.type == DType::kBFloat16 && machine_->native_bfloat16)) {
    const dnnl::reorder::primitive_desc reorder(engine(), from.layout, engine(), to.layout,
                                                attributes());
    const std::size_t steps = plan_.steps.size();
    add_primitive(reorder, {{DNNL_ARG_SRC, from}}, to);
    if (plan_.steps.size() != steps) plan_.steps.back().kind = kind;
    return;
  }
  if (!is_strided(from.layout)) {
    refuse("", std::string(dtype_name(from.type)) + " in blocks of channels is not reordered");
  }
  const Iteration space = iterate(to.layout);
  StridedCopy copy{dtype_size(from.type), space.extents, strides_in(space, from.layout),
                   space.strides};
  copy.simplify();
  add_kernel({from}, to, std::move(copy), kind);
}

Value PlanBuilder::in_layout(const Value& value, const Layout& layout) {
  if (value.layout != layout) return copied(value, value.type, layout);
  // Equal layouts may still state other strides where an extent is 1, and by these oneDNN chooses.
  Value same = value;
  same.layout = layout;
  return same;
}

Value PlanBuilder::plain(const Value& value) {
  const Layout layout = plain_layout(dimensions(value.layout), value.type);
  if (is_plain(value.layout)) {
    Value same = value;
    same.layout = layout;
    return same;
  }
  return copied(value, value.type, layout);
}

Value PlanBuilder::dense(const Value& value) {
  return is_dense(value.layout) ? value : plain(value);
}

Value PlanBuilder::strided(const Value& value) {
  return is_strided(value.layout) ? value : plain(value);
}

Value PlanBuilder::in_type(const Value& value, DType type) {
  if (value.type == type) return value;
  const Value source = dense(value);
  return copied(source, type, with_type(source.layout, type));
}

Value PlanBuilder::reshaped(const Value& value, const Shape& shape) {
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

Value PlanBuilder::viewed(const Value& value, const Shape& shape) {
  if (is_plain(value.layout)) return reshaped(value, shape);
  const auto layout = view_blocks(value.layout, shape);
  if (!layout) return reshaped(value, shape);
  Value result = value;
  result.layout = *layout;
  return result;
}

bool PlanBuilder::fills_buffer(const Value& value) const {
  const BufferInfo& buffer = plan_.buffers[index_of(value.buffer)];
  return buffer.kind == BufferKind::kArena && buffer.parent.value < 0 && !buffer.has_parts &&
         value.offset == 0 && buffer.bytes == bytes_of(value.type, value.layout);
}

void PlanBuilder::note_overwritten(const Value& value) {
  const auto is_there = [&](const Copy& copy) { return copy.to.buffer == value.buffer; };
  for (auto& [buffer, copies] : copies_) {
    const bool is_source = buffer == value.buffer.value;
    if (!is_source && std::none_of(copies.begin(), copies.end(), is_there)) continue;
    journal_.keep(copies);
    std::erase_if(copies, [&](const Copy& copy) { return is_source || is_there(copy); });
  }
}

bool PlanBuilder::can_place(BufferId buffer) const {
  const BufferInfo& info = plan_.buffers[index_of(buffer)];
  return info.kind == BufferKind::kArena && info.parent.value < 0;
}

bool PlanBuilder::can_place(const Value& value) const {
  return can_place(value.buffer) && value.offset == 0 &&
         buffer_bytes(value.buffer) == bytes_of(value.type, value.layout);
}

void PlanBuilder::place(BufferId part, BufferId whole, std::int64_t offset_bytes) {
  BufferInfo& info = changed_buffer(part);
  info.parent = whole;
  info.parent_offset = static_cast<std::size_t>(offset_bytes);
  changed_buffer(whole).has_parts = true;
}

void PlanBuilder::note_concat(std::vector<Value> operands, const Value& whole) {
  journal_.note([this] { concats_.pop_back(); });
  concats_.push_back({std::move(operands), whole});
}

const PlanBuilder::Concat* PlanBuilder::find_concat(const std::vector<Value>& values,
                                                    std::size_t first) const {
  const Concat* best = nullptr;
  for (const Concat& concat : concats_) {
    const std::size_t count = concat.operands.size();
    if (count > values.size() - first || (best != nullptr && count <= best->operands.size())) {
      continue;
    }
    if (!can_place(concat.whole)) continue;
    bool same = true;
    for (std::size_t i = 0; same && i < count; ++i) {
      same = same_value(concat.operands[i], values[first + i]);
    }
    if (same) best = &concat;
  }
  return best;
}

}  // namespace npu::onednn
