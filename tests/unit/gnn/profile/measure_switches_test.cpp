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

TEST_CASE("a handover is what both programs take longer when they take turns", "[profile]") {
  const auto measure = [](RememberingDevice device) {
    return measure_handover_ms(device.program("a", 3), device.program("b", 5), 25);
  };
  CHECK(measure({0.25}) == Approx(0.5));
  CHECK(measure({0}) == 0);
  CHECK(measure({2, 0.5}) == Approx(4).margin(0.6));
  CHECK(measure({0, 4}) == 0);
  // Only the second one is held up.
  std::string last;
  const auto program = [&](const std::string& name, double ms, double held_up) -> TimedProgram {
    return [&last, name, ms, held_up] {
      const double time = ms + (last.empty() || last == name ? 0 : held_up);
      last = name;
      return time;
    };
  };
  CHECK(measure_handover_ms(program("a", 3, 0), program("b", 5, 1.5), 25) == Approx(1.5));
}
