// SPDX-License-Identifier: Apache-2.0
// Buffers: row-major tensors in the device's memory.
#include <vector>

#include "abi/boundary.hpp"
#include "support/checked.hpp"

namespace npu::opencl {

ClMemory allocate(npu_device& device, std::uint64_t bytes, MemoryShare& share, const char* what) {
  if (bytes == 0) return {};
  if (bytes > device.facts->largest_buffer) {
    throw MemoryLimitError(what, bytes, device.facts->largest_buffer);
  }
  MemoryShare taken(device.ledger, bytes, what);
  cl_int code = CL_SUCCESS;
  ClMemory memory(clCreateBuffer(device.context.get(), CL_MEM_READ_WRITE,
                                 static_cast<std::size_t>(bytes), nullptr, &code));
  if (is_out_of_memory(code)) {
    const std::uint64_t used = device.ledger->state().in_use_bytes - bytes;
    const std::uint64_t all = device.facts->memory_bytes;
    throw ClError{std::string(what) + ": clCreateBuffer", code, bytes, all > used ? all - used : 0};
  }
  check_cl(code, "clCreateBuffer");
  share = std::move(taken);
  return memory;
}

namespace {

std::unique_ptr<npu_buffer> described(npu_device& device, const npu_buffer_desc& desc) {
  auto buffer = std::make_unique<npu_buffer>();
  buffer->device = &device;
  buffer->shape = checked_shape(desc);
  buffer->dtype = static_cast<DType>(desc.dtype);
  buffer->bytes = desc.bytes;
  return buffer;
}

}  // namespace

npu_status buffer_create(npu_device* device, const npu_buffer_desc* desc, npu_buffer** buffer,
                         npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && desc != nullptr && NPU_HAS(desc, usage) && buffer != nullptr,
            "an argument is null");
    auto made = described(*device, *desc);
    made->memory = allocate(*device, made->bytes, made->share, "a buffer");
    *buffer = made.release();
  });
}

void buffer_free(npu_buffer* buffer) {
  if (buffer == nullptr) return;
  buffer_unmap(buffer);
  delete buffer;
}

void check_transfer(const npu_buffer* buffer, const npu_transfer* transfer) {
  require(buffer != nullptr && transfer != nullptr && NPU_HAS(transfer, data),
          "an argument is null");
  check_range(buffer->bytes, *transfer);
}

void transfer_on(npu_buffer& buffer, const npu_transfer& transfer, bool writes,
                 cl_command_queue queue) {
  if (transfer.bytes == 0) return;
  const auto offset = static_cast<std::size_t>(transfer.offset);
  const auto bytes = static_cast<std::size_t>(transfer.bytes);
  if (writes) {
    check_cl(clEnqueueWriteBuffer(queue, buffer.memory.get(), CL_TRUE, offset, bytes, transfer.data,
                                  0, nullptr, nullptr),
             "clEnqueueWriteBuffer");
  } else {
    check_cl(clEnqueueReadBuffer(queue, buffer.memory.get(), CL_TRUE, offset, bytes, transfer.data,
                                 0, nullptr, nullptr),
             "clEnqueueReadBuffer");
  }
}

npu_status buffer_write(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  return guarded(error, [&] {
    check_transfer(buffer, transfer);
    transfer_on(*buffer, *transfer, true, buffer->device->queue.get());
  });
}

npu_status buffer_read(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  return guarded(error, [&] {
    check_transfer(buffer, transfer);
    transfer_on(*buffer, *transfer, false, buffer->device->queue.get());
  });
}

npu_status buffer_map(npu_buffer* buffer, std::uint32_t access, void** pointer, npu_error* error) {
  return guarded(error, [&] {
    require_given(buffer, pointer);
    require(buffer->mapped == nullptr, "the buffer is mapped already");
    if (buffer->bytes == 0) {
      *pointer = nullptr;
      return;
    }
    cl_map_flags flags = 0;
    if ((access & NPU_ACCESS_READ) != 0) flags |= CL_MAP_READ;
    if ((access & NPU_ACCESS_WRITE) != 0) flags |= CL_MAP_WRITE;
    cl_int code = CL_SUCCESS;
    buffer->mapped =
        clEnqueueMapBuffer(buffer->device->queue.get(), buffer->memory.get(), CL_TRUE, flags, 0,
                           static_cast<std::size_t>(buffer->bytes), 0, nullptr, nullptr, &code);
    check_cl(code, "clEnqueueMapBuffer");
    *pointer = buffer->mapped;
  });
}

void buffer_unmap(npu_buffer* buffer) {
  if (buffer == nullptr || buffer->mapped == nullptr) return;
  cl_command_queue queue = buffer->device->queue.get();
  clEnqueueUnmapMemObject(queue, buffer->memory.get(), buffer->mapped, 0, nullptr, nullptr);
  clFinish(queue);
  buffer->mapped = nullptr;
}

void check_copy(const npu_buffer* source, const npu_buffer* destination) {
  require_given(source, destination);
  require(source->dtype == destination->dtype && source->shape == destination->shape,
          "the buffers differ in dtype or shape");
}

void copy_on(npu_buffer& source, npu_buffer& destination, cl_command_queue queue) {
  if (source.bytes == 0 || &source == &destination) return;
  const auto bytes = static_cast<std::size_t>(source.bytes);
  if (source.device == destination.device) {
    check_cl(clEnqueueCopyBuffer(queue, source.memory.get(), destination.memory.get(), 0, 0, bytes,
                                 0, nullptr, nullptr),
             "clEnqueueCopyBuffer");
    return check_cl(clFinish(queue), "clFinish");
  }
  // Contexts share nothing, so it goes through the host.
  std::vector<char> staging(bytes);
  check_cl(clEnqueueReadBuffer(source.device->queue.get(), source.memory.get(), CL_TRUE, 0, bytes,
                               staging.data(), 0, nullptr, nullptr),
           "clEnqueueReadBuffer");
  check_cl(clEnqueueWriteBuffer(queue, destination.memory.get(), CL_TRUE, 0, bytes, staging.data(),
                                0, nullptr, nullptr),
           "clEnqueueWriteBuffer");
}

}  // namespace npu::opencl
