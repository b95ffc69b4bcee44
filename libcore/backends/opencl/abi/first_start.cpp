// SPDX-License-Identifier: Apache-2.0
// pocl compiles a kernel for its work groups when it is first started, and puts into a program's
// binary what it has compiled by then. So a compile starts each kernel of the plan once. What it
// computes is of no use: all inputs are one piece of memory, and so are all weights, whose indices
// kernels keep within their tensors. What kernels write has places of its own, since they may read
// it again. The cost is at most that of one run.
#include "abi/first_start.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace npu::opencl {
namespace {

std::uint64_t largest(const std::vector<PlanTensor>& tensors) {
  std::uint64_t most = 0;
  for (const PlanTensor& tensor : tensors) most = std::max(most, tensor.bytes);
  return most;
}

}  // namespace

// Scratch memory is at 0.
TrialMemory::TrialMemory(npu_device& device, const Plan& plan)
    : device_(device), bytes_(aligned(plan.scratch_bytes)) {
  faults_ = add(plan.faults.size() * sizeof(FaultWord));
  inputs_ = add(largest(plan.inputs));
  weights_ = add(largest(plan.weights));
  for (const PlanTensor& output : plan.outputs) outputs_.push_back(add(output.bytes));
  bytes_ = std::max<std::uint64_t>(bytes_, 1);
  memory_ = allocate(device, bytes_, share_, "a first start of the kernels");
  const cl_uchar zero = 0;
  check_cl(clEnqueueFillBuffer(device.queue.get(), memory_.get(), &zero, sizeof zero, 0,
                               static_cast<std::size_t>(bytes_), 0, nullptr, nullptr),
           "clEnqueueFillBuffer");
}

std::uint64_t TrialMemory::add(std::uint64_t size) {
  const std::uint64_t offset = bytes_;
  bytes_ += aligned(size);
  return offset;
}

std::uint64_t TrialMemory::offset_of(const Place& place) const {
  switch (place.kind) {
    case PlaceKind::kInput:
      return inputs_;
    case PlaceKind::kWeight:
      return weights_;
    case PlaceKind::kOutput:
      return outputs_.at(static_cast<std::size_t>(place.value));
    case PlaceKind::kFault:
      return faults_ + place.value * sizeof(FaultWord);
    default:
      return place.value;
  }
}

std::optional<std::uint64_t> TrialMemory::start(const Launch& launch, cl_kernel kernel) const {
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    set_argument(kernel, i, memory_.get(), offset_of(launch.arguments[i]));
  }
  cl_event event = nullptr;
  enqueue_launch(device_.queue.get(), kernel, launch, &event);
  const ClEvent ended(event);
  check_cl(clFinish(device_.queue.get()), "clFinish");
  cl_ulong times[2] = {};
  const bool is_known = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof times[0],
                                                &times[0], nullptr) == CL_SUCCESS &&
                        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof times[1],
                                                &times[1], nullptr) == CL_SUCCESS;
  if (!is_known || times[1] < times[0]) return std::nullopt;
  return times[1] - times[0];
}

bool start_kernels(npu_device& device, const Plan& plan, const std::vector<cl_program>& programs,
                   const std::function<void(std::size_t done, std::size_t total)>& progress) {
  if (!device.machine.finishes_at_start) return true;
  try {
    std::optional<TrialMemory> memory;
    // A form of a kernel: its work group, and whether its range is small.
    std::set<std::tuple<std::size_t, std::array<std::uint64_t, 3>, bool>> started;
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
      progress(i, plan.launches.size());
      const Launch& launch = plan.launches[i];
      if (programs[launch.kernel] == nullptr) continue;
      if (!started.emplace(launch.kernel, launch.local, is_small_range(launch.global)).second) {
        continue;
      }
      if (!memory) memory.emplace(device, plan);
      memory->start(launch, make_kernel(programs[launch.kernel], launch).get());
    }
    return true;
  } catch (const MemoryLimitError&) {
    // The kernels are compiled when they run.
  } catch (const ClError& failure) {
    if (!is_out_of_memory(failure.code)) throw;
  }
  return false;
}

}  // namespace npu::opencl
