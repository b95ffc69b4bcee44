// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu {

/// For as long as one lives, what a library prints to stdout is dropped: for libraries that print
/// what nobody asked for. Any number of threads may have one; what others print is dropped, too.
class QuietStdout {
 public:
  QuietStdout();
  ~QuietStdout();
  QuietStdout(const QuietStdout&) = delete;
  QuietStdout& operator=(const QuietStdout&) = delete;
};

}  // namespace npu
