// SPDX-License-Identifier: Apache-2.0
// OpenCL 1.2 has no function that reads a device's clock, but it dates commands. So a command of
// four bytes is made: its end lies between the moments before and after it on the host's clock.
// What a device does besides can only make that longer, so the shortest of a few tries counts.
#include "driver/clock.hpp"

#include <algorithm>
#include <ctime>
#include <optional>

#include "kit/boundary.hpp"

namespace npu::opencl {
namespace {

constexpr int kClockTries = 8;
constexpr std::size_t kClockBytes = 4;

std::uint64_t monotonic_ns() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(at.tv_nsec);
}

npu_clock_sample sample_between(std::uint64_t before, std::uint64_t after, std::uint64_t ended) {
  npu_clock_sample sample{};
  sample.device_ns = ended;
  sample.host_ns = before + (after - before) / 2;
  sample.uncertainty_ns = (after - before + 1) / 2;
  return sample;
}

/// Nothing if the driver does not say when the command ended.
std::optional<npu_clock_sample> dated_command(cl_command_queue queue, cl_mem memory) {
  const cl_uint nothing = 0;
  cl_event made = nullptr;
  const std::uint64_t before = monotonic_ns();
  check_cl(
      clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, kClockBytes, &nothing, 0, nullptr, &made),
      "clEnqueueWriteBuffer");
  const ClEvent event(made);
  check_cl(clFinish(queue), "clFinish");
  const std::uint64_t after = monotonic_ns();
  cl_ulong ended = 0;
  if (clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof ended, &ended,
                              nullptr) != CL_SUCCESS) {
    return std::nullopt;
  }
  return sample_between(before, after, ended);
}

}  // namespace

npu_clock_sample DeviceClock::sample(const OpenDevice& device) {
  const std::lock_guard lock(mutex_);
  if (!queue_) {
    cl_int code = CL_SUCCESS;
    memory_ = ClMemory(
        clCreateBuffer(device.context.get(), CL_MEM_READ_WRITE, kClockBytes, nullptr, &code));
    check_cl(code, "clCreateBuffer");
    queue_ = device.make_queue();
  }
  std::optional<npu_clock_sample> best;
  for (int i = 0; i < kClockTries; ++i) {
    const auto tried = dated_command(queue_.get(), memory_.get());
    if (!tried) throw StatusError{NPU_UNSUPPORTED, "the driver does not say when commands ended"};
    if (!best || tried->uncertainty_ns < best->uncertainty_ns) best = tried;
  }
  return *best;
}
}  // namespace npu::opencl
