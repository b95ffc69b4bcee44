// SPDX-License-Identifier: Apache-2.0
// Spreads the threads of a team over CPUs, without pinning any: on a virtual machine of two CPUs
// (Linux 6.18) a thread was seen to wake behind the one that woke it, beside an idle CPU, for
// dozens of parallel regions on end.
// One system call narrows the thread's affinity, which moves it at once, and one restores it. On
// systems without these calls nothing moves. O(1) unless it moves.
#include "support/cpu_seats.hpp"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <chrono>

#include "support/elapsed.hpp"

namespace npu {

#ifdef __linux__
namespace {

/// When the calling thread may move, in seconds of the steady clock.
class Patience {
 public:
  bool allows_move() noexcept {
    const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    if (now < next_) return false;
    const bool came_back_soon = now - next_ < kSteady;
    pause_ = came_back_soon ? std::min(2.0 * pause_, kLongest) : kShortest;
    next_ = now + pause_;
    return true;
  }

 private:
  static constexpr double kShortest = 0.002;
  static constexpr double kLongest = 0.5;
  static constexpr double kSteady = 0.1;
  double next_ = -1.0;
  double pause_ = kShortest;
};

thread_local Patience patience;

}  // namespace

void CpuSeats::clear() noexcept {
  for (auto& word : taken_) word.store(0, std::memory_order_relaxed);
}

bool CpuSeats::take() noexcept {
  const int cpu = ::sched_getcpu();
  if (cpu < 0) return false;
  const auto word_of = [this](int each) -> auto& {
    return taken_[static_cast<std::size_t>(each) / 64 % kWords];
  };
  const auto bit_of = [](int each) { return std::uint64_t{1} << (each % 64); };
  const std::uint64_t before = word_of(cpu).fetch_or(bit_of(cpu), std::memory_order_relaxed);
  if ((before & bit_of(cpu)) == 0 || !patience.allows_move()) return false;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  cpu_set_t free = allowed;
  for (int each = 0; each < CPU_SETSIZE; ++each) {
    if ((word_of(each).load(std::memory_order_relaxed) & bit_of(each)) != 0) CPU_CLR(each, &free);
  }
  if (CPU_COUNT(&free) == 0 || ::sched_setaffinity(0, sizeof free, &free) != 0) return false;
  ::sched_setaffinity(0, sizeof allowed, &allowed);
  const int moved = ::sched_getcpu();
  if (moved >= 0) word_of(moved).fetch_or(bit_of(moved), std::memory_order_relaxed);
  return true;
}
#else
void CpuSeats::clear() noexcept {}
bool CpuSeats::take() noexcept { return false; }
#endif

}  // namespace npu
