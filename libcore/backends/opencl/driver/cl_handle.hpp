// SPDX-License-Identifier: Apache-2.0
// Owners of OpenCL's objects, and its errors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

namespace npu::opencl {

/// A call that failed.
struct ClError {
  std::string call;
  cl_int code;
  std::uint64_t asked_bytes = 0;  ///< that there was no memory for; 0: unknown
  std::uint64_t there_bytes = 0;
};

/// Whether a call says that there is no memory.
inline bool is_out_of_memory(cl_int code) {
  return code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
         code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
}

/// "CL_OUT_OF_RESOURCES", or the number.
std::string cl_error_name(cl_int code);

inline void check_cl(cl_int code, const char* call) {
  if (code != CL_SUCCESS) throw ClError{call, code};
}

template <typename Object, cl_int (*release)(Object)>
class ClHandle {
 public:
  ClHandle() = default;
  explicit ClHandle(Object object) : object_(object) {}
  ClHandle(ClHandle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ClHandle& operator=(ClHandle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ClHandle(const ClHandle&) = delete;
  ClHandle& operator=(const ClHandle&) = delete;
  ~ClHandle() {
    if (object_ != nullptr) release(object_);
  }
  Object get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  Object object_ = nullptr;
};

using ClContext = ClHandle<cl_context, clReleaseContext>;
using ClQueue = ClHandle<cl_command_queue, clReleaseCommandQueue>;
using ClMemory = ClHandle<cl_mem, clReleaseMemObject>;
using ClProgram = ClHandle<cl_program, clReleaseProgram>;
using ClKernel = ClHandle<cl_kernel, clReleaseKernel>;
using ClEvent = ClHandle<cl_event, clReleaseEvent>;

}  // namespace npu::opencl
