// SPDX-License-Identifier: Apache-2.0
// Starts kernels on memory of no contents: for a driver that compiles a kernel only then, and to
// measure how long they take.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "abi/boundary.hpp"

namespace npu::opencl {

/// Memory for the launches of a plan, all zeros, whose results are of no use.
class TrialMemory {
 public:
  /// Throws MemoryLimitError or ClError if there is none.
  TrialMemory(npu_device& device, const Plan& plan);

  /// Starts a launch and waits for its end; gives its time on the device's clock if that is known.
  std::optional<std::uint64_t> start(const Launch& launch, cl_kernel kernel) const;

 private:
  std::uint64_t offset_of(const Place& place) const;
  std::uint64_t add(std::uint64_t size);

  const npu_device& device_;
  MemoryShare share_;
  ClMemory memory_;
  std::uint64_t faults_ = 0;
  std::uint64_t inputs_ = 0;
  std::uint64_t weights_ = 0;
  std::vector<std::uint64_t> outputs_;
  std::uint64_t bytes_ = 0;
};

/// Lets the driver finish the kernels of a plan, so that the programs' binaries have them; null
/// programs are left out. `progress` is told how many launches are done. Nothing happens where
/// drivers compile all at once. False if there is no memory for it.
bool start_kernels(npu_device& device, const Plan& plan, const std::vector<cl_program>& programs,
                   const std::function<void(std::size_t done, std::size_t total)>& progress);

}  // namespace npu::opencl
