// SPDX-License-Identifier: Apache-2.0
// When a measurement counts as disturbed, and that the machine is asked at all.
#include "profile/machine_watch.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace npu;

TEST_CASE("waiting for a core is a disturbance", "[profile]") {
  MachineLoad load;
  load.elapsed_ms = 10;
  CHECK_FALSE(is_disturbed(load));
  load.waited_ms = 0.5;
  CHECK_FALSE(is_disturbed(load));
  load.involuntary_switches = 100;  // the kernel counts what they cost, which is little
  CHECK_FALSE(is_disturbed(load));
  load.waited_ms = 2;
  CHECK(is_disturbed(load));
  load.waited_ms.reset();
  CHECK(is_disturbed(load));
  load.involuntary_switches = 2;
  CHECK_FALSE(is_disturbed(load));
}

TEST_CASE("more threads than cores disturb each other", "[profile]") {
  const MachineWatch watch;
  std::vector<std::thread> threads;
  MachineLoad load;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const auto spin = [end] {
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency() + 2; ++i) {
    threads.emplace_back(spin);
  }
  // Asked while they are there: what a thread waited goes with it.
  std::this_thread::sleep_until(end - std::chrono::milliseconds(50));
  load = watch.load();
  for (std::thread& thread : threads) thread.join();
  CHECK(load.elapsed_ms > 100);
  CHECK(load.runnable > 0);
  if (load.waited_ms) CHECK(is_disturbed(load));
}
