// SPDX-License-Identifier: Apache-2.0
// Tensors in the memory of a device: mapped where the host sees it, copied where it does not. A
// buffer is freed once, before the memory that it wraps. A copy takes its bytes; the rest is a call
// of the backend.
#include "device/device_buffer.hpp"

#include <cstring>
#include <utility>

#include "device/device_call.hpp"
#include "device/device_instance.hpp"

namespace npu {
namespace {

[[noreturn]] void no_memory_mapped(const Backend& backend) {
  break_contract(backend, "buffer_map", "it says that it mapped a buffer, but gave no memory");
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::shared_ptr<DeviceInstance> device, npu_buffer* buffer,
                           TensorType type, std::uint64_t bytes, bool is_coherent,
                           std::shared_ptr<const void> owner)
    : device_(std::move(device)),
      buffer_(buffer),
      type_(std::move(type)),
      bytes_(bytes),
      is_coherent_(is_coherent),
      owner_(std::move(owner)) {}

DeviceBuffer::~DeviceBuffer() {
  const npu_backend& api = device_->backend().api();
  if (is_mapped_) api.buffer_unmap(buffer_);
  api.buffer_free(buffer_);
}

std::byte* DeviceBuffer::host_memory() {
  if (is_mapped_) return mapped_;
  const npu_backend& api = device_->backend().api();
  if (!type_.layout.empty() || !is_coherent_ || api.buffer_map == nullptr) return nullptr;
  void* pointer = nullptr;
  npu_error error = empty_error();
  const npu_status status =
      api.buffer_map(buffer_, NPU_ACCESS_READ | NPU_ACCESS_WRITE, &pointer, &error);
  if (status == NPU_UNSUPPORTED) return nullptr;
  check_status(status, error, device_->backend());
  if (pointer == nullptr && bytes_ != 0) no_memory_mapped(device_->backend());
  is_mapped_ = true;
  mapped_ = static_cast<std::byte*>(pointer);
  return mapped_;
}

Tensor DeviceBuffer::to_host() const {
  Tensor tensor(type_.dtype, type_.shape);
  read(tensor.mutable_data());
  return tensor;
}

void DeviceBuffer::read(void* data) const {
  const npu_backend& api = device_->backend().api();
  npu_error error = empty_error();
  if (api.buffer_read != nullptr) {
    npu_transfer transfer = sized<npu_transfer>();
    transfer.bytes = bytes_;
    transfer.data = data;
    check_status(api.buffer_read(buffer_, &transfer, &error), error, device_->backend());
    return;
  }
  void* pointer = mapped_;
  if (!is_mapped_) {
    check_status(api.buffer_map(buffer_, NPU_ACCESS_READ, &pointer, &error), error,
                 device_->backend());
  }
  if (pointer == nullptr && bytes_ != 0) no_memory_mapped(device_->backend());
  if (bytes_ != 0) std::memcpy(data, pointer, bytes_);
  if (!is_mapped_) api.buffer_unmap(buffer_);
}

void DeviceBuffer::write(const void* data) const {
  const npu_backend& api = device_->backend().api();
  npu_error error = empty_error();
  if (api.buffer_write != nullptr) {
    npu_transfer transfer = sized<npu_transfer>();
    transfer.bytes = bytes_;
    transfer.data = const_cast<void*>(data);  // which the backend only reads
    check_status(api.buffer_write(buffer_, &transfer, &error), error, device_->backend());
    return;
  }
  void* pointer = mapped_;
  if (!is_mapped_) {
    check_status(api.buffer_map(buffer_, NPU_ACCESS_WRITE, &pointer, &error), error,
                 device_->backend());
  }
  if (pointer == nullptr && bytes_ != 0) no_memory_mapped(device_->backend());
  if (bytes_ != 0) std::memcpy(pointer, data, bytes_);
  if (!is_mapped_) api.buffer_unmap(buffer_);
}

Tensor DeviceBuffer::view(const std::shared_ptr<DeviceBuffer>& buffer) {
  const std::byte* memory = buffer->host_memory();
  if (memory == nullptr) return buffer->to_host();
  return Tensor(buffer->dtype(), buffer->shape(), std::shared_ptr<const std::byte>(buffer, memory));
}

}  // namespace npu
