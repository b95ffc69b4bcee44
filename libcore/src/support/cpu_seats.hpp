// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace npu {

/// The CPUs that the threads of a team are on. A system may wake a thread on the CPU of the one
/// that woke it, beside an idle CPU, and leave it there for milliseconds; a team then takes longer
/// than one thread alone.
class CpuSeats {
 public:
  /// All are free; before any thread of the team takes one.
  void clear() noexcept;
  /// The calling thread takes the CPU that it is on. If another thread of the team has taken that
  /// one, it moves to a CPU that is free, as far as its affinity allows, which stays as it is; not
  /// again before some milliseconds have passed, and later and later if it keeps coming back.
  /// Returns whether it moved.
  bool take() noexcept;

 private:
  static constexpr std::size_t kWords = 4;  // CPUs whose numbers are 256 apart count as the same
  std::array<std::atomic<std::uint64_t>, kWords> taken_{};
};

}  // namespace npu
