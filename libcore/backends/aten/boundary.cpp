// SPDX-License-Identifier: Apache-2.0
// Errors, tensors and buffers as they cross the boundary. A buffer has no memory until something is
// put in it, since a run gives it the tensor that it made.
#include "boundary.hpp"

#include <c10/util/Exception.h>
#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <new>

#include "npu/support/checked.hpp"

namespace npu::aten {

void write_error(npu_error* error, npu_status status, std::string_view text) {
  if (error == nullptr || !NPU_HAS(error, text)) return;
  error->status = status;
  std::snprintf(error->text, sizeof error->text, "%.*s", static_cast<int>(text.size()),
                text.data());
}

npu_status current_status(npu_error* error) noexcept {
  const auto say = [error](npu_status status, std::string_view text) {
    write_error(error, status, text);
    return status;
  };
  try {
    throw;
  } catch (const WriteError& failure) {
    return failure.status;
  } catch (const StatusError& failure) {
    return say(failure.status(), failure.what());
  } catch (const CompileStopped& failure) {
    return say(failure.status, failure.text);
  } catch (const MemoryLimitError& failure) {
    failure.fill_numbers(error);
    return say(NPU_MEMORY, failure.message());
  } catch (const Error& failure) {
    return say(status_of(failure.code()), failure.message());
  } catch (const std::bad_alloc&) {
    return say(NPU_MEMORY, "out of memory");
  } catch (const c10::OutOfMemoryError& failure) {
    return say(NPU_MEMORY, first_line(failure.what_without_backtrace()));
  } catch (const c10::Error& failure) {
    const std::string text = first_line(failure.what_without_backtrace());
    return say(text.find("can't allocate memory") == text.npos ? NPU_FAILED : NPU_MEMORY, text);
  } catch (const std::exception& failure) {
    return say(NPU_FAILED, first_line(failure.what()));
  } catch (...) {
    return say(NPU_FAILED, "unknown exception");
  }
}

Shape checked_shape(std::string_view what, npu_dtype dtype, std::uint32_t rank,
                    const std::int64_t* shape, std::uint64_t bytes) {
  if (dtype >= kDTypeCount) invalid(fmt::format("{}: unknown dtype {}", what, dtype));
  if (rank != 0 && shape == nullptr) invalid(fmt::format("{}: its shape is null", what));
  Shape dimensions(shape, shape + rank);
  const auto count = checked_element_count(dimensions);
  const auto size =
      count ? checked_multiply(*count,
                               static_cast<std::int64_t>(dtype_size(static_cast<DType>(dtype))))
            : std::nullopt;
  if (!size)
    invalid(fmt::format("{}: shape {} is negative or too large", what, shape_text(dimensions)));
  if (bytes != static_cast<std::uint64_t>(*size)) {
    invalid(fmt::format("{}: expected {} bytes, found {}", what, *size, bytes));
  }
  return dimensions;
}

at::TensorOptions options_of(npu_dtype dtype) {
  return at::TensorOptions().dtype(kScalarTypes[static_cast<std::size_t>(dtype)]);
}

namespace {

std::string tensor_text(const npu_tensor& tensor) {
  return fmt::format("tensor '{}'", tensor.name == nullptr ? "" : tensor.name);
}

/// A buffer without memory: a run may put its result there.
std::unique_ptr<npu_buffer> make_buffer(const npu_buffer_desc& desc) {
  if (desc.layout != nullptr || desc.memory != 0) {
    invalid("there is one memory, and it is row-major");
  }
  auto buffer = std::make_unique<npu_buffer>();
  buffer->shape = checked_shape("buffer", desc.dtype, desc.rank, desc.shape, desc.bytes);
  buffer->dtype = desc.dtype;
  return buffer;
}

}  // namespace

at::Tensor wrap_weight(const npu_tensor& tensor) {
  const Shape shape =
      checked_shape(tensor_text(tensor), tensor.dtype, tensor.rank, tensor.shape, tensor.bytes);
  const auto options = options_of(tensor.dtype);
  if (tensor.bytes == 0) return at::empty(shape, options);
  if (tensor.data == nullptr) invalid(fmt::format("{}: its data is null", tensor_text(tensor)));
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
  require(buffer, "buffer");
  require(transfer, "transfer");
  const std::uint64_t bytes = tensor_in(*buffer).nbytes();
  if (transfer->offset > bytes || transfer->bytes > bytes - transfer->offset) {
    invalid(fmt::format("the buffer has {} bytes, expected {} behind {}", bytes, transfer->bytes,
                        transfer->offset));
  }
  if (transfer->bytes != 0) require(transfer->data, "data");
  return static_cast<char*>(buffer->tensor.data_ptr()) + transfer->offset;
}

}  // namespace

npu_status buffer_create(npu_device* device, const npu_buffer_desc* desc, npu_buffer** buffer,
                         npu_error* error) {
  return guarded(error, [&] {
    require(device, "device");
    require(desc, "desc");
    require(buffer, "buffer");
    auto made = make_buffer(*desc);
    made->share = MemoryShare(device->state->ledger, desc->bytes, "a buffer");
    *buffer = made.release();
  });
}

npu_status buffer_wrap(npu_device* device, const npu_buffer_desc* desc,
                       const npu_external* external, npu_buffer** buffer, npu_error* error) {
  return guarded(error, [&] {
    require(device, "device");
    require(desc, "desc");
    require(external, "external");
    require(buffer, "buffer");
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
    require(buffer, "buffer");
    require(pointer, "pointer");
    at::Tensor& tensor = tensor_in(*buffer);
    buffer->is_seen = true;
    *pointer = tensor.nbytes() == 0 ? nullptr : tensor.data_ptr();
  });
}

void buffer_unmap(npu_buffer* /*buffer*/) {
  // Results go on being copied into it: it may be of the host's memory, and no harm is done.
}

}  // namespace npu::aten
