// SPDX-License-Identifier: Apache-2.0
#include "support/cpu_pressure.hpp"

#include <chrono>
#include <thread>

#include "catch.hpp"

using namespace npu;

TEST_CASE("A thread's wait is the second number of its line") {
  CHECK(parse_schedstat("512644 7188510 2\n") == 7188510);
  CHECK(parse_schedstat("0 0 0") == 0);
  CHECK_FALSE(parse_schedstat(""));
  CHECK_FALSE(parse_schedstat("512644"));
  CHECK_FALSE(parse_schedstat("a b c"));
  CHECK_FALSE(parse_schedstat("1 99999999999999999999 2"));
}

TEST_CASE("Idle ticks are those of the CPUs asked for, with those that wait for disks") {
  const std::string text =
      "cpu  40 2 30 500 7 0 1 0 0 0\n"
      "cpu0 20 1 10 200 3 0 1 0 0 0\n"
      "cpu1 20 1 20 300 4 0 0 0 0 0\n"
      "intr 100 1 2 3\nctxt 5\n";
  const auto all = [](std::size_t) { return true; };
  CHECK(parse_idle_ticks(text, all) == 507);
  CHECK(parse_idle_ticks(text, [](std::size_t cpu) { return cpu == 1; }) == 304);
  CHECK_FALSE(parse_idle_ticks(text, [](std::size_t) { return false; }));
  CHECK_FALSE(parse_idle_ticks("", all));
  CHECK_FALSE(parse_idle_ticks("cpu", all));
  CHECK_FALSE(parse_idle_ticks("cpu0 1 2 3\n", all));
  CHECK(parse_idle_ticks("cpu0 1 2 3 4 5", all) == 9);
}

TEST_CASE("Delays of threads that are there can be read, those of others cannot") {
  CpuDelays delays;
  CHECK_FALSE(delays.read());
  if (!delays.watch({this_thread_number()})) {
    WARN("this system does not tell how long threads wait");
    return;
  }
  const auto waited = delays.read();
  REQUIRE(waited);
  CHECK(*waited >= 0.0);
  std::int64_t ended = 0;
  std::thread([&] { ended = this_thread_number(); }).join();
  CHECK(ended != this_thread_number());
  CHECK_FALSE(delays.watch({this_thread_number(), ended}));
  CHECK_FALSE(delays.read());
}

TEST_CASE("Idle CPUs are an average since the last call") {
  IdleCpus idle;
  CHECK_FALSE(idle.read(1.0));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (const auto cpus = idle.read(1.02)) CHECK(*cpus >= 0.0);
  CHECK_FALSE(idle.read(1.02));  // over no time
}
