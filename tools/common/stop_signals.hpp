// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>
#include <optional>

namespace npu::cli {

/// What the program says when it leaves a backend behind that does not stop.
struct LeftBehindTexts {
  const char* after_signal;
  const char* after_deadline;
};

/// For as long as it lives, SIGINT and SIGTERM are noted instead of ending the program. What goes
/// on for 1.7 s after one, or after `deadline_s`, is left behind: the program removes its
/// unfinished files and ends. A second signal ends it at once. There is one at a time.
class StopSignals {
 public:
  /// `asks`, if it is not null, is called by the handler of the first signal; if it says that
  /// nobody will stop, the program ends as without this.
  StopSignals(const LeftBehindTexts& texts, std::optional<double> deadline_s,
              bool (*asks)() noexcept = nullptr);
  /// Ends the program if a signal came.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool has_come() noexcept;

 private:
  /// Ends the program by the signal that came; returns if none did.
  static void end_if_come() noexcept;
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGALRM};

  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace npu::cli
