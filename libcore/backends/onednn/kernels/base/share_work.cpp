// SPDX-License-Identifier: Apache-2.0
// How the backend's own kernels share work among threads; the only place of theirs that knows of
// OpenMP, whose threads are those that oneDNN computes with, too.
//
// Every thread begins with a run of pieces of its own, so that memory which it wrote in one kernel
// is in its cache in the next, and then takes pieces that are left of others' runs: a thread that
// is late, or slow, holds nobody up but for the piece that it is at. OpenMP's threads wait for a
// short time before they sleep: a launch and its end take about half a microsecond. A thread that
// begins on the CPU of another one moves away.
//
// ThreadSanitizer does not see what OpenMP synchronises: two atomic numbers say the same, and what
// the compiler makes of the parallel region itself is not instrumented.
#include "kernels/base/share_work.hpp"

#include <omp.h>

#include <array>
#include <atomic>

#include "support/cpu_seats.hpp"

namespace npu::onednn::share_work {

namespace {

constexpr int kMostShares = 64;

/// Pieces that nobody has taken; each in a cache line of its own.
struct alignas(64) Share {
  std::atomic<std::int64_t> next;
  std::int64_t end;
};

struct Shares {
  std::array<Share, kMostShares> each;
  int count;
  std::int64_t step;  ///< pieces that are taken together
  std::atomic<int> begun;
  std::atomic<int> ended;
  CpuSeats seats;
};

void take_pieces(Shares& shares, Call call, const void* body, int thread) {
  for (int i = 0; i < shares.count; ++i) {
    Share& share = shares.each[static_cast<std::size_t>((thread + i) % shares.count)];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      const std::int64_t first = share.next.fetch_add(shares.step, std::memory_order_relaxed);
      const std::int64_t last = std::min(first + shares.step, share.end);
      for (std::int64_t piece = first; piece < last; ++piece) call(body, piece, thread);
    }
  }
}

#if defined(__GNUC__)
#define NPU_NO_TSAN __attribute__((no_sanitize("thread"), noinline))
#else
#define NPU_NO_TSAN
#endif

/// What one thread does in a region.
[[gnu::noinline]] void work(Shares& shares, Call call, const void* body, int thread) {
  shares.begun.load(std::memory_order_acquire);
  shares.seats.take();
  take_pieces(shares, call, body, thread);
  shares.ended.fetch_add(1, std::memory_order_release);
}

NPU_NO_TSAN void launch(Shares& shares, Call call, const void* body, int threads) {
#pragma omp parallel num_threads(threads)
  work(shares, call, body, omp_get_thread_num());
}

}  // namespace

void run(std::int64_t count, int threads, Call call, const void* body) {
  if (threads == kAllThreads) threads = omp_get_max_threads();
  threads = static_cast<int>(std::min<std::int64_t>(threads, count));
  if (threads <= 1) {
    for (std::int64_t piece = 0; piece < count; ++piece) call(body, piece, 0);
    return;
  }
  constexpr std::int64_t kTakes = 8;  // for each thread, of its own run
  Shares shares;
  shares.count = std::min(threads, kMostShares);
  shares.step = std::max<std::int64_t>(1, count / shares.count / kTakes);
  for (std::int64_t i = 0; i < shares.count; ++i) {
    Share& share = shares.each[static_cast<std::size_t>(i)];
    share.next.store(count / shares.count * i + std::min(i, count % shares.count),
                     std::memory_order_relaxed);
    share.end = count / shares.count * (i + 1) + std::min(i + 1, count % shares.count);
  }
  shares.ended.store(0, std::memory_order_relaxed);
  shares.begun.store(1, std::memory_order_release);
  launch(shares, call, body, threads);
  shares.ended.load(std::memory_order_acquire);
}

}  // namespace npu::onednn::share_work
