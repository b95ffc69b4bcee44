// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace npu::cli {

/// A line on stderr that says how far a long command is, on a terminal only and after a second; and
/// Ctrl-C, which asks the command to stop at the next point. A second one ends the program at once.
class Progress {
 public:
  /// `quiet`: no line.
  explicit Progress(bool quiet);
  /// Takes the line away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// For npu::ProgressCallback: false once Ctrl-C was pressed. What is left is judged by the time
  /// since `done` was first above 0.
  bool operator()(double done, const std::string& what);
  /// With a better guess of what is left.
  bool show(double done, double remaining_s, const std::string& what);
  /// Whether Ctrl-C was pressed.
  static bool interrupted();

 private:
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point shown_;
  bool visible_;
  bool has_line_ = false;
};

}  // namespace npu::cli
