// SPDX-License-Identifier: Apache-2.0
// What this repository's own backends check of what a host passes, how errors cross to it, and how
// a table comes from the names of its functions.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "device/in_tree_backend.hpp"
#include "npu/tensor/tensor.hpp"
#include "support/checked.hpp"

namespace npu {

/// An error with the status that it crosses the boundary with.
struct StatusError : std::exception {
  StatusError(npu_status its_status, std::string its_text)
      : status(its_status), text(std::move(its_text)) {}
  const char* what() const noexcept override { return text.c_str(); }

  npu_status status;
  std::string text;
};

/// A writer of the host's has failed, and has filled the error.
struct WriteError {
  npu_status status;
};

[[noreturn]] inline void invalid(std::string text) {
  throw StatusError{NPU_INVALID, std::move(text)};
}

inline void require(bool condition, const char* text) {
  if (!condition) invalid(text);
}

inline void require_given(auto*... pointers) {
  require((... && (pointers != nullptr)), "an argument is null");
}

/// Fills the error, whose text is cut to a line and its room, and returns the status.
inline npu_status say(npu_error* error, npu_status status, const std::string& text) noexcept {
  if (error == nullptr || !NPU_HAS(error, text)) return status;
  error->status = status;
  const std::size_t length = std::min({text.size(), text.find('\n'), sizeof error->text - 1});
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

/// The same of any exception. Each backend has its own, for what its libraries throw.
npu_status current_status(npu_error* error) noexcept;

/// Runs the body of a call; no exception leaves it.
template <typename Body>
npu_status guarded(npu_error* error, Body&& body) noexcept {
  try {
    body();
    return NPU_OK;
  } catch (...) {
    return current_status(error);
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

/// The shape of a tensor that a host describes, checked but for its data; `what` names it.
inline Shape checked_shape(const std::string& what, npu_dtype dtype, std::uint32_t rank,
                           const std::int64_t* shape, std::uint64_t bytes) {
  if (dtype >= kDTypeCount) invalid(what + ": unknown dtype " + std::to_string(dtype));
  if (rank != 0 && shape == nullptr) invalid(what + ": its shape is null");
  Shape extents(shape, shape + rank);
  const auto count = checked_element_count(extents);
  const auto size =
      count ? checked_multiply(*count,
                               static_cast<std::int64_t>(dtype_size(static_cast<DType>(dtype))))
            : std::nullopt;
  if (!size) invalid(what + ": shape " + shape_text(extents) + " is negative or too large");
  if (bytes != static_cast<std::uint64_t>(*size)) {
    invalid(what + ": expected " + std::to_string(*size) + " bytes, found " +
            std::to_string(bytes));
  }
  return extents;
}

/// Of a buffer, which is row-major.
inline Shape checked_shape(const npu_buffer_desc& desc) {
  require(desc.layout == nullptr && desc.memory == 0, "there is one memory, and it is row-major");
  return checked_shape("buffer", desc.dtype, desc.rank, desc.shape, desc.bytes);
}

/// The part of a buffer that is written or read lies within it.
inline void check_range(std::uint64_t buffer_bytes, const npu_transfer& transfer) {
  require(transfer.data != nullptr || transfer.bytes == 0, "the data is null");
  if (transfer.offset <= buffer_bytes && transfer.bytes <= buffer_bytes - transfer.offset) return;
  invalid("the buffer has " + std::to_string(buffer_bytes) + " bytes, expected " +
          std::to_string(transfer.bytes) + " behind " + std::to_string(transfer.offset));
}

/// Fills a report of a device that has one memory.
inline void fill_report(npu_memory_report* report, const npu_memory_bytes& bytes,
                        std::uint64_t flags) {
  require(report != nullptr && NPU_HAS(report, memory_count) && report->memory_count == 1 &&
              report->memories != nullptr && report->memories[0] != nullptr &&
              NPU_HAS(report->memories[0], other_bytes),
          "the report has no room for one memory");
  fill(report->memories[0], bytes);
  report->struct_size = std::min<std::uint64_t>(report->struct_size, sizeof *report);
  report->flags = flags;
  report->host_bytes = 0;
}

// A backend names the functions of its table: those that its files share are declared by
// NPU_EACH(NPU_DECLARE, ...), and NPU_EACH(NPU_PLACE, ...) puts them into `table`.
// NOLINTNEXTLINE(bugprone-macro-parentheses): the name that is declared
#define NPU_DECLARE(name) std::remove_pointer_t<decltype(npu_backend::name)> name;
#define NPU_PLACE(name) table.name = name;
// Applies a macro to each of at most 64 names.
#define NPU_EACH(apply, ...) NPU_SCAN(NPU_NEXT(apply, __VA_ARGS__))
#define NPU_NEXT(apply, name, ...) apply(name) __VA_OPT__(NPU_LATER NPU_PAIR(apply, __VA_ARGS__))
#define NPU_PAIR ()
#define NPU_LATER() NPU_NEXT
#define NPU_SCAN(...) NPU_SCAN16(NPU_SCAN16(NPU_SCAN16(NPU_SCAN16(__VA_ARGS__))))
#define NPU_SCAN16(...) NPU_SCAN4(NPU_SCAN4(NPU_SCAN4(NPU_SCAN4(__VA_ARGS__))))
#define NPU_SCAN4(...) NPU_SCAN1(NPU_SCAN1(NPU_SCAN1(NPU_SCAN1(__VA_ARGS__))))
#define NPU_SCAN1(...) __VA_ARGS__

inline npu_backend empty_table(const char* const* features) {
  npu_backend table{};
  table.struct_size = sizeof table;
  table.abi_version = NPU_ABI_VERSION;
  table.features = features;
  return table;
}

/// What an entry gives its host.
inline const npu_backend* table_for(const npu_host* host, npu_error* error,
                                    const npu_backend& table) {
  if (host != nullptr && host->abi_version >= NPU_ABI_VERSION) return &table;
  say(error, NPU_INCOMPATIBLE,
      "expected a host of version " + std::to_string(NPU_ABI_VERSION) + " or above");
  return nullptr;
}

}  // namespace npu
