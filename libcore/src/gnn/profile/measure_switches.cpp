// SPDX-License-Identifier: Apache-2.0
// The time to switch between two programs. They run as a a b b a a b b: every run after the other
// program has one after the same program right behind it, so what the machine does besides changes
// both, and their difference is what the switch takes. O(rounds) runs.
#include "gnn/profile/measure_switches.hpp"

#include <cmath>
#include <vector>

#include "support/statistics.hpp"

namespace npu::gnn {

double measure_switch_ms(const TimedProgram& a, const TimedProgram& b, std::int32_t rounds) {
  a();
  b();  // from here on the other program is always the last one
  std::vector<double> differences;
  for (std::int32_t round = 0; round < rounds; ++round) {
    for (const TimedProgram* program : {&a, &b}) {
      const double after_other = (*program)();
      differences.push_back(after_other - (*program)());
    }
  }
  if (differences.empty()) return 0;
  const double median = lower_median(differences);
  const double spread = median_absolute_deviation(differences, median);
  // The median of n values is off by about 1.9 times that over the root of n, one time in three.
  const double noise = 4 * spread / std::sqrt(static_cast<double>(differences.size()));
  return median > noise ? median : 0;
}

}  // namespace npu::gnn
