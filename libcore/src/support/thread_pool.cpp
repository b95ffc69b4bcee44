// SPDX-License-Identifier: Apache-2.0
// Threads that wait for the next round of jobs. A round wakes them all and ends when the last one
// is done: two context switches per thread, so short jobs run faster without it.
#include "support/thread_pool.hpp"

namespace npu {

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(std::size_t count, const std::function<void(std::size_t)>& job) {
  if (count == 0) return;
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    count_ = count;
    running_ = count - 1;
    ++round_;
    while (threads_.size() + 1 < count) {
      const std::size_t index = threads_.size() + 1;
      threads_.emplace_back([this, index] { serve(index); });
    }
  }
  changed_.notify_all();
  job(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return running_ == 0; });
}

void ThreadPool::serve(std::size_t index) {
  std::size_t served = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || (round_ != served && index < count_); });
    if (stop_) return;
    served = round_;
    const auto* job = job_;
    lock.unlock();
    (*job)(index);
    lock.lock();
    if (--running_ == 0) changed_.notify_all();
  }
}

void run_together(std::size_t count, const std::function<void(std::size_t)>& job) {
  static std::mutex mutex;
  static ThreadPool threads;
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (count > 1 && lock.owns_lock()) return threads.run(count, job);
  for (std::size_t i = 0; i < count; ++i) job(i);
}

}  // namespace npu
