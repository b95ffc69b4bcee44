// SPDX-License-Identifier: Apache-2.0
// The time to switch between two programs, of one device or of two that share processors. They run
// as a a b b a a b b: every run after the other program has one after the same program right behind
// it, so what the machine does besides changes both, and their difference is what the switch takes.
// O(rounds) runs.
#include "gnn/profile/measure_switches.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "support/statistics.hpp"

namespace npu::gnn {
namespace {

/// The median, or 0 if that is not above the noise.
double above_noise(const std::vector<double>& differences) {
  if (differences.empty()) return 0;
  const double median = lower_median(differences);
  const double spread = median_absolute_deviation(differences, median);
  // The median of n values is off by about 1.9 times that over the root of n, one time in three.
  const double noise = 4 * spread / std::sqrt(static_cast<double>(differences.size()));
  return median > noise ? median : 0;
}

/// How much longer each program takes after the other one than after itself, of both in turns.
std::array<std::vector<double>, 2> differences_of(const TimedProgram& a, const TimedProgram& b,
                                                  std::int32_t rounds) {
  a();
  b();  // from here on the other program is always the last one
  std::array<std::vector<double>, 2> differences;
  for (std::int32_t round = 0; round < rounds; ++round) {
    for (const bool second : {false, true}) {
      const TimedProgram& program = second ? b : a;
      const double after_other = program();
      differences[second ? 1 : 0].push_back(after_other - program());
    }
  }
  return differences;
}

}  // namespace

double measure_switch_ms(const TimedProgram& a, const TimedProgram& b, std::int32_t rounds) {
  auto [all, of_b] = differences_of(a, b, rounds);
  all.insert(all.end(), of_b.begin(), of_b.end());
  return above_noise(all);
}

double measure_handover_ms(const TimedProgram& a, const TimedProgram& b, std::int32_t rounds) {
  const auto [of_a, of_b] = differences_of(a, b, rounds);
  return above_noise(of_a) + above_noise(of_b);
}

}  // namespace npu::gnn
