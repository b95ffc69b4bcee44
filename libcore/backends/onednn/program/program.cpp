// SPDX-License-Identifier: Apache-2.0
// Makes a plan runnable and runs it: one arena for everything that lives between steps, code
// generated per primitive at load, and a run that does nothing but set the addresses of inputs and
// outputs and execute the steps in order. Calls go through oneDNN's C API, whose argument arrays
// can be made once; the C++ one builds a map and a vector on every call.
#include "program/program.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "kernels/base/elements.hpp"
#include "npu/support/error.hpp"
#include "program/implementations.hpp"
#include "program/tap.hpp"
#include "program/thread_scope.hpp"

namespace npu::onednn {

void FreeDeleter::operator()(std::byte* memory) const noexcept { std::free(memory); }

AlignedMemory allocate_aligned(std::size_t bytes) {
  if (bytes > SIZE_MAX - 2 * kAlignment) throw std::bad_alloc();
  const std::size_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedMemory(static_cast<std::byte*>(memory));
}

ConstantPacker::ConstantPacker(const Plan& plan, std::span<const WeightView> weights,
                               const dnnl::engine& engine, Checkpoint checkpoint)
    : plan_(plan),
      engine_(engine),
      stream_(engine),
      checkpoint_(std::move(checkpoint)),
      owned_(plan.buffers.size()),
      addresses_(plan.buffers.size(), nullptr),
      end_of_use_(plan.buffers.size(), 0),
      is_asked_(plan.buffers.size(), 0) {
  for (std::size_t s = 0; s < plan.prologue.size(); ++s) {
    for (const Operand& operand : plan.prologue[s].operands) {
      end_of_use_[index_of(operand.buffer)] = s + 1;
    }
  }
  for (const BufferId id : plan.constants) is_asked_[index_of(id)] = 1;
  bind_weights(weights);
}

std::vector<std::uint64_t> ConstantPacker::sizes() const {
  std::vector<std::uint64_t> sizes;
  for (const BufferId id : plan_.constants) sizes.push_back(plan_.buffers[index_of(id)].bytes);
  return sizes;
}

PackedConstant ConstantPacker::next() {
  if (given_ > 0) {
    const auto last = index_of(plan_.constants[given_ - 1]);
    is_asked_[last] = 0;
    let_go(last);
  }
  const auto index = index_of(plan_.constants.at(given_++));
  while (done_ < end_of_use_[index]) run_next_step();
  return {{own(index), plan_.buffers[index].bytes}};
}

void ConstantPacker::run_next_step() {
  const Step& step = plan_.prologue[done_];
  if (checkpoint_) checkpoint_(done_, plan_.prologue.size());
  for (const Operand& operand : step.operands) own(index_of(operand.buffer));
  Program::Executable executable = Program::prepare(step, engine_);
  Program::execute(executable, addresses_, stream_);
  if (step.kernel && std::holds_alternative<HalfWeights>(*step.kernel)) require_in_range(step);
  ++done_;
  for (const Operand& operand : step.operands) let_go(index_of(operand.buffer));
}

// Rounding to float16 made nothing infinite.
void ConstantPacker::require_in_range(const Step& step) const {
  constexpr float kLargest = 65504.0F;
  const auto& weights = std::get<HalfWeights>(*step.kernel);
  if (weights.type != DType::kFloat16) return;
  const Operand& source = step.operands.front();
  const auto* values = elements<float>(addresses_[index_of(source.buffer)] + source.offset_bytes);
  for (std::int64_t i = 0; i < weights.count; ++i) {
    if (std::abs(values[i]) <= kLargest || !std::isfinite(values[i])) continue;
    std::array<char, 128> text{};
    std::snprintf(text.data(), text.size(),
                  "a weight is %g, and float16 holds 65504 at most; use precision f32 or bf16",
                  static_cast<double>(values[i]));
    throw Float16Overflow{static_cast<std::size_t>(step.node), text.data()};
  }
}

// Of a buffer that nothing reads any more, if the memory is not the host's.
void ConstantPacker::let_go(std::size_t buffer) {
  if (is_asked_[buffer] == 0 && end_of_use_[buffer] <= done_) owned_[buffer].reset();
}

// The address of a weight, or of a constant that has memory from here on.
std::byte* ConstantPacker::own(std::size_t buffer) {
  if (addresses_[buffer] != nullptr) return addresses_[buffer];
  const BufferInfo& info = plan_.buffers[buffer];
  owned_[buffer] = allocate_aligned(info.bytes);
  addresses_[buffer] = owned_[buffer].get();
  // Blocks that channels do not fill are zero behind them.
  std::memset(addresses_[buffer], 0, info.bytes);
  if (!info.initial.empty()) {
    std::memcpy(addresses_[buffer], info.initial.data(), info.initial.size());
  }
  return addresses_[buffer];
}

void ConstantPacker::bind_weights(std::span<const WeightView> weights) {
  std::unordered_map<std::string_view, const WeightView*> by_name;
  for (const WeightView& weight : weights) {
    by_name.insert_or_assign(weight.name, &weight);
  }
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    const BufferInfo& buffer = plan_.buffers[i];
    if (buffer.kind != BufferKind::kWeight) continue;
    const TensorBinding& binding = plan_.weights[buffer.index];
    const auto known = by_name.find(binding.name);
    const WeightView* found = known == by_name.end() ? nullptr : known->second;
    if (found == nullptr || found->data == nullptr || found->bytes != buffer.bytes) {
      throw Error(ErrorCode::kInvalidGraph,
                  "weight '" + binding.name + "' was not passed as it was compiled");
    }
    // Steps only read weights; the address is not const because oneDNN has no memory that is.
    auto* address = const_cast<std::byte*>(static_cast<const std::byte*>(found->data));
    if (reinterpret_cast<std::uintptr_t>(address) % dtype_size(binding.dtype) != 0) {
      owned_[i] = allocate_aligned(buffer.bytes);
      std::memcpy(owned_[i].get(), address, buffer.bytes);
      address = owned_[i].get();
    }
    addresses_[i] = address;
  }
}

