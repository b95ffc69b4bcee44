// SPDX-License-Identifier: Apache-2.0
// Makes a plan runnable and runs it: one arena for everything that lives between steps, code
// generated per primitive at load, and a run that does nothing but set the addresses of inputs and
// outputs and execute the steps in order. Calls go through oneDNN's C API, whose argument arrays
// can be made once; the C++ one builds a map and a vector on every call.
#include "program.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "memory_plan.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

void FreeDeleter::operator()(std::byte* memory) const noexcept { std::free(memory); }

AlignedMemory allocate_aligned(std::size_t bytes) {
  if (bytes > SIZE_MAX - 2 * kAlignment) throw std::bad_alloc();
  const std::size_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedMemory(static_cast<std::byte*>(memory));
}

Program::Program(Plan plan, std::span<const npu_tensor> weights, const dnnl::engine& engine)
    : plan_(std::move(plan)),
      engine_(engine),
      stream_(engine),
      owned_(plan_.buffers.size()),
      addresses_(plan_.buffers.size(), nullptr),
      node_times_(plan_.node_count, 0) {
  const MemoryPlan memory = plan_memory(plan_);
  arena_ = allocate_aligned(memory.arena_bytes);
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    BufferInfo& buffer = plan_.buffers[i];
    if (buffer.kind == BufferKind::kArena) addresses_[i] = arena_.get() + memory.offsets[i];
    if (buffer.kind == BufferKind::kConstant) {
      owned_[i] = allocate_aligned(buffer.bytes);
      addresses_[i] = owned_[i].get();
      if (!buffer.initial.empty()) {
        std::memcpy(addresses_[i], buffer.initial.data(), buffer.initial.size());
      }
    }
  }
  bind_weights(weights);
  run_prologue();
  executables_.reserve(plan_.steps.size());
  for (const Step& step : plan_.steps) executables_.push_back(prepare(step));
}

void Program::bind_weights(std::span<const npu_tensor> weights) {
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    const BufferInfo& buffer = plan_.buffers[i];
    if (buffer.kind != BufferKind::kWeight) continue;
    const TensorBinding& binding = plan_.weights[buffer.index];
    const npu_tensor* found = nullptr;
    for (const npu_tensor& weight : weights) {
      if (weight.name != nullptr && binding.name == weight.name) found = &weight;
    }
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

void Program::run_prologue() {
  for (const Step& step : plan_.prologue) {
    Executable executable = prepare(step);
    execute(executable);
  }
  // What only the prologue read is not needed again.
  std::vector<bool> needed(plan_.buffers.size(), false);
  for (const Step& step : plan_.steps) {
    for (const Operand& operand : step.operands) {
      needed[static_cast<std::size_t>(operand.buffer.value)] = true;
    }
  }
  for (std::size_t i = 0; i < owned_.size(); ++i) {
    if (!needed[i]) owned_[i].reset();
  }
  plan_.prologue.clear();
}

Program::Executable Program::prepare(const Step& step) const {
  Executable executable;
  executable.step = &step;
  executable.addresses.assign(step.operands.size(), nullptr);
  if (step.kernel) return executable;
  executable.primitive = dnnl::primitive(step.primitive.get());
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    executable.memories.push_back(dnnl::memory(step.layouts[i], engine_, nullptr));
    executable.arguments.push_back({step.arguments[i], executable.memories.back().get()});
  }
  return executable;
}

void Program::execute(Executable& executable) {
  const Step& step = *executable.step;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const Operand& operand = step.operands[i];
    std::byte* address =
        addresses_[static_cast<std::size_t>(operand.buffer.value)] + operand.offset_bytes;
    if (address == executable.addresses[i]) continue;
    executable.addresses[i] = address;
    if (!step.kernel) executable.memories[i].set_data_handle(address);
  }
  if (step.kernel) {
    step.kernel(executable.addresses);
    return;
  }
  const dnnl_status_t status = dnnl_primitive_execute(executable.primitive.get(), stream_.get(),
                                                      static_cast<int>(executable.arguments.size()),
                                                      executable.arguments.data());
  if (status != dnnl_success) throw dnnl::error(status, "could not execute a primitive");
}

void Program::run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs) {
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    const BufferInfo& buffer = plan_.buffers[i];
    if (buffer.kind == BufferKind::kInput)
      addresses_[i] = const_cast<std::byte*>(inputs[buffer.index]);
    if (buffer.kind == BufferKind::kOutput) addresses_[i] = outputs[buffer.index];
  }
  std::fill(node_times_.begin(), node_times_.end(), 0);
  auto begin = std::chrono::steady_clock::now();
  for (Executable& executable : executables_) {
    execute(executable);
    const auto end = std::chrono::steady_clock::now();
    const auto node = executable.step->node;
    if (node >= 0) {
      node_times_[static_cast<std::size_t>(node)] += static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
    }
    begin = end;
  }
}

}  // namespace npu::onednn
