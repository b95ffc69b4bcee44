// SPDX-License-Identifier: Apache-2.0
// What this repository's own backends check of what a host passes, and how errors cross to it.
#pragma once

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "device/in_tree_backend.hpp"
#include "npu/support/checked.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// An error with the status that it crosses the boundary with.
struct StatusError {
  npu_status status;
  std::string text;
};

/// A writer of the host's has failed, and has filled the error.
struct WriteError {
  npu_status status;
};

inline void require(bool condition, const char* text) {
  if (!condition) throw StatusError{NPU_INVALID, text};
}

/// Fills the error, whose text is cut to its room, and returns the status.
inline npu_status say(npu_error* error, npu_status status, const std::string& text) noexcept {
  if (error == nullptr || !NPU_HAS(error, text)) return status;
  error->status = status;
  const std::size_t length = std::min(text.size(), sizeof error->text - 1);
  std::memcpy(error->text, text.data(), length);
  error->text[length] = '\0';
  return status;
}

/// The status and text of an exception that is being handled and that no library of the backend's
/// has thrown.
inline npu_status common_status(npu_error* error) noexcept {
  try {
    throw;
  } catch (const WriteError& failure) {
    return failure.status;
  } catch (const StatusError& failure) {
    return say(error, failure.status, failure.text);
  } catch (const CompileStopped& failure) {
    return say(error, failure.status, failure.text);
  } catch (const MemoryLimitError& failure) {
    failure.fill_numbers(error);
    return say(error, NPU_MEMORY, failure.message());
  } catch (const Error& failure) {
    return say(error, status_of(failure.code()), failure.message());
  } catch (const std::bad_alloc&) {
    return say(error, NPU_MEMORY, "out of memory");
  } catch (const std::exception& failure) {
    return say(error, NPU_FAILED, failure.what());
  } catch (...) {
    return say(error, NPU_FAILED, "an unknown error");
  }
}

/// Passes pieces to a writer of the host.
inline auto pieces_to(const npu_writer* writer, npu_error* error) {
  return [writer, error](const void* data, std::uint64_t size) {
    const npu_status status = writer->write(writer->context, data, size, error);
    if (status != NPU_OK) throw WriteError{status};
  };
}

/// The entry of a compile for backends that take one at a time.
inline const npu_entry& only_entry(const npu_compile_args* args) {
  require(args != nullptr && NPU_HAS(args, blob) && args->blob != nullptr, "an argument is null");
  require(args->entry_count == 1 && args->entries != nullptr && args->entries[0] != nullptr &&
              args->entries[0]->sub_ir != nullptr,
          "expected one entry");
  return *args->entries[0];
}

/// What a buffer is to hold, row-major.
struct BufferForm {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t bytes = 0;
};

inline BufferForm checked_form(const npu_buffer_desc& desc) {
  require(desc.dtype < kDTypeCount, "unknown dtype");
  require(desc.shape != nullptr || desc.rank == 0, "shape is null");
  require(desc.layout == nullptr && desc.memory == 0, "there is one memory, and it is row-major");
  BufferForm form;
  form.dtype = static_cast<DType>(desc.dtype);
  if (desc.rank != 0) form.shape.assign(desc.shape, desc.shape + desc.rank);
  const auto count = checked_element_count(form.shape);
  const auto bytes =
      count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(form.dtype)))
            : std::nullopt;
  if (!bytes) {
    throw StatusError{NPU_INVALID, "shape " + shape_text(form.shape) + " is not a tensor's"};
  }
  form.bytes = static_cast<std::uint64_t>(*bytes);
  require(form.bytes == desc.bytes, "the bytes are not those of the shape");
  return form;
}

/// The part of a buffer that is written or read lies within it.
inline void check_range(std::uint64_t buffer_bytes, const npu_transfer& transfer) {
  require(transfer.data != nullptr || transfer.bytes == 0, "the data is null");
  require(transfer.offset <= buffer_bytes && transfer.bytes <= buffer_bytes - transfer.offset,
          "the range passed is not within the buffer");
}

}  // namespace npu
