// SPDX-License-Identifier: Apache-2.0
// Jobs in processes of their own, and what becomes of those that fail or are killed.
#include "support/forked_jobs.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;

namespace {

struct Outcome {
  std::vector<int> results;
  std::vector<bool> in_child;
};

// Runs ten jobs whose result is their number times three.
Outcome run(std::size_t side_by_side, const std::function<void(std::size_t, bool)>& before) {
  struct Result {
    int value;
    bool in_child;
  };
  Outcome outcome{std::vector<int>(10, -1), std::vector<bool>(10, false)};
  run_forked({.count = 10,
              .side_by_side = side_by_side,
              .bytes = sizeof(Result),
              .work =
                  [&](std::size_t job, bool in_child, std::span<std::byte> bytes) {
                    before(job, in_child);
                    const Result result{static_cast<int>(job) * 3, in_child};
                    std::memcpy(bytes.data(), &result, sizeof result);
                  },
              .done =
                  [&](std::size_t job, std::span<const std::byte> bytes) {
                    Result result;
                    std::memcpy(&result, bytes.data(), sizeof result);
                    outcome.results[job] = result.value;
                    outcome.in_child[job] = result.in_child;
                  },
              .wait = {}});
  return outcome;
}

const std::vector<int> kThrice{0, 3, 6, 9, 12, 15, 18, 21, 24, 27};

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

}  // namespace

TEST_CASE("jobs run in children, or here if only one runs at a time", "[support][fork]") {
  const Outcome beside = run(3, [](std::size_t, bool) {});
  CHECK(beside.results == kThrice);
  CHECK(beside.in_child == std::vector<bool>(10, true));
  const Outcome here = run(1, [](std::size_t, bool) {});
  CHECK(here.results == kThrice);
  CHECK(here.in_child == std::vector<bool>(10, false));
  CHECK_FALSE(has_children());
}

TEST_CASE("a job whose process dies is done here", "[support][fork]") {
  const Outcome outcome = run(4, [](std::size_t job, bool in_child) {
    if (!in_child) return;
    if (job == 2) std::raise(SIGKILL);
    if (job == 5) ::_exit(0);
    if (job == 7) throw std::bad_alloc();
  });
  CHECK(outcome.results == kThrice);
  for (std::size_t job = 0; job < 10; ++job) {
    CHECK(outcome.in_child[job] == (job != 2 && job != 5 && job != 7));
  }
}

TEST_CASE("an error of a job ends the others", "[support][fork]") {
  try {
    run(3, [](std::size_t job, bool) {
      if (job == 1) throw Error(ErrorCode::kInfeasible, "no room in " + std::string(5, 'x'));
      if (job != 0) ::pause();
    });
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInfeasible);
    CHECK(error.message() == "no room in xxxxx");
  }
  CHECK_FALSE(has_children());
}
