// SPDX-License-Identifier: Apache-2.0
// What a signal handler finds out about files that are mapped or being written.
#include "support/live_files.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "npu/support/file_io.hpp"
#include "support/new_file.hpp"
#include "support/signal_hooks.hpp"
#include "temporary_folder.hpp"

using namespace npu;
using npu::test::TemporaryFolder;

namespace {

extern "C" void end_if_mapped(int, siginfo_t* info, void*) {
  const char* name = mapped_file_at(info->si_addr);
  ::_exit(name != nullptr && std::strstr(name, "/cut") != nullptr ? 1 : 2);
}

extern "C" void end_and_clean(int) {
  remove_unfinished_files();
  ::_exit(3);
}

/// Runs `body` in a child process and returns how it ended.
template <typename Body>
int status_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("a mapping is found by every address in it, as long as it lives") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a\x1b[2J", std::string(5000, 'a'));
  write_file_atomically(folder / "b", "b");
  const void* inside = nullptr;
  {
    const MappedFile a(folder / "a\x1b[2J");
    auto b = std::make_unique<MappedFile>(folder / "b");
    inside = a.data();
    // Fit for a terminal: no escape sequence in it.
    CHECK(mapped_file_at(a.data()) == (folder / "a?[2J"));
    CHECK(mapped_file_at(a.data() + 4999) == (folder / "a?[2J"));
    CHECK(mapped_file_at(b->data()) == (folder / "b"));
    const void* gone = b->data();
    b.reset();
    CHECK(mapped_file_at(gone) == nullptr);
    CHECK(mapped_file_at(&folder) == nullptr);
  }
  CHECK(mapped_file_at(inside) == nullptr);
}

TEST_CASE("mappings come and go on several threads") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "f");
  std::vector<std::thread> threads;
  std::vector<int> found(4, 0);
  for (std::size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const MappedFile file(folder / "f");
        const char* name = mapped_file_at(file.data());
        if (name != nullptr && name == (folder / "f")) ++found[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(found == std::vector<int>(4, 500));
}

TEST_CASE("a handler of SIGBUS learns which file was cut short") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "cut", std::string(20000, 'c'));
  const int status = status_of_child([&] {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = end_if_mapped;
    ::sigaction(SIGBUS, &action, nullptr);
    const MappedFile file(folder / "cut");
    if (::truncate((folder / "cut").c_str(), 4096) != 0) ::_exit(4);
    ::_exit(file.data()[16384] == std::byte{'c'} ? 5 : 6);
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
}

TEST_CASE("a mapped file that is cut short while it is copied is an error that names it") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "cut", std::string(20000, 'c'));
  const MappedFile file(folder / "cut");
  REQUIRE(::truncate((folder / "cut").c_str(), 4096) == 0);
  std::string text;
  try {
    write_file_atomically(folder / "copy",
                          {reinterpret_cast<const char*>(file.data()), file.size()});
  } catch (const std::exception& error) {
    text = error.what();
  }
  CHECK(text == (folder / "cut") + ": error: was cut short while it was read");
  CHECK(folder.entries() == 1);
}

TEST_CASE("temporary names that are in use are removed, others are not") {
  const TemporaryFolder folder;
  for (const char* name : {"live", "done"}) write_file_atomically(folder / name, "x");
  const int status = status_of_child([&] {
    std::signal(SIGTERM, end_and_clean);
    { const UnfinishedMark done(folder / "done"); }
    const UnfinishedMark live(folder / "live");
    ::raise(SIGTERM);
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
  CHECK(folder.entries() == 1);
  CHECK(read_file(folder / "done") == "x");
}

TEST_CASE("a process that is killed while it writes leaves nothing") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  for (const int number : {SIGTERM, SIGKILL}) {
    const int status = status_of_child([&] {
      std::signal(SIGTERM, end_and_clean);
      NewFile file(folder / "f", {.mode = 0644, .exists = true});
      file.write("a part");
      ::raise(number);
    });
    CHECK(WIFSIGNALED(status) == (number == SIGKILL));
  }
  CHECK(read_file(folder / "f") == "old");
  // Where the file system has no files without names, SIGKILL leaves one of them.
  if (::access("/proc/self/fd", X_OK) == 0) CHECK(folder.entries() == 1);
}
