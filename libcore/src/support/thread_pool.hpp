// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace npu {

/// Persistent threads: what libraries keep per thread (OpenMP teams, buffers) is created once and
/// not for every run.
class ThreadPool {
 public:
  ThreadPool() = default;
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Calls job(0) on the calling thread and, concurrently, job(i) on thread i, always the same one;
  /// returns when all are done. `job` must not throw. One call at a time.
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

/// Calls job(i) once for each i below `count`, on the calling thread and up to `threads` - 1 others
/// that the process keeps; each takes the next one when it is done with one. Threads that come late
/// are not waited for, and fewer are used while other programs take their CPUs. If another call is
/// using them, the calling thread does all. `job` must not throw.
void run_pieces(std::size_t count, std::size_t threads,
                const std::function<void(std::size_t)>& job);

}  // namespace npu
