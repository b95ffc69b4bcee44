// SPDX-License-Identifier: Apache-2.0
// Whatever a library does while it is loaded, the process that asks goes on and learns of it.
#include "device/probe.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "catch.hpp"

using namespace npu;
using namespace std::chrono_literals;

TEST_CASE("a load that comes back is fine, with an exception, too", "[device][probe]") {
  CHECK(probe_load([] {}).empty());
  CHECK(probe_load([] { throw std::runtime_error("no such symbol"); }).empty());
}

TEST_CASE("a load that crashes is told", "[device][probe]") {
  CHECK(probe_load([] { std::raise(SIGSEGV); }) ==
        "crashes while it is loaded (signal 11, Segmentation fault)");
  CHECK(probe_load([] { std::abort(); }) == "crashes while it is loaded (signal 6, Aborted)");
}

TEST_CASE("a load that ends the process is told, whatever the status", "[device][probe]") {
  CHECK(probe_load([] { ::_exit(0); }) == "ends the process while it is loaded (exit status 0)");
  CHECK(probe_load([] { ::_exit(3); }) == "ends the process while it is loaded (exit status 3)");
}

TEST_CASE("a load that hangs is killed, whatever it ignores or closes", "[device][probe]") {
  const auto hang = [] {
    for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_IGN);
    for (;;) ::sleep(1000);
  };
  const auto start = std::chrono::steady_clock::now();
  CHECK(probe_load(hang, 200ms) == "does not come back from loading within 200 ms");
  const auto close_all = [&] {
    for (int file = 3; file < 256; ++file) ::close(file);
    hang();
  };
  CHECK(probe_load(close_all, 200ms) == "does not come back from loading within 200 ms");
  CHECK(std::chrono::steady_clock::now() - start < 10s);
}

TEST_CASE("a probe leaves no process and no open file", "[device][probe]") {
  const int before = ::dup(0);
  ::close(before);
  probe_load([] { ::_exit(0); });
  probe_load(
      [] {
        for (;;) ::pause();
      },
      50ms);
  const int after = ::dup(0);
  ::close(after);
  CHECK(before == after);
  // No child is left to wait for.
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}
