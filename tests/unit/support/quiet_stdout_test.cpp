// SPDX-License-Identifier: Apache-2.0
#include "support/quiet_stdout.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "catch.hpp"
#include "npu/support/file_io.hpp"
#include "temporary_folder.hpp"

using namespace npu;

TEST_CASE("What is printed meanwhile is dropped, what stands before and after is not") {
  const test::TemporaryFolder folder;
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO);
  const int file = ::open((folder / "out").c_str(), O_CREAT | O_WRONLY, 0600);
  REQUIRE(file >= 0);
  ::dup2(file, STDOUT_FILENO);
  ::close(file);
  std::printf("before ");
  {
    const QuietStdout outer;
    std::printf("dropped");
    {
      const QuietStdout inner;
      std::printf("dropped, too");
    }
    std::printf("still dropped");
  }
  std::printf("after");
  std::fflush(stdout);
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
  CHECK(read_file(folder / "out") == "before after");
}
