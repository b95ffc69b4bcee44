// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace npu {

/// Called by long operations with the share of the work that is done, from 0 to 1, and with what
/// comes next. Returns false to stop. May be empty.
using ProgressCallback = std::function<bool(double done, const std::string& what)>;

/// Calls `progress` unless it is empty. Throws Error kIo "interrupted" if it asks to stop.
void report_progress(const ProgressCallback& progress, double done, const std::string& what);

/// Where the time of a command was spent: phases in the order of their first use.
class PhaseTimes {
 public:
  /// Adds to the phase, in milliseconds.
  void add(const std::string& phase, double ms);
  void add(const PhaseTimes& other);
  const std::vector<std::pair<std::string, double>>& entries() const noexcept { return entries_; }

  /// Times a phase until the end of its scope.
  class Scope {
   public:
    Scope(PhaseTimes& times, std::string phase);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseTimes& times_;
    std::string phase_;
    std::chrono::steady_clock::time_point start_;
  };

 private:
  std::vector<std::pair<std::string, double>> entries_;
};

/// A table of the phases with their shares, and the peak memory of the process.
std::string format_phase_times(const PhaseTimes& times);

/// The peak resident memory of the process so far.
std::int64_t peak_rss_bytes();

}  // namespace npu
