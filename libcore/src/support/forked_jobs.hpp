// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace npu {

/// Jobs for processes of their own: libraries that keep state for the whole process cannot do two
/// things at once otherwise.
struct ForkedJobs {
  std::size_t count = 0;
  std::size_t side_by_side = 1;  ///< processes at a time; 1: all is done in this process
  std::size_t bytes = 0;         ///< of each job's result, zero at first
  /// Does a job and writes its result. In a child, it must not use threads of the parent.
  std::function<void(std::size_t job, bool in_child, std::span<std::byte> result)> work;
  /// Takes a result, in this process; jobs end in any order.
  std::function<void(std::size_t job, std::span<const std::byte> result)> done;
  /// Called now and then while children work; what it throws ends them.
  std::function<void()> wait;
};

/// Runs all jobs. An Error that a job throws is thrown here and ends the others. A job whose
/// process cannot be started or is killed, for its memory perhaps, is done in this process when the
/// others have ended. Children do not outlive this call.
void run_forked(const ForkedJobs& jobs);

}  // namespace npu
