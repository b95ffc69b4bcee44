// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device_instance.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// Memory of the host for the results that runs give to a caller. What all copies of a result have
/// let go of is used by a later run, whose pages are then there already; what a caller still holds
/// never is. For any thread.
class ResultMemory : public std::enable_shared_from_this<ResultMemory> {
 public:
  /// `kept`: how many blocks of each number wait for a next run.
  explicit ResultMemory(std::size_t kept) : kept_(kept) {}

  /// A tensor with any content. Tensors of the same number have the same type.
  Tensor take(std::size_t number, DType dtype, const Shape& shape);
  /// A buffer that lies in a tensor of `take`, to be written; null if the device cannot use it.
  std::shared_ptr<DeviceBuffer> buffer_in(const Tensor& tensor, DeviceInstance& device);

 private:
  struct GiveBack;
  void give_back(std::size_t number, Tensor& memory) noexcept;

  const std::size_t kept_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<Tensor>> free_;  // by number
  // By address. They go before the memory does, which a caller may hold longer than the device.
  std::map<const std::byte*, std::shared_ptr<DeviceBuffer>> buffers_;
};

}  // namespace npu
