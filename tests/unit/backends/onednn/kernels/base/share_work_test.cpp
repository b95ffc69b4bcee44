// SPDX-License-Identifier: Apache-2.0
// Work is shared so that every piece is done once, and that what it wrote is there afterwards.
#include "kernels/base/share_work.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace npu::onednn;

TEST_CASE("Every piece is done once, on a thread that does nothing else", "[onednn][kernels]") {
  for (const int threads : {1, 2, 3, 7, 100}) {
    for (const std::int64_t count : {0, 1, 2, 3, 15, 16, 1000}) {
      std::vector<int> times(static_cast<std::size_t>(count), 0);  // not atomic: TSan watches
      std::array<std::atomic<int>, 100> at_work{};
      std::atomic<int> wrong = 0;
      share_pieces(count, threads, [&](std::int64_t piece, int thread) {
        if (thread < 0 || thread >= threads) ++wrong;
        std::atomic<int>& mine = at_work[static_cast<std::size_t>(thread)];
        if (mine.fetch_add(1) != 0) ++wrong;
        ++times[static_cast<std::size_t>(piece)];
        --mine;
      });
      INFO(threads << " threads, " << count << " pieces");
      CHECK(wrong == 0);
      CHECK(std::all_of(times.begin(), times.end(), [](int each) { return each == 1; }));
    }
  }
}

TEST_CASE("Kernels one after the other see what the one before wrote", "[onednn][kernels]") {
  std::vector<std::int64_t> values(1000);
  std::iota(values.begin(), values.end(), 0);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> next(values.size());
    // Each piece reads what another thread wrote in the round before.
    share_range(1000, 7, 3, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        next[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(999 - i)] + 1;
      }
    });
    values.swap(next);
  }
  for (std::int64_t i = 0; i < 1000; ++i) CHECK(values[static_cast<std::size_t>(i)] == i + 200);
}

TEST_CASE("A thread that is late leaves its pieces to others", "[onednn][kernels]") {
  std::atomic<int> left = 99;
  std::atomic<bool> gave_up = false;
  share_pieces(100, 2, [&](std::int64_t piece, int) {
    if (piece != 0) {
      --left;
      return;
    }
    // The thread of the first piece, which has 49 more of its own, waits until all are done.
    for (int i = 0; left > 5 && !gave_up; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (i > 10'000) gave_up = true;
    }
  });
  CHECK_FALSE(gave_up);
  CHECK(left == 0);
}

TEST_CASE("Two callers at once do not disturb each other", "[onednn][kernels]") {
  std::array<std::int64_t, 2> sums{};
  const auto add = [&](std::size_t me) {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::int64_t> parts(64, 0);
      share_pieces(
          64, 2, [&](std::int64_t piece, int) { parts[static_cast<std::size_t>(piece)] = piece; });
      sums[me] += std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    }
  };
  std::thread other(add, 1);
  add(0);
  other.join();
  CHECK(sums[0] == 50 * 2016);  // 0 + 1 + ... + 63
  CHECK(sums[1] == 50 * 2016);
}
