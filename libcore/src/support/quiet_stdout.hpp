// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu {

/// Drops output to stdout for as long as it lives, for libraries that print unasked. Any number of
/// threads may have one; output of other threads is dropped as well.
class QuietStdout {
 public:
  QuietStdout();
  ~QuietStdout();
  QuietStdout(const QuietStdout&) = delete;
  QuietStdout& operator=(const QuietStdout&) = delete;
};

}  // namespace npu
