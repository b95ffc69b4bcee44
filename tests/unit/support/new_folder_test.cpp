// SPDX-License-Identifier: Apache-2.0
// A folder appears with all of its files or not at all, and never in place of another's files.
#include "support/new_folder.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/signal_hooks.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;

namespace {

extern "C" void end_by_handler(int number) {
  remove_unfinished_files();
  ::_exit(number);
}

}  // namespace

TEST_CASE("a folder is there when it is published", "[support]") {
  const test::TemporaryFolder place;
  {
    NewFolder folder(place / "new/");
    write_file_atomically(folder / "file", "text");
    CHECK_FALSE(std::filesystem::exists(place / "new"));
    folder.publish();
  }
  CHECK(read_file(place / "new/file") == "text");
  CHECK(place.entries() == 1);
}

TEST_CASE("nothing is left of a folder that is not published", "[support]") {
  const test::TemporaryFolder place;
  {
    const NewFolder folder(place / "new");
    write_file_atomically(folder / "file", "text");
    CHECK(place.entries() == 1);
  }
  CHECK(place.entries() == 0);
}

TEST_CASE("a signal that ends the process leaves no folder", "[support]") {
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    const test::TemporaryFolder place;
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(number, end_by_handler);
      NewFolder folder(place / "new");
      // More than the kernel lists at once.
      for (int i = 0; i < 300; ++i) {
        write_file_atomically(folder / ("a file with a long name " + std::to_string(i)), "text");
      }
      ::raise(number);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == number);
    CHECK(place.entries() == 0);
  }
}

TEST_CASE("a signal to a child leaves its parent's folder", "[support]") {
  const test::TemporaryFolder place;
  NewFolder folder(place / "new");
  write_file_atomically(folder / "file", "text");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGTERM, end_by_handler);
    ::raise(SIGTERM);
  }
  ::waitpid(child, nullptr, 0);
  folder.publish();
  CHECK(read_file(place / "new/file") == "text");
}

TEST_CASE("an empty folder is replaced, others are not", "[support]") {
  const test::TemporaryFolder place;
  std::filesystem::create_directory(place / "empty");
  {
    NewFolder folder(place / "empty");
    write_file_atomically(folder / "file", "text");
    folder.publish();
  }
  CHECK(read_file(place / "empty/file") == "text");
  CHECK_THROWS_WITH(NewFolder(place / "empty"), Catch::Matchers::Contains("is not empty"));
  CHECK_THROWS_WITH(NewFolder(place / "empty/file"), Catch::Matchers::Contains("is there already"));
  CHECK_THROWS_WITH(NewFolder(place / "missing/new"), Catch::Matchers::Contains("cannot create"));
  // Somebody else was faster.
  NewFolder late(place / "late");
  write_file_atomically(late / "file", "mine");
  std::filesystem::create_directory(place / "late");
  write_file_atomically(place / "late/file", "theirs");
  CHECK_THROWS_AS(late.publish(), Error);
  CHECK(read_file(place / "late/file") == "theirs");
}
