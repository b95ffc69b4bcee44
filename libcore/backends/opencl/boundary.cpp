// SPDX-License-Identifier: Apache-2.0
// Turns what is thrown below into statuses: one table, so that an error is the same whichever
// function meets it.
#include "boundary.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace npu::opencl {
namespace {

npu4_status status_of_cl(cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return NPU4_MEMORY;
    case CL_DEVICE_NOT_AVAILABLE:
      return NPU4_DEVICE_LOST;
    default:
      return NPU4_FAILED;
  }
}

npu4_status say(npu4_error* error, npu4_status status, const std::string& text) {
  if (error == nullptr || !NPU4_HAS(error, text)) return status;
  error->status = status;
  const std::size_t length = std::min(text.size(), sizeof error->text - 1);
  std::memcpy(error->text, text.data(), length);
  error->text[length] = '\0';
  return status;
}

}  // namespace

npu4_status current_status(npu4_error* error) noexcept {
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
    return say(error, NPU4_MEMORY, failure.message());
  } catch (const ClError& failure) {
    if (error != nullptr && NPU4_HAS(error, vendor_code)) {
      error->known |= NPU4_KNOWN_VENDOR_CODE;
      error->vendor_code = failure.code;
    }
    return say(error, status_of_cl(failure.code),
               failure.call + " failed: " + cl_error_name(failure.code));
  } catch (const Error& failure) {
    return say(error, status_of(failure.code()), failure.message());
  } catch (const std::bad_alloc&) {
    return say(error, NPU4_MEMORY, "out of memory");
  } catch (const std::exception& failure) {
    return say(error, NPU4_FAILED, failure.what());
  } catch (...) {
    return say(error, NPU4_FAILED, "an unknown error");
  }
}

}  // namespace npu::opencl