Program::Program(Plan plan, const std::vector<PackedConstant>& constants,
                 const dnnl::engine& engine, const Program* sibling)
    : plan_(std::move(plan)),
      engine_(engine),
      stream_(engine),
      addresses_(plan_.buffers.size(), nullptr),
      node_times_(plan_.node_count, 0),
      step_times_(plan_.steps.size(), 0) {
  const bool can_share = sibling != nullptr && sibling->plan_.arena_bytes >= plan_.arena_bytes;
  arena_ =
      can_share ? sibling->arena_ : std::shared_ptr<std::byte>(allocate_aligned(plan_.arena_bytes));
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    if (plan_.buffers[i].kind == BufferKind::kArena) {
      addresses_[i] = arena_.get() + plan_.buffers[i].arena_offset;
    }
  }
  for (std::size_t i = 0; i < constants.size(); ++i) {
    // Steps only read constants; the address is not const because oneDNN has no memory that is.
    auto* address = const_cast<std::byte*>(constants[i].bytes.data());
    if (reinterpret_cast<std::uintptr_t>(address) % kAlignment != 0) {
      owned_.push_back(allocate_aligned(constants[i].bytes.size()));
      std::memcpy(owned_.back().get(), address, constants[i].bytes.size());
      address = owned_.back().get();
    }
    addresses_[index_of(plan_.constants[i])] = address;
  }
  executables_.reserve(plan_.steps.size());
  for (const Step& step : plan_.steps) executables_.push_back(prepare(step, engine_));
}

Program::Executable Program::prepare(const Step& step, const dnnl::engine& engine) {
  Executable executable;
  executable.step = &step;
  executable.addresses.assign(step.operands.size(), nullptr);
  if (step.kernel) return executable;
  const ThreadScope threads(step.threads);  // oneDNN's cache of code goes by the number
  executable.primitive = with_code(step.primitive);
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    executable.memories.push_back(dnnl::memory(step.layouts[i], engine, nullptr));
    executable.arguments.push_back({step.arguments[i], executable.memories.back().get()});
  }
  return executable;
}

void Program::execute(Executable& executable, const std::vector<std::byte*>& addresses,
                      const dnnl::stream& stream) {
  const Step& step = *executable.step;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const Operand& operand = step.operands[i];
    std::byte* address = addresses[index_of(operand.buffer)] + operand.offset_bytes;
    if (address == executable.addresses[i]) continue;
    executable.addresses[i] = address;
    if (!step.kernel) executable.memories[i].set_data_handle(address);
  }
  if (step.kernel) {
    run_kernel(*step.kernel, executable.addresses);
    return;
  }
  const ThreadScope threads(step.threads);
  const dnnl_status_t status = dnnl_primitive_execute(executable.primitive.get(), stream.get(),
                                                      static_cast<int>(executable.arguments.size()),
                                                      executable.arguments.data());
  if (status != dnnl_success) throw dnnl::error(status, "could not execute a primitive");
}

/// Copies those that are there after so many steps, and gives the others.
std::span<const Program::TapTarget> Program::copy_taps(std::span<const TapTarget> taps,
                                                       std::size_t steps) const {
  while (!taps.empty() && plan_.taps[taps.front().tap].steps <= steps) {
    const TapRecord& tap = plan_.taps[taps.front().tap];
    const std::byte* buffer = addresses_[static_cast<std::size_t>(tap.source.buffer)];
    copy_tap(tap, buffer + tap.source.offset_bytes, taps.front().target);
    taps = taps.subspan(1);
  }
  return taps;
}

void Program::run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                  std::span<const TapTarget> taps, void (*checkpoint)(const void* context),
                  const void* context) {
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    const BufferInfo& buffer = plan_.buffers[i];
    if (buffer.kind == BufferKind::kInput)
      addresses_[i] = const_cast<std::byte*>(inputs[buffer.index]);
    if (buffer.kind == BufferKind::kOutput) addresses_[i] = outputs[buffer.index];
  }
  std::fill(node_times_.begin(), node_times_.end(), 0);
  taps = copy_taps(taps, 0);
  auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < executables_.size(); ++i) {
    Executable& executable = executables_[i];
    if (checkpoint != nullptr) checkpoint(context);
    execute(executable, addresses_, stream_);
    const auto end = std::chrono::steady_clock::now();
    step_times_[i] = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
    const auto node = executable.step->node;
    if (node >= 0) node_times_[static_cast<std::size_t>(node)] += step_times_[i];
    begin = end;
    if (taps.empty()) continue;
    taps = copy_taps(taps, i + 1);
    begin = std::chrono::steady_clock::now();  // which is no time of a step
  }
}

}  // namespace npu::onednn
