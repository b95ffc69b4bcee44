// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu::cli {

/// What every tool returns; see npu(7).
enum class ExitStatus : int {
  kSuccess = 0,
  kBadInput = 1,      ///< input unreadable, malformed or invalid; nothing was written
  kUsage = 2,         ///< wrong usage
  kInfeasible = 3,    ///< valid input, but no result within the given limits
  kAssertFailed = 4,  ///< an --assert or a comparison does not hold; the output was written
  kInternal = 70,     ///< a bug in the program
};

}  // namespace npu::cli
