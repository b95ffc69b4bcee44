// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace npu {

/// A thread that makes calls, one after another, for a library that wants all of them to come from
/// one thread. Calls are handed over by one thread at a time.
class CallThread {
 public:
  CallThread() = default;
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  /// Begins a call, after the one before is over; what that has thrown is thrown by the next
  /// wait().
  void post(std::function<void()> call);
  /// Waits until the last call is over. Throws what a call has thrown since the last wait().
  void wait();
  /// Makes a call and waits for it.
  void run(std::function<void()> call);

 private:
  void serve();

  std::mutex mutex_;  // of everything below
  std::condition_variable changed_;
  std::function<void()> call_;
  std::exception_ptr failure_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace npu
