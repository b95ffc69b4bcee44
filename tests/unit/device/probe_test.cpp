// SPDX-License-Identifier: Apache-2.0
// Whatever a library does while it is loaded, the process that asks goes on and learns of it.
#include "device/probe.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "catch.hpp"

using namespace npu;
using namespace std::chrono_literals;

namespace {

/// What comes of loading a library that does this when it is loaded.
std::string probe_fault(const char* fault, std::chrono::milliseconds time = kProbeTime) {
  ::setenv("BAD_LIBRARY", fault, 1);
  std::string found = probe_library(LibraryKind::kAny, NPU_TEST_BAD_LIBRARY, {}, time);
  ::unsetenv("BAD_LIBRARY");
  return found;
}

}  // namespace

TEST_CASE("a load that comes back is fine, with an error, too", "[device][probe]") {
  CHECK(probe_fault("nothing").empty());
  CHECK(probe_library(LibraryKind::kAny, "/nowhere.so").empty());
  // It is neither; whoever loads it says so.
  CHECK(probe_library(LibraryKind::kBackend, NPU_TEST_BAD_LIBRARY, "bad").empty());
  CHECK(probe_library(LibraryKind::kFrontend, NPU_TEST_BAD_LIBRARY, "bad").empty());
  CHECK(probe_library(LibraryKind::kCustomOps, NPU_TEST_BAD_LIBRARY).empty());
}

TEST_CASE("a load that crashes is told", "[device][probe]") {
  CHECK(probe_fault("crash") == "crashes while it is loaded (signal 11, Segmentation fault)");
  CHECK(probe_fault("abort") == "crashes while it is loaded (signal 6, Aborted)");
}

TEST_CASE("a load that ends the process is told, whatever the status", "[device][probe]") {
  CHECK(probe_fault("exit=0") == "ends the process while it is loaded (exit status 0)");
  CHECK(probe_fault("exit=3") == "ends the process while it is loaded (exit status 3)");
}

TEST_CASE("a load that hangs is killed, whatever it ignores or closes", "[device][probe]") {
  const auto start = std::chrono::steady_clock::now();
  CHECK(probe_fault("hang", 200ms) == "does not come back from loading within 200 ms");
  CHECK(probe_fault("close", 200ms) == "does not come back from loading within 200 ms");
  CHECK(std::chrono::steady_clock::now() - start < 10s);
}

TEST_CASE("a probe leaves no process and no open file", "[device][probe]") {
  const int before = ::dup(0);
  ::close(before);
  CHECK_FALSE(probe_fault("exit=0").empty());
  CHECK_FALSE(probe_fault("hang", 50ms).empty());
  const int after = ::dup(0);
  ::close(after);
  CHECK(before == after);
  // No child is left to wait for.
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("kinds of libraries have names", "[device][probe]") {
  for (const auto kind : {LibraryKind::kAny, LibraryKind::kBackend, LibraryKind::kFrontend,
                          LibraryKind::kCustomOps}) {
    CHECK(library_kind(library_kind_name(kind)) == kind);
  }
}
