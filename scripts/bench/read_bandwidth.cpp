// SPDX-License-Identifier: Apache-2.0
// The bandwidth of reading memory: a sum over 512 MiB by some threads, each over its own part,
// which is what a step of a decoder does with its weights. A core asks for more at a time where it
// reads several places in turn, so each thread reads its part as 1, 2, 4 and 8 streams; the fastest
// way counts.
//
// Usage: read_bandwidth THREADS [RUNS]
// Prints the bytes per second of the median run.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

namespace {

using Line [[gnu::vector_size(64)]] = std::uint64_t;
constexpr std::size_t kLines = std::size_t{512} * 1024 * 1024 / sizeof(Line);
constexpr std::size_t kLineWords = sizeof(Line) / sizeof(std::uint64_t);

// Narrow loads keep a core from asking for as much as it can.
#if defined(__x86_64__)
#define NPU_WIDEST_LOADS [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define NPU_WIDEST_LOADS
#endif

/// Two sums at once, so that no addition waits for the one before.
NPU_WIDEST_LOADS
std::uint64_t sum(const Line* begin, std::size_t lines, std::size_t streams) {
  Line sums[2] = {};
  const std::size_t each = lines / streams;
  for (std::size_t i = 0; i + 2 <= each; i += 2) {
    for (std::size_t s = 0; s < streams; ++s) {
      sums[0] += begin[s * each + i];
      sums[1] += begin[s * each + i + 1];
    }
  }
  std::uint64_t total = 0;
  for (std::size_t k = 0; k < kLineWords; ++k) total += sums[0][k] + sums[1][k];
  return total;
}

/// Seconds of the median run.
double median_seconds(const std::vector<Line>& lines, std::size_t threads, std::size_t streams,
                      int runs, std::uint64_t& total) {
  std::vector<std::uint64_t> sums(threads);
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (std::size_t t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        const std::size_t begin = kLines * t / threads;
        sums[t] = sum(lines.data() + begin, kLines * (t + 1) / threads - begin, streams);
      });
    }
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    seconds.push_back(spent.count());
    for (const std::uint64_t each : sums) total += each;
  }
  std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
  return seconds[static_cast<std::size_t>(runs / 2)];
}

}  // namespace

int main(int argc, char** argv) {
  const auto threads = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 1);
  const int runs = argc > 2 ? std::atoi(argv[2]) : 9;
  if (threads < 1 || threads > 1024 || runs < 1) {
    std::fputs("usage: read_bandwidth THREADS [RUNS]\n", stderr);
    return 2;
  }
  const std::vector<Line> lines(kLines, Line{} + 3);
  std::uint64_t total = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t streams : {1U, 2U, 4U, 8U}) {
    least = std::min(least, median_seconds(lines, threads, streams, runs, total));
  }
  if (total == 0) return 1;  // so that the sums are made
  std::printf("%.0f\n", static_cast<double>(kLines * sizeof(Line)) / least);
  return 0;
}
