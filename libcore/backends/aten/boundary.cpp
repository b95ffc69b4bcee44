// SPDX-License-Identifier: Apache-2.0
// Errors, tensors and buffers as they cross the boundary. A buffer has no memory until something is
// put in it, since a run gives it the tensor that it made.
#include "boundary.hpp"

#include <c10/util/Exception.h>
#include <spdlog/fmt/fmt.h>

#include "support/checked.hpp"

namespace npu::aten {

at::TensorOptions options_of(npu_dtype dtype) {
  return at::TensorOptions().dtype(kScalarTypes[static_cast<std::size_t>(dtype)]);
}

namespace {

/// A buffer without memory: a run may put its result there.
std::unique_ptr<npu_buffer> make_buffer(const npu_buffer_desc& desc) {
  auto buffer = std::make_unique<npu_buffer>();
  buffer->shape = checked_shape(desc);
  buffer->dtype = desc.dtype;
  return buffer;
}

}  // namespace

at::Tensor wrap_weight(const npu_tensor& tensor) {
  const std::string what = fmt::format("tensor '{}'", tensor.name == nullptr ? "" : tensor.name);
  const Shape shape = checked_shape(what, tensor.dtype, tensor.rank, tensor.shape, tensor.bytes);
  const auto options = options_of(tensor.dtype);
  if (tensor.bytes == 0) return at::empty(shape, options);
  if (tensor.data == nullptr) invalid(what + ": its data is null");
  const std::size_t alignment = dtype_size(static_cast<DType>(tensor.dtype));
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % alignment != 0) {
    at::Tensor copy = at::empty(shape, options);
    std::memcpy(copy.data_ptr(), tensor.data, tensor.bytes);
    return copy;
  }
  // Never written: Program clones a tensor before an op changes it.
  return at::from_blob(const_cast<void*>(tensor.data), shape, options);
}

const npu_memory_info& memory_info() {
  static const npu_memory_info info = host_memory_info(64);
  return info;
}

at::Tensor& tensor_in(npu_buffer& buffer) {
  if (!buffer.tensor.defined()) buffer.tensor = at::empty(buffer.shape, options_of(buffer.dtype));
  return buffer.tensor;
}

namespace {

char* checked_range(npu_buffer* buffer, const npu_transfer* transfer) {
  require_given(buffer, transfer);
  const at::Tensor& tensor = tensor_in(*buffer);
  check_range(tensor.nbytes(), *transfer);
  return static_cast<char*>(tensor.data_ptr()) + transfer->offset;
}

}  // namespace

npu_status buffer_create(npu_device* device, const npu_buffer_desc* desc, npu_buffer** buffer,
                         npu_error* error) {
  return guarded(error, [&] {
    require_given(device, desc, buffer);
    auto made = make_buffer(*desc);
    made->share = MemoryShare(device->state->ledger, desc->bytes, "a buffer");
    *buffer = made.release();
  });
}

npu_status buffer_wrap(npu_device* device, const npu_buffer_desc* desc,
                       const npu_external* external, npu_buffer** buffer, npu_error* error) {
  return guarded(error, [&] {
    require_given(device, desc, external, buffer);
    auto made = make_buffer(*desc);
    auto* data = static_cast<char*>(external->pointer) + external->offset;
    if (external->type != NPU_HOST_POINTER || external->bytes < desc->bytes ||
        reinterpret_cast<std::uintptr_t>(data) % memory_info().alignment != 0) {
      throw StatusError(NPU_UNSUPPORTED,
                        fmt::format("only memory of the host that is aligned to {} bytes can be "
                                    "used in place",
                                    memory_info().alignment));
    }
    made->tensor = at::from_blob(data, made->shape, options_of(made->dtype));
    made->is_seen = true;
    *buffer = made.release();
  });
}

void buffer_free(npu_buffer* buffer) {
  if (buffer == nullptr) return;
  const c10::InferenceMode inference;
  delete buffer;
}

npu_status buffer_write(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  return guarded(error, [&] {
    char* target = checked_range(buffer, transfer);
    if (transfer->bytes != 0) std::memcpy(target, transfer->data, transfer->bytes);
  });
}

npu_status buffer_read(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  return guarded(error, [&] {
    const char* source = checked_range(buffer, transfer);
    if (transfer->bytes != 0) std::memcpy(transfer->data, source, transfer->bytes);
  });
}

npu_status buffer_map(npu_buffer* buffer, std::uint32_t /*access*/, void** pointer,
                      npu_error* error) {
  return guarded(error, [&] {
    require_given(buffer, pointer);
    at::Tensor& tensor = tensor_in(*buffer);
    buffer->is_seen = true;
    *pointer = tensor.nbytes() == 0 ? nullptr : tensor.data_ptr();
  });
}

void buffer_unmap(npu_buffer* /*buffer*/) {
  // Results go on being copied into it: it may be of the host's memory, and no harm is done.
}

}  // namespace npu::aten

npu_status npu::current_status(npu_error* error) noexcept {
  try {
    throw;
  } catch (const c10::Error& failure) {
    const std::string text = aten::first_line(failure.what_without_backtrace());
    const bool is_memory = dynamic_cast<const c10::OutOfMemoryError*>(&failure) != nullptr ||
                           text.find("can't allocate memory") != text.npos;
    return say(error, is_memory ? NPU_MEMORY : NPU_FAILED, text);
  } catch (...) {
    return common_status(error);
  }
}
