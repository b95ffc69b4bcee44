// SPDX-License-Identifier: Apache-2.0
// One thread, one call at a time. The thread starts with the first call.
#include "transport/call_thread.hpp"

#include <utility>

namespace npu {

CallThread::~CallThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CallThread::post(std::function<void()> call) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  call_ = std::move(call);
  busy_ = true;
  lock.unlock();
  changed_.notify_all();
}

void CallThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  lock.unlock();
  if (failure) std::rethrow_exception(failure);
}

void CallThread::run(std::function<void()> call) {
  post(std::move(call));
  wait();
}

void CallThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || busy_; });
    if (!busy_) return;
    const std::function<void()> call = std::exchange(call_, nullptr);
    lock.unlock();
    std::exception_ptr failure;
    try {
      call();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace npu
