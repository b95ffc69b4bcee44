// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace npu {

/// Threads that stay: whatever libraries keep for a thread (teams of OpenMP, buffers) is made once
/// and not for every run.
class ThreadPool {
 public:
  ThreadPool() = default;
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Calls job(0) on the calling thread and job(i) on thread i for the others, always the same one,
  /// at the same time, and returns when all have. `job` does not throw. One call at a time.
  void run(std::size_t count, const std::function<void(std::size_t)>& job);

 private:
  void serve(std::size_t index);

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(std::size_t)>* job_ = nullptr;
  std::size_t count_ = 0;
  std::size_t round_ = 0;
  std::size_t running_ = 0;
  bool stop_ = false;
};

/// Calls job(i) for each i below `count` at the same time, on threads that the process keeps; one
/// after the other on the calling thread while another call has them. `job` does not throw.
void run_together(std::size_t count, const std::function<void(std::size_t)>& job);

}  // namespace npu
