// SPDX-License-Identifier: Apache-2.0
// Plans as records and back. A restored plan is checked before it is handed out; its primitives are
// made here, since how much scratch memory they need depends on the number of threads.
// O(steps + buffers * log(buffers)) and the time that oneDNN takes for descriptors.
#include "program/stored_plan.hpp"

#include <string>

#include "kernels/kernel.hpp"
#include "npu/support/error.hpp"
#include "program/check_plan.hpp"
#include "program/memory_plan.hpp"
#include "program/primitive_record.hpp"
#include "program/thread_bits.hpp"
#include "program/thread_scope.hpp"

namespace npu::onednn {

namespace {

/// Numbers the buffers that steps touch, but for scratch memory, in the order of their ids.
std::vector<std::int64_t> number_buffers(const Plan& plan) {
  std::vector<std::int64_t> numbers(plan.buffers.size(), -1);
  for (const Step& step : plan.steps) {
    for (std::size_t i = 0; i <= step.read_count; ++i) {
      numbers[index_of(step.operands[i].buffer)] = 0;
    }
  }
  std::int64_t next = 0;
  for (std::int64_t& number : numbers) {
    if (number == 0) number = next++;
  }
  return numbers;
}

BufferRecord record_of(const BufferInfo& buffer) {
  const BufferKind kind = buffer.kind == BufferKind::kWeight ? BufferKind::kConstant : buffer.kind;
  return {kind, buffer.bytes, buffer.index, 0};
}

StepRecord record_of(const Plan& plan, const Step& step, const std::vector<std::int64_t>& numbers) {
  StepRecord record;
  record.node = step.node;
  for (std::size_t i = 0; i <= step.read_count; ++i) {
    const Operand& operand = step.operands[i];
    const std::int64_t buffer = numbers[index_of(operand.buffer)];
    record.operands.push_back(
        {static_cast<std::uint32_t>(buffer), static_cast<std::uint64_t>(operand.offset_bytes)});
  }
  if (step.operands.size() > step.read_count + 1) {
    record.scratch_bytes = plan.buffers[index_of(step.operands.back().buffer)].bytes;
  }
  if (step.kernel) {
    record.kernel = step.kernel;
  } else {
    record.primitive = record_of_primitive(step);
  }
  return record;
}

BufferId add_buffer(Plan& plan, BufferKind kind, std::size_t bytes, std::size_t index,
                    std::size_t offset) {
  BufferInfo& buffer = plan.buffers.emplace_back();
  buffer.kind = kind;
  buffer.bytes = bytes;
  buffer.index = index;
  buffer.arena_offset = offset;
  return {static_cast<std::int32_t>(plan.buffers.size() - 1)};
}

void add_step(Plan& plan, StepRecord& record, const dnnl::primitive_desc_base& primitive) {
  Step& step = plan.steps.emplace_back();
  step.node = record.node;
  step.read_count = record.operands.size() - 1;
  for (const OperandRecord& operand : record.operands) {
    step.operands.push_back({{static_cast<std::int32_t>(operand.buffer)},
                             static_cast<std::int64_t>(operand.offset_bytes)});
  }
  if (record.scratch_bytes != 0) {
    step.operands.push_back(
        {add_buffer(plan, BufferKind::kArena, record.scratch_bytes, 0, record.scratch_offset), 0});
  }
  if (record.kernel) {
    step.kernel = std::move(record.kernel);
    return;
  }
  step.primitive = primitive;
  step.arguments = arguments_of(*record.primitive);
  for (const LayoutRecord& layout : record.primitive->layouts) {
    step.layouts.push_back(layout_of(layout));
  }
  if (record.scratch_bytes != 0) {
    step.arguments.push_back(DNNL_ARG_SCRATCHPAD);
    step.layouts.push_back(primitive.scratchpad_desc());
  }
}

/// The descriptors of the primitives, by step. OpenMP's number of threads is that of the run.
std::vector<dnnl::primitive_desc_base> make_primitives(const PlanRecord& record,
                                                       const dnnl::engine& engine,
                                                       const ThreadCounts& threads) {
  std::vector<dnnl::primitive_desc_base> result(record.steps.size());
  for (std::size_t i = 0; i < record.steps.size(); ++i) {
    if (!record.steps[i].primitive) continue;
    try {
      result[i] = make_primitive(*record.steps[i].primitive, engine);
      const int fixed = fixed_threads(*record.steps[i].primitive, result[i], threads.most);
      if (fixed == 0 || fixed == threads.of_run) continue;
      const ThreadScope scope(fixed);
      result[i] = make_primitive(*record.steps[i].primitive, engine);
    } catch (const Error& error) {
      throw Error(error.code(), "the blob's plan is damaged, or made for another CPU: step " +
                                    std::to_string(i) + " (primitive): " + error.message());
    }
  }
  return result;
}

}  // namespace

StoredPlan store_plan(const Plan& plan) {
  StoredPlan stored;
  PlanRecord& record = stored.record;
  record.node_count = plan.node_count;
  record.inputs = plan.inputs;
  record.outputs = plan.outputs;
  record.aliases = plan.aliases;
  const std::vector<std::int64_t> numbers = number_buffers(plan);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0) record.buffers.push_back(record_of(plan.buffers[i]));
  }
  for (std::size_t i = 0; i < plan.constants.size(); ++i) {
    const auto number = numbers[index_of(plan.constants[i])];
    record.buffers[static_cast<std::size_t>(number)].index = i;
  }
  for (const Step& step : plan.steps) record.steps.push_back(record_of(plan, step, numbers));
  for (TapRecord tap : plan.taps) {
    const std::int64_t buffer = numbers[tap.source.buffer];
    if (buffer < 0) continue;  // no step touches it
    tap.source.buffer = static_cast<std::uint32_t>(buffer);
    record.taps.push_back(std::move(tap));
  }
  stored.peak_live_bytes = place_in_arena(record);
  return stored;
}

Plan restore_plan(PlanRecord record, std::span<const PackedConstant> constants,
                  const dnnl::engine& engine, const ThreadCounts& threads) {
  for (StepRecord& step : record.steps) {
    if (step.kernel) set_threads(*step.kernel, threads.of_run);
  }
  const std::vector<dnnl::primitive_desc_base> primitives =
      make_primitives(record, engine, threads);
  std::vector<std::size_t> scratch_bytes;
  for (const dnnl::primitive_desc_base& each : primitives) {
    scratch_bytes.push_back(each ? each.scratchpad_desc().get_size() : 0);
  }
  std::vector<std::size_t> constant_bytes;
  for (const PackedConstant& constant : constants) constant_bytes.push_back(constant.bytes.size());
  check_plan(record, scratch_bytes, constant_bytes);

  Plan plan;
  plan.node_count = record.node_count;
  plan.arena_bytes = record.arena_bytes;
  plan.inputs = std::move(record.inputs);
  plan.outputs = std::move(record.outputs);
  plan.taps = std::move(record.taps);
  plan.aliases = std::move(record.aliases);
  plan.constants.resize(constants.size());
  for (const BufferRecord& buffer : record.buffers) {
    const BufferId id = add_buffer(plan, buffer.kind, buffer.bytes, buffer.index, buffer.offset);
    if (buffer.kind == BufferKind::kConstant) plan.constants[buffer.index] = id;
  }
  for (std::size_t i = 0; i < record.steps.size(); ++i) {
    add_step(plan, record.steps[i], primitives[i]);
    if (!primitives[i]) continue;
    plan.steps.back().threads =
        fixed_threads(*record.steps[i].primitive, primitives[i], threads.most);
  }
  return plan;
}

}  // namespace npu::onednn
