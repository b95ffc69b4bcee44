// SPDX-License-Identifier: Apache-2.0
// The results that a run can give besides the outputs: every value that a node was lowered to, as
// it lies in memory when the last step that writes it is done. What a kernel keeps to itself has no
// value, and what no step touches is not in the blob. O(results * log(steps) + steps).
#include <algorithm>

#include "lowering/engine/graph_walk.hpp"
#include "npu/support/error.hpp"
#include "program/primitive_record.hpp"
#include "program/tap.hpp"

namespace npu::onednn {
namespace {

/// By buffer: the steps that write it, in order.
std::vector<std::vector<std::size_t>> find_writers(const Plan& plan) {
  std::vector<std::vector<std::size_t>> writers(plan.buffers.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    writers[index_of(step.operands[step.read_count].buffer)].push_back(s);
  }
  return writers;
}

/// Nothing if a blob has no way to say where the elements lie, as when it repeats some.
std::optional<TapRecord> tap_of(const TensorInfo& stated, const Value& value) {
  TapRecord tap{{stated.name, stated.dtype, stated.shape}, value.type, {}, {}, 0};
  try {
    tap.layout = record_of(value.layout);
    tap_span(tap);
  } catch (const Error&) {
    return std::nullopt;
  }
  return tap;
}

}  // namespace

Operand GraphWalk::resolved(Operand operand) const {
  for (;;) {
    const BufferInfo& buffer = plan_.buffers[index_of(operand.buffer)];
    if (buffer.parent.value < 0) return operand;
    operand.buffer = buffer.parent;
    operand.offset_bytes += static_cast<std::int64_t>(buffer.parent_offset);
  }
}

void GraphWalk::collect_taps() {
  const std::vector<std::vector<std::size_t>> writers = find_writers(plan_);
  std::vector<bool> is_output(values_.size(), false);
  for (const TensorId id : stated_->graph_outputs()) is_output[index_of(id)] = true;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const TensorInfo& stated = stated_->tensor(id);
    if (stated.kind != TensorKind::kResult || !values_[i]) continue;
    if (is_output[i]) continue;
    // While they stand for something else, numbers are no value of the tensor.
    if (values_[i]->type != storage_type(graph_->tensor(id).dtype)) continue;
    auto tap = tap_of(stated, *values_[i]);
    if (!tap) continue;
    const Operand source = resolved(values_[i]->operand());
    const std::vector<std::size_t>& steps = writers[index_of(source.buffer)];
    const auto behind = std::lower_bound(steps.begin(), steps.end(), set_after_[i]);
    if (behind != steps.begin()) tap->steps = *(behind - 1) + 1;
    const BufferKind kind = plan_.buffers[index_of(source.buffer)].kind;
    const bool is_written = kind == BufferKind::kArena || kind == BufferKind::kOutput;
    if (is_written && tap->steps == 0) continue;
    tap->source = {static_cast<std::uint32_t>(source.buffer.value),
                   static_cast<std::uint64_t>(source.offset_bytes)};
    plan_.taps.push_back(*std::move(tap));
  }
  std::stable_sort(plan_.taps.begin(), plan_.taps.end(),
                   [](const TapRecord& a, const TapRecord& b) { return a.steps < b.steps; });
}

}  // namespace npu::onednn
