// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace npu::cli {

/// A progress line on stderr for long commands, only on a terminal and after some time; and Ctrl-C,
/// which asks the command to stop at the next point. A second one ends the program at once.
class Progress {
 public:
  enum class CtrlC : unsigned char { kStops, kIsNotOurs };
  /// `quiet`: no line; else one after `quiet_seconds`.
  explicit Progress(bool quiet, double quiet_seconds = 1, CtrlC ctrl_c = CtrlC::kStops);
  /// Removes the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// For npu::ProgressCallback: false once Ctrl-C was pressed. The remaining time is extrapolated
  /// from the time since `done` was last 0.
  bool operator()(double done, const std::string& what);
  /// Whether Ctrl-C was pressed.
  static bool interrupted();

 private:
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point began_;  ///< what `done` is a share of
  std::chrono::steady_clock::time_point shown_;
  double quiet_seconds_;
  bool visible_;
  bool has_line_ = false;
};

}  // namespace npu::cli
