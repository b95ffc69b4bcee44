// SPDX-License-Identifier: Apache-2.0
// Memory for the results of runs, which comes back when a caller lets go of a result. Devices that
// use memory of the host in place write their results there, so that nothing is copied; the buffers
// that they see are made once for each block. A step is O(log blocks).
#include "runtime/executor/result_memory.hpp"

#include <utility>

namespace npu {

/// What frees the memory of a tensor: it outlives neither its home nor keeps it alive.
struct ResultMemory::GiveBack {
  std::weak_ptr<ResultMemory> home;
  std::size_t number = 0;
  Tensor memory;

  void operator()(const std::byte* /*data*/) noexcept {
    if (const auto there = home.lock()) there->give_back(number, memory);
  }
};

Tensor ResultMemory::take(std::size_t number, DType dtype, const Shape& shape) {
  Tensor memory;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Tensor>& waiting = free_[number];
    if (!waiting.empty()) {
      memory = std::move(waiting.back());
      waiting.pop_back();
    }
  }
  if (memory.data() == nullptr) memory = Tensor(dtype, shape);
  const std::byte* const data = memory.data();
  return Tensor(dtype, shape,
                std::shared_ptr<const std::byte>(
                    data, GiveBack{weak_from_this(), number, std::move(memory)}));
}

std::shared_ptr<DeviceBuffer> ResultMemory::buffer_in(const Tensor& tensor,
                                                      DeviceInstance& device) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.find(tensor.data());
    if (found != buffers_.end()) return found->second;
  }
  auto buffer = device.wrap(tensor.dtype(), tensor.shape(), tensor.data(), nullptr,
                            NPU_ACCESS_READ | NPU_ACCESS_WRITE);
  if (buffer == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  return buffers_[tensor.data()] = std::move(buffer);
}

void ResultMemory::give_back(std::size_t number, Tensor& memory) noexcept {
  std::shared_ptr<DeviceBuffer> dropped;  // after the lock, and before the memory
  try {
    const std::lock_guard lock(mutex_);
    std::vector<Tensor>& waiting = free_[number];
    if (waiting.size() < kept_) {
      waiting.push_back(std::move(memory));
    } else if (const auto found = buffers_.find(memory.data()); found != buffers_.end()) {
      dropped = std::move(found->second);
      buffers_.erase(found);
    }
  } catch (...) {  // there is no memory to note it: it is only not used again
  }
}

}  // namespace npu
