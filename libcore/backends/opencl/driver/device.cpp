// SPDX-License-Identifier: Apache-2.0
// A context of its own for each opening, so that one that the driver gives up takes no other with
// it.
#include "driver/device.hpp"

namespace npu::opencl {
namespace {

ClContext make_context(cl_device_id device) {
  cl_int code = CL_SUCCESS;
  ClContext context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code));
  check_cl(code, "clCreateContext");
  return context;
}

}  // namespace

OpenDevice::OpenDevice(const DeviceFacts& of)
    : facts(&of), context(make_context(of.device)), queue(make_queue()) {}

ClQueue OpenDevice::make_queue() const {
  cl_int code = CL_SUCCESS;
  ClQueue made(
      clCreateCommandQueue(context.get(), facts->device, CL_QUEUE_PROFILING_ENABLE, &code));
  check_cl(code, "clCreateCommandQueue");
  return made;
}

}  // namespace npu::opencl
