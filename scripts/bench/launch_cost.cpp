// SPDX-License-Identifier: Apache-2.0
// What it costs to share a kernel's work among threads: the launch, taking the pieces and the wait
// for the last thread, with pieces that do nothing. Prints microseconds for each number of threads,
// the median and the least of 31 rounds of 2000 launches each. Meant for a quiet machine.
#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

#include "kernels/share_work.hpp"
#include "npu/support/elapsed.hpp"

int main() {
  constexpr int kLaunches = 2000;
  constexpr std::size_t kRounds = 31;
  const int most = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::printf("%8s %8s %12s %12s\n", "threads", "pieces", "median us", "least us");
  for (int threads = 1; threads <= most; ++threads) {
    for (const std::int64_t pieces : {threads, 8 * threads}) {
      std::vector<double> times;
      for (std::size_t round = 0; round < kRounds; ++round) {
        const auto begin = npu::Clock::now();
        for (int i = 0; i < kLaunches; ++i) {
          npu::onednn::share_pieces(pieces, threads, [](std::int64_t, int) {});
        }
        times.push_back(npu::microseconds_since(begin) / kLaunches);
      }
      std::sort(times.begin(), times.end());
      std::printf("%8d %8lld %12.3f %12.3f\n", threads, static_cast<long long>(pieces),
                  times[kRounds / 2], times.front());
    }
  }
  return 0;
}
