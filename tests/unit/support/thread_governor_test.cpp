// SPDX-License-Identifier: Apache-2.0
#include "support/thread_governor.hpp"

#include <limits>

#include "catch.hpp"

using namespace npu;

namespace {

/// Runs of `busy` seconds, of which their threads waited for a part, until `until`.
struct Runs {
  ThreadGovernor governor;
  double idle = 0.0;  ///< CPUs
  double now = 0.0;
  int changes = 0;

  void go(double busy, double waited, double until) {
    while (now < until) {
      now += busy;
      if (governor.record_runs(busy, waited) && governor.confirm(idle, now)) ++changes;
    }
  }
};

}  // namespace

TEST_CASE("Threads that never wait are all kept") {
  Runs runs{ThreadGovernor(8)};
  runs.go(0.002, 0.0, 10.0);
  CHECK(runs.governor.threads() == 8);
  CHECK_FALSE(runs.governor.is_reduced());
  CHECK_FALSE(runs.governor.wants_idle(runs.now));
}

TEST_CASE("A wait now and then changes nothing") {
  Runs runs{ThreadGovernor(2)};
  for (int i = 0; i < 100; ++i) {
    runs.go(0.002, 0.0, runs.now + 0.1);
    CHECK_FALSE(runs.governor.record_runs(0.004, 0.002));  // half of one run, once in 50
  }
  CHECK(runs.governor.threads() == 2);
}

TEST_CASE("A neighbour on one CPU takes one thread, at once where runs are long") {
  Runs runs{ThreadGovernor(2)};
  runs.go(0.1, 0.05, 0.1);
  CHECK(runs.governor.threads() == 1);
  Runs many{ThreadGovernor(8)};
  while (many.changes == 0) many.go(0.002, 0.001, many.now + 0.001);  // one has half a CPU
  CHECK(many.governor.threads() == 7);
  CHECK(many.now < 0.02);
  many.go(0.002, 0.0, many.now + 1.0);
  CHECK(many.governor.threads() == 7);
}

TEST_CASE("As many threads go as have no CPU") {
  Runs runs{ThreadGovernor(8)};
  runs.go(0.1, 0.4, 0.1);  // eight on four CPUs: four wait at any time
  CHECK(runs.governor.threads() == 4);
  Runs none{ThreadGovernor(4)};
  none.go(0.1, 100.0, 0.1);
  CHECK(none.governor.threads() == 1);
}

TEST_CASE("Threads that wait while a CPU is idle are kept") {
  Runs runs{ThreadGovernor(2)};
  runs.idle = 0.9;
  runs.go(0.01, 0.005, 10.0);
  CHECK(runs.changes == 0);
  CHECK(runs.governor.threads() == 2);
}

TEST_CASE("Idle CPUs bring threads back, others do not") {
  Runs runs{ThreadGovernor(2)};
  runs.go(0.01, 0.005, 0.02);
  REQUIRE(runs.governor.threads() == 1);
  CHECK_FALSE(runs.governor.wants_idle(runs.now + 0.02));
  REQUIRE(runs.governor.wants_idle(runs.now + 0.15));
  runs.governor.record_idle(0.5, runs.now + 0.15);
  CHECK(runs.governor.threads() == 1);
  CHECK_FALSE(runs.governor.wants_idle(runs.now + 0.16));
  runs.governor.record_idle(1.0, runs.now + 0.3);
  CHECK(runs.governor.threads() == 2);
}

TEST_CASE("No more threads come back than there were") {
  ThreadGovernor governor(4);
  REQUIRE(governor.record_runs(0.1, 0.25));
  REQUIRE(governor.confirm(0.0, 0.1));
  REQUIRE(governor.threads() == 1);  // ceil(2.5 - 0.15) fewer
  governor.record_idle(2.4, 1.0);
  CHECK(governor.threads() == 3);
  governor.record_idle(1e9, 2.0);
  CHECK(governor.threads() == 4);
}

TEST_CASE("A number that falls again soon is raised more and more seldom") {
  Runs runs{ThreadGovernor(2)};
  int raised = 0;
  while (runs.now < 20.0) {  // a neighbour whom the idle times do not show
    runs.go(0.01, runs.governor.threads() == 2 ? 0.005 : 0.0, runs.now + 0.01);
    if (!runs.governor.wants_idle(runs.now)) continue;
    runs.governor.record_idle(2.0, runs.now);
    ++raised;
  }
  CHECK(raised >= 5);   // 0.05 + 0.1 + 0.2 + 0.4 + 0.8 + 1.6 s
  CHECK(raised <= 12);  // and 3.2 s each from then on
}

TEST_CASE("Times that make no sense are ignored") {
  ThreadGovernor governor(2);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(governor.confirm(0.0, 0.0));  // nothing was recorded
  CHECK_FALSE(governor.record_runs(0.0, 1.0));
  CHECK_FALSE(governor.record_runs(-1.0, 1.0));
  CHECK_FALSE(governor.record_runs(nan, 1.0));
  CHECK_FALSE(governor.record_runs(0.1, -5.0));
  CHECK(governor.threads() == 2);
  ThreadGovernor one(1);
  CHECK_FALSE(one.record_runs(0.1, 1.0));
  CHECK_FALSE(one.confirm(0.0, 0.1));
  CHECK(one.threads() == 1);
}
