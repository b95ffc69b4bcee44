// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "npu/support/error.hpp"

namespace npu {

class DeviceProgram;

/// The deadline came in the middle of a run.
class RunLate : public Error {
 public:
  using Error::Error;
};

/// Ends runs before they are done: between two steps, and within one whose backend can cancel it.
/// Runs may go on at once.
class RunStop {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit RunStop(std::optional<TimePoint> deadline = {});
  ~RunStop();
  RunStop(const RunStop&) = delete;
  RunStop& operator=(const RunStop&) = delete;

  /// Asks the runs to end. From any thread, and from a signal handler.
  void ask() noexcept;
  /// Whether a run goes on of which a step can be cancelled. As ask.
  bool reaches_run() const noexcept { return reached_ != 0; }
  /// Throws RunLate behind the deadline, and BackendError NPU_CANCELLED if it was asked to.
  void check() const;
  /// The latter alone.
  void check_asked() const;
  /// On CLOCK_MONOTONIC; 0: none.
  std::uint64_t deadline_ns() const noexcept;

  /// The programs of a run, for as long as it goes on.
  class Scope {
   public:
    /// `stop` may be null.
    Scope(RunStop* stop, std::vector<const DeviceProgram*> programs);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class RunStop;
    RunStop* stop_;
    std::vector<const DeviceProgram*> programs_;  // those that can be cancelled
  };

 private:
  bool is_late() const noexcept {
    return deadline_ && std::chrono::steady_clock::now() >= *deadline_;
  }
  void watch();
  void wake() const noexcept;
  int pause_ms();
  void cancel_all();

  std::optional<TimePoint> deadline_;
  std::atomic<bool> is_asked_{false};
  std::atomic<bool> is_ending_{false};
  std::atomic<int> reached_{0};
  int wake_fd_;
  std::mutex mutex_;            // of the two below
  std::vector<Scope*> scopes_;  // with programs
  std::thread watcher_;         // started when it first has something to watch
};

}  // namespace npu
