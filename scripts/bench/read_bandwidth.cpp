// SPDX-License-Identifier: Apache-2.0
// The bandwidth of reading memory: a sum over 512 MiB by some threads, each over its own part,
// which is what a step of a decoder does with its weights.
//
// Usage: read_bandwidth THREADS [RUNS]
// Prints the bytes per second of the median run.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kWords = std::size_t{512} * 1024 * 1024 / sizeof(std::uint64_t);

/// Several sums at once, so that no addition waits for the one before.
std::uint64_t sum(const std::uint64_t* begin, std::size_t count) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) sums[k] += begin[i + k];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t each : sums) total += each;
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  const auto threads = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 1);
  const int runs = argc > 2 ? std::atoi(argv[2]) : 9;
  if (threads < 1 || threads > 1024 || runs < 1) {
    std::fputs("usage: read_bandwidth THREADS [RUNS]\n", stderr);
    return 2;
  }
  const std::vector<std::uint64_t> words(kWords, 3);
  std::vector<std::uint64_t> sums(threads);
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (std::size_t t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        const std::size_t begin = kWords * t / threads;
        sums[t] = sum(words.data() + begin, kWords * (t + 1) / threads - begin);
      });
    }
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    seconds.push_back(spent.count());
  }
  std::uint64_t total = 0;
  for (const std::uint64_t each : sums) total += each;
  if (total == 0) return 1;  // so that the sums are made
  std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
  std::printf("%.0f\n", static_cast<double>(kWords * sizeof(std::uint64_t)) /
                            seconds[static_cast<std::size_t>(runs / 2)]);
  return 0;
}
