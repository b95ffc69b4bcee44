// SPDX-License-Identifier: Apache-2.0
#include "support/cpu_seats.hpp"

#include <sched.h>

#include <thread>

#include "catch.hpp"

namespace npu {
namespace {

cpu_set_t affinity() {
  cpu_set_t result;
  REQUIRE(::sched_getaffinity(0, sizeof result, &result) == 0);
  return result;
}

/// A new thread is on a CPU that another one has taken, and may use `others`, too. Returns whether
/// it moved.
bool moves(int cpu, const cpu_set_t& allowed) {
  bool result = false;
  bool kept = false;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    CpuSeats seats;
    seats.clear();
    seats.take();
    ::sched_setaffinity(0, sizeof allowed, &allowed);
    result = seats.take();
    cpu_set_t after;
    kept = ::sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&after, &allowed);
  }).join();
  CHECK(kept);
  return result;
}

}  // namespace

TEST_CASE("a thread leaves the CPU of another one of its team", "[support][cpu_seats]") {
  const cpu_set_t all = affinity();
  int cpu = 0;
  while (!CPU_ISSET(cpu, &all)) ++cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  // Its affinity is the user's word.
  CHECK_FALSE(moves(cpu, one));
  // The system may have moved it before it looked.
  int moved = 0;
  for (int i = 0; i < 50; ++i) moved += moves(cpu, all) ? 1 : 0;
  if (CPU_COUNT(&all) > 1) {
    CHECK(moved > 0);
  } else {
    CHECK(moved == 0);
  }
}

TEST_CASE("a thread that keeps coming back stays for a while", "[support][cpu_seats]") {
  const cpu_set_t all = affinity();
  if (CPU_COUNT(&all) == 1) return;
  int moved = 0;
  std::thread([&] {
    for (int i = 0; i < 1000; ++i) {
      CpuSeats seats;
      seats.clear();
      seats.take();
      moved += seats.take() ? 1 : 0;
    }
  }).join();
  CHECK(moved >= 1);
  CHECK(moved < 500);
}

}  // namespace npu
