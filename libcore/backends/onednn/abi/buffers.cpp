// SPDX-License-Identifier: Apache-2.0
// Buffers: tensors in host memory, aligned for vectors, or in memory that the host lends;
// row-major, or in a layout that partitions agreed on, of which the host sees row-major copies.
#include <utility>

#include "abi/boundary.hpp"
#include "program/thread_scope.hpp"
#include "support/checked.hpp"

namespace npu::onednn::abi {
namespace {

/// A buffer without memory yet.
std::unique_ptr<npu_buffer> describe_buffer(npu_buffer_desc desc) {
  const std::string layout = desc.layout == nullptr ? "" : desc.layout;
  const bool is_named = std::exchange(desc.layout, nullptr) != nullptr;
  auto buffer = std::make_unique<npu_buffer>();
  buffer->shape = checked_shape(desc);
  buffer->dtype = static_cast<DType>(desc.dtype);
  buffer->bytes = desc.bytes;
  buffer->layout = layout;
  if (is_named && find_boundary_layout(layout, buffer->shape, buffer->dtype) == nullptr) {
    invalid("there is no layout '" + layout + "' for " + std::string(dtype_name(buffer->dtype)) +
            " " + shape_text(buffer->shape));
  }
  return buffer;
}

/// The whole content of a buffer that has a layout, from or to row-major memory. Any thread of the
/// host may ask for it, whose number of OpenMP threads is not the device's.
void copy_content(const npu_buffer& buffer, std::byte* row_major, bool is_write) {
  const ThreadScope threads(buffer.threads);
  const BoundaryLayout& named = *find_boundary_layout(buffer.layout, buffer.shape, buffer.dtype);
  const Iteration space = iterate(named_layout(named, buffer.shape, buffer.dtype));
  const auto outside = strides_in(space, plain_layout(buffer.shape, buffer.dtype));
  StridedCopy copy{dtype_size(buffer.dtype), space.extents, is_write ? outside : space.strides,
                   is_write ? space.strides : outside};
  copy.simplify();
  copy.run(is_write ? UnaryOperands{row_major, buffer.data}
                    : UnaryOperands{buffer.data, row_major});
}

AlignedMemory row_major_content(const npu_buffer& buffer) {
  AlignedMemory content = allocate_aligned(buffer.bytes);
  copy_content(buffer, content.get(), false);
  return content;
}

std::byte* checked_range(const npu_buffer* buffer, const npu_transfer* transfer) {
  require(buffer != nullptr && transfer != nullptr && NPU_HAS(transfer, data),
          "an argument is null");
  check_range(buffer->bytes, *transfer);
  return buffer->data + transfer->offset;
}

}  // namespace

npu_status buffer_create(npu_device* device, const npu_buffer_desc* desc, npu_buffer** buffer,
                         npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && desc != nullptr && NPU_HAS(desc, usage) && buffer != nullptr,
            "an argument is null");
    auto made = describe_buffer(*desc);
    made->threads = device->threads;
    made->share = MemoryShare(device->ledger, made->bytes, "a buffer");
    made->memory = allocate_aligned(made->bytes);
    made->data = made->memory.get();
    *buffer = made.release();
  });
}

npu_status buffer_wrap(npu_device* device, const npu_buffer_desc* desc,
                       const npu_external* external, npu_buffer** buffer, npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && desc != nullptr && NPU_HAS(desc, usage) && external != nullptr &&
                NPU_HAS(external, bytes) && buffer != nullptr,
            "an argument is null");
    require(desc->layout == nullptr, "only a row-major tensor can lie in memory of the host");
    auto made = describe_buffer(*desc);
    auto* data = static_cast<std::byte*>(external->pointer) + external->offset;
    if (external->type != NPU_HOST_POINTER ||
        reinterpret_cast<std::uintptr_t>(data) % kAlignment != 0 || external->bytes < made->bytes) {
      throw StatusError{NPU_UNSUPPORTED, "only memory of the host that is aligned to " +
                                             std::to_string(kAlignment) +
                                             " bytes can be used in place"};
    }
    made->data = data;
    made->is_writable = (external->access & NPU_ACCESS_WRITE) != 0;
    *buffer = made.release();
  });
}

void buffer_free(npu_buffer* buffer) { delete buffer; }

npu_status buffer_write(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  return guarded(error, [&] {
    std::byte* target = checked_range(buffer, transfer);
    require(buffer->is_writable, "the buffer can only be read");
    if (transfer->bytes == 0) return;
    if (buffer->layout.empty()) {
      std::memcpy(target, transfer->data, transfer->bytes);
      return;
    }
    const AlignedMemory content = row_major_content(*buffer);
    std::memcpy(content.get() + transfer->offset, transfer->data, transfer->bytes);
    copy_content(*buffer, content.get(), true);
  });
}

npu_status buffer_read(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  return guarded(error, [&] {
    const std::byte* source = checked_range(buffer, transfer);
    if (transfer->bytes == 0) return;
    if (buffer->layout.empty()) {
      std::memcpy(transfer->data, source, transfer->bytes);
      return;
    }
    const AlignedMemory content = row_major_content(*buffer);
    std::memcpy(transfer->data, content.get() + transfer->offset, transfer->bytes);
  });
}

npu_status buffer_map(npu_buffer* buffer, std::uint32_t access, void** pointer, npu_error* error) {
  return guarded(error, [&] {
    require_given(buffer, pointer);
    require(buffer->is_writable || (access & NPU_ACCESS_WRITE) == 0, "the buffer can only be read");
    if (!buffer->layout.empty()) {
      throw StatusError{NPU_UNSUPPORTED, "a buffer that is not row-major cannot be mapped"};
    }
    *pointer = buffer->bytes == 0 ? nullptr : buffer->data;
  });
}

void buffer_unmap(npu_buffer* /*buffer*/) {}

}  // namespace npu::onednn::abi
