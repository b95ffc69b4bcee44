// SPDX-License-Identifier: Apache-2.0
// The time of a switch, of programs whose times are known.
#include "gnn/profile/measure_switches.hpp"

#include <random>
#include <string>

#include "catch.hpp"

using namespace npu::gnn;

namespace {

/// Two programs of 3 and 5 ms on a device that remembers the last one; other work adds up to
/// `noise_ms` to any run.
struct RememberingDevice {
  double switch_ms = 0;
  double noise_ms = 0;
  std::string last = {};
  std::mt19937 random{5};

  TimedProgram program(const std::string& name, double ms) {
    return [this, name, ms] {
      const double noise = noise_ms * static_cast<double>(random() % 1000) / 1000;
      const double time = ms + noise + (last.empty() || last == name ? 0 : switch_ms);
      last = name;
      return time;
    };
  }
  double measure() { return measure_switch_ms(program("a", 3), program("b", 5), 25); }
};

}  // namespace

TEST_CASE("a switch is what a run takes longer after another program", "[profile]") {
  CHECK(RememberingDevice{0.25}.measure() == Approx(0.25));
  CHECK(RememberingDevice{0}.measure() == 0);
  CHECK(RememberingDevice{2, 0.5}.measure() == Approx(2).margin(0.3));
}

TEST_CASE("a switch within the noise takes no time", "[profile]") {
  CHECK(RememberingDevice{0, 4}.measure() == 0);
  CHECK(measure_switch_ms([] { return 1.0; }, [] { return 2.0; }, 0) == 0);
}
