// SPDX-License-Identifier: Apache-2.0
// Threads that wait for the next round of jobs. A round wakes them all and ends when the last one
// is done: two context switches per thread, so short jobs run faster without it.
//
// run_pieces has threads of its own, which join a round when they get to it: it ends when all
// pieces are done, whether a thread that was woken has got a CPU by then or not; one that wakes on
// the CPU of another moves away. Whoever waits for the pieces of others looks for some microseconds
// and then sleeps.
#include "support/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "support/cpu_seats.hpp"
#include "support/elapsed.hpp"
#include "support/run_threads.hpp"

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

namespace {

/// The threads of run_pieces.
class Crew {
 public:
  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }

  /// From one thread at a time.
  void run(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& job) {
    if (most_ != threads) {
      most_ = threads;
      run_threads_ = RunThreads(static_cast<int>(std::min<std::size_t>(threads, kMostThreads)));
    }
    const auto begin = Clock::now();
    const std::size_t wanted =
        std::min(count, static_cast<std::size_t>(run_threads_.threads())) - 1;
    if (wanted > 0) open_round(count, wanted, job);
    if (wanted == 0) {
      for (std::size_t i = 0; i < count; ++i) job(i);
    } else {
      take(job);
      close_round();
    }
    run_threads_.note_run(seconds_since(begin), [&] { return team(wanted); });
  }

 private:
  static constexpr std::size_t kMostThreads = 4096;

  void open_round(std::size_t count, std::size_t wanted,
                  const std::function<void(std::size_t)>& job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      next_.store(0, std::memory_order_relaxed);
      count_ = count;
      places_ = wanted;
      ++round_;
      seats_.clear();
      seats_.take();
      while (helpers_.size() < wanted) {
        numbers_.push_back(0);
        helpers_.emplace_back([this, index = helpers_.size()] { serve(index); });
      }
    }
    wanted == 1 && helpers_.size() == 1 ? changed_.notify_one() : changed_.notify_all();
  }

  void close_round() {
    constexpr int kLooks = 2000;  // some microseconds
    {
      const std::lock_guard lock(mutex_);
      places_ = 0;  // nobody else joins
    }
    for (int i = 0; i < kLooks && working_.load(std::memory_order_acquire) != 0; ++i) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return working_.load(std::memory_order_relaxed) == 0; });
  }

  void take(const std::function<void(std::size_t)>& job) {
    for (;;) {
      const std::size_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= count_) return;
      job(piece);
    }
  }

  void serve(std::size_t index) {
    std::size_t served = 0;
    std::unique_lock lock(mutex_);
    numbers_[index] = this_thread_number();
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || (places_ > 0 && round_ != served); });
      if (stop_) return;
      served = round_;
      --places_;
      working_.fetch_add(1, std::memory_order_relaxed);
      const auto* job = job_;
      lock.unlock();
      seats_.take();
      take(*job);
      lock.lock();
      if (working_.fetch_sub(1, std::memory_order_release) == 1) ended_.notify_one();
    }
  }

  std::vector<std::int64_t> team(std::size_t helpers) {
    const std::lock_guard lock(mutex_);
    std::vector<std::int64_t> result{this_thread_number()};
    for (std::size_t i = 0; i < std::min(helpers, numbers_.size()); ++i) {
      if (numbers_[i] != 0) result.push_back(numbers_[i]);
    }
    return result;
  }

  std::size_t most_ = 0;
  RunThreads run_threads_{1};
  std::vector<std::thread> helpers_;
  std::atomic<std::size_t> next_ = 0;  // piece
  std::atomic<std::size_t> working_ = 0;
  CpuSeats seats_;
  std::mutex mutex_;  // of everything below
  std::condition_variable changed_;
  std::condition_variable ended_;
  std::vector<std::int64_t> numbers_;  // by helper, once it has begun
  const std::function<void(std::size_t)>* job_ = nullptr;
  std::size_t count_ = 0;
  std::size_t places_ = 0;  // for helpers that have not joined the round
  std::size_t round_ = 0;
  bool stop_ = false;
};

}  // namespace

void run_pieces(std::size_t count, std::size_t threads,
                const std::function<void(std::size_t)>& job) {
  static std::mutex mutex;
  static Crew crew;
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (count > 1 && threads > 1 && lock.owns_lock()) return crew.run(count, threads, job);
  for (std::size_t i = 0; i < count; ++i) job(i);
}

}  // namespace npu
