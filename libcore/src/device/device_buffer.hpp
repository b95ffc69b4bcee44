// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "npu/backend.h"
#include "npu/tensor/tensor.hpp"

namespace npu {

class DeviceInstance;

/// Dtype and shape of a boundary tensor, and how it lies on the device.
struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string layout = {};  ///< one of the backend's; empty: row-major
};

/// A tensor in device memory. Keeps its device open.
class DeviceBuffer {
 public:
  DeviceBuffer(std::shared_ptr<DeviceInstance> device, npu_buffer* buffer, TensorType type,
               std::uint64_t bytes, bool is_coherent, std::shared_ptr<const void> owner = nullptr);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  npu_buffer* get() const noexcept { return buffer_; }
  DType dtype() const noexcept { return type_.dtype; }
  const Shape& shape() const noexcept { return type_.shape; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  const std::shared_ptr<DeviceInstance>& device() const noexcept { return device_; }
  /// What keeps the memory of a buffer that was wrapped; null otherwise.
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }
  /// The buffer's memory, if the device shares the host's; null if it does not.
  std::byte* host_memory();
  /// Copies to a new host tensor, bit for bit.
  Tensor to_host() const;
  /// Copies to memory of the host that has its bytes.
  void read(void* data) const;
  /// Copies from a host tensor of the same type.
  void write(const void* data) const;
  /// The buffer's memory as a tensor that keeps the buffer alive; a copy if the device does not
  /// share the host's memory.
  static Tensor view(const std::shared_ptr<DeviceBuffer>& buffer);

 private:
  std::shared_ptr<DeviceInstance> device_;
  npu_buffer* buffer_;
  TensorType type_;
  std::uint64_t bytes_;
  bool is_coherent_;                   // a mapping may stay
  std::shared_ptr<const void> owner_;  // of memory that was wrapped; freed after the buffer
  std::byte* mapped_ = nullptr;
  bool is_mapped_ = false;
};

}  // namespace npu
