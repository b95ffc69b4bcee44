// SPDX-License-Identifier: Apache-2.0
#include "support/thread_pool.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace npu;

TEST_CASE("Every job runs once, the first one on the calling thread") {
  ThreadPool pool;
  pool.run(0, [](std::size_t) { FAIL("a job of none"); });
  for (const std::size_t count : {1, 4, 2}) {
    std::array<std::atomic<int>, 4> runs{};
    std::thread::id first;
    pool.run(count, [&](std::size_t i) {
      ++runs[i];
      if (i == 0) first = std::this_thread::get_id();
    });
    CHECK(first == std::this_thread::get_id());
    for (std::size_t i = 0; i < runs.size(); ++i) CHECK(runs[i] == (i < count ? 1 : 0));
  }
}

TEST_CASE("A job has the same thread in every round") {
  ThreadPool pool;
  std::array<std::thread::id, 3> before;
  std::array<std::thread::id, 3> after;
  pool.run(3, [&](std::size_t i) { before[i] = std::this_thread::get_id(); });
  pool.run(3, [&](std::size_t i) { after[i] = std::this_thread::get_id(); });
  CHECK(before == after);
  CHECK(before[1] != before[2]);
}

TEST_CASE("Jobs of a round run at the same time") {
  ThreadPool pool;
  std::atomic<int> arrived = 0;
  pool.run(3, [&](std::size_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();  // none returns before all have begun
  });
  CHECK(arrived == 3);
}

TEST_CASE("Every piece is done once, whatever the number of threads") {
  for (const std::size_t threads : {0, 1, 2, 3, 8}) {
    for (const std::size_t count : {0, 1, 2, 7, 100}) {
      std::vector<int> times(count, 0);  // not atomic: TSan watches
      run_pieces(count, threads, [&](std::size_t i) { ++times[i]; });
      INFO(threads << " threads, " << count << " pieces");
      CHECK(std::all_of(times.begin(), times.end(), [](int each) { return each == 1; }));
    }
  }
}

TEST_CASE("Rounds of pieces one after the other see what the one before wrote") {
  std::vector<int> values(64, 0);
  for (int round = 0; round < 500; ++round) {
    run_pieces(64, 3, [&](std::size_t i) { ++values[63 - i]; });
    run_pieces(64, 2, [&](std::size_t i) { ++values[i]; });
  }
  CHECK(std::all_of(values.begin(), values.end(), [](int each) { return each == 1000; }));
}

TEST_CASE("Pieces of pieces are done by the thread that has them") {
  std::atomic<int> inner = 0;
  run_pieces(2, 2, [&](std::size_t) { run_pieces(2, 2, [&](std::size_t) { ++inner; }); });
  CHECK(inner == 4);
}
