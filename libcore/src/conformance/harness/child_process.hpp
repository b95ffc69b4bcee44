// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace npu::conformance {

/// How a child ended.
struct ChildResult {
  std::string output;  ///< what it wrote to stdout
  std::string errors;  ///< and to stderr
  int status = 0;      ///< of exit
  int signal = 0;      ///< that ended it, else 0
  bool is_overdue = false;
};

/// Starts this program anew with other arguments and waits for it; one that takes longer than
/// `limit` is killed. Throws Error kIo if it cannot be started.
ChildResult run_self(const std::vector<std::string>& arguments, std::chrono::seconds limit);

}  // namespace npu::conformance
