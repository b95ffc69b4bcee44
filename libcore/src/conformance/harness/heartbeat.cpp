// SPDX-License-Identifier: Apache-2.0
// A byte in a pipe for each sign of progress: a check that was made, a step that a backend reports.
// Nothing here beats by itself, so that a backend which hangs is silent.
#include "conformance/harness/heartbeat.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

namespace npu::conformance {
namespace {

int beat_descriptor() noexcept {
  static const int descriptor = [] {
    const char* text = std::getenv(kBeatVariable);
    const int number = text != nullptr ? std::atoi(text) : -1;
    return number > STDERR_FILENO ? number : -1;
  }();
  return descriptor;
}

}  // namespace

void beat() noexcept {
  const int descriptor = beat_descriptor();
  if (descriptor < 0) return;
  constexpr std::int64_t kPauseMs = 100;
  static std::atomic<std::int64_t> last{-kPauseMs};
  const std::int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                               std::chrono::steady_clock::now().time_since_epoch())
                               .count();
  std::int64_t before = last.load(std::memory_order_relaxed);
  if (now - before < kPauseMs) return;
  if (!last.compare_exchange_strong(before, now, std::memory_order_relaxed)) return;
  // The reader may be gone, or slow: neither is the case's concern.
  [[maybe_unused]] const ssize_t written = ::write(descriptor, "", 1);
}

std::uint32_t beat_of_compile(void* /*context*/, std::uint64_t /*done*/, std::uint64_t /*total*/,
                              const char* /*phase*/) {
  beat();
  return 0;
}

}  // namespace npu::conformance
