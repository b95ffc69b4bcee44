// SPDX-License-Identifier: Apache-2.0
// Outputs that a run may be given in the buffer of an input. A step that overwrites a part of its
// first operand then finds that operand where its result is to be, and leaves the rest alone, so
// the same plan suits one buffer and two. It is right if nothing reads the input once the output is
// begun. Where something does, the output is computed elsewhere and copied when all is done, which
// costs the copy also where there are two buffers. O(aliases x steps).
#include <algorithm>

#include "ir/sub_ir_aliases.hpp"
#include "lowering/engine/graph_walk.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

/// Of an input or output; invalid if no step touches it.
BufferId bound_buffer(const Plan& plan, BufferKind kind, std::size_t index) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind == kind && plan.buffers[i].index == index) {
      return {static_cast<std::int32_t>(i)};
    }
  }
  return {};
}

bool is_in(const Operand& operand, BufferId buffer) { return operand.buffer == buffer; }

/// How a step treats the input when it is the first one that writes the output.
struct FirstWrite {
  bool is_apart = true;     ///< it may read it where it writes
  bool overwrites = false;  ///< and does, element by element
};

FirstWrite first_write(const Step& step, BufferId input) {
  FirstWrite result;
  const Operand& target = step.operands[step.read_count];
  for (std::size_t i = 0; i < step.read_count; ++i) {
    if (!is_in(step.operands[i], input)) continue;
    const bool may_lie_there = step.kernel && footprint_of(*step.kernel).reads[i].may_be_target &&
                               step.operands[i].offset_bytes == target.offset_bytes;
    result.is_apart = result.is_apart && may_lie_there;
    result.overwrites = result.overwrites || may_lie_there;
  }
  return result;
}

}  // namespace

void GraphWalk::bind_aliases() {
  for (const AliasPair& pair : read_aliases(*stated_)) {
    AliasRecord alias{pair.input, pair.output, false};
    const BufferId input = bound_buffer(plan_, BufferKind::kInput, pair.input);
    const BufferId output = bound_buffer(plan_, BufferKind::kOutput, pair.output);
    if (plan_.inputs[pair.input].layout != plan_.outputs[pair.output].layout) {
      throw Error(ErrorCode::kInvalidGraph, "aliases: '" + plan_.outputs[pair.output].name +
                                                "' is in another layout than its input");
    }
    const auto begin = std::find_if(plan_.steps.begin(), plan_.steps.end(), [&](const Step& step) {
      return is_in(step.operands[step.read_count], output);
    });
    const FirstWrite write = first_write(*begin, input);
    const bool is_read_later = std::any_of(begin + 1, plan_.steps.end(), [&](const Step& step) {
      return std::any_of(step.operands.begin(),
                         step.operands.begin() + static_cast<std::ptrdiff_t>(step.read_count),
                         [&](const Operand& read) { return is_in(read, input); });
    });
    if (!write.is_apart || is_read_later) {
      write_at_the_end(pair.output, output);
    } else {
      alias.is_in_place = write.overwrites;
    }
    plan_.aliases.push_back(alias);
  }
}

/// An output that was computed in its own memory is computed in the arena, and copied.
void GraphWalk::write_at_the_end(std::size_t number, BufferId output) {
  const TensorId id = stated_->graph_outputs()[number];
  const TensorInfo& info = stated_->tensor(id);
  BufferInfo& buffer = plan_.buffers[index_of(output)];
  const std::size_t bytes = buffer.bytes;
  buffer.kind = BufferKind::kArena;
  buffer.index = 0;
  const Layout layout = plain_layout(info.shape, info.dtype);
  const Value from{info.dtype, layout, output, 0};
  const Value to{info.dtype, layout,
                 add_buffer({BufferKind::kOutput, bytes, number, {}, {}, 0, false}), 0};
  node_index_ = info.producer.value;
  add_kernel({from}, to, Kernel{CopyBytes{static_cast<std::int64_t>(bytes)}}, KernelKind::kReorder);
}

}  // namespace npu::onednn
