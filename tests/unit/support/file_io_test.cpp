// SPDX-License-Identifier: Apache-2.0
// Reads, atomic writes and mappings on a real file system.
#include "npu/support/file_io.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "temporary_folder.hpp"

using namespace npu;
using npu::test::TemporaryFolder;

namespace {

template <typename Action>
std::string io_error(const Action& action) {
  try {
    action();
    return "no error";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kIo);
    return error.what();
  }
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

// Limits the size of files that this process may write, for as long as it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    old_action_ = std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit { bytes, old_.rlim_max };
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_action_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  struct rlimit old_ {};
  void (*old_action_)(int);
};

}  // namespace

TEST_CASE("file: what is written is read, empty and large and with every byte") {
  const TemporaryFolder folder;
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  std::string large;
  for (int i = 0; i < 3000; ++i) large += every;  // 768,000 bytes, more than one block
  for (const std::string& content : {std::string(), std::string("x"), every, large}) {
    write_file_atomically(folder / "f", content);
    CHECK(read_file(folder / "f") == content);
  }
  CHECK(folder.entries() == 1);  // no temporary files left
}

TEST_CASE("file: a missing file, a missing folder and a directory are errors that name the path") {
  const TemporaryFolder folder;
  const std::string missing = folder / "missing";
  CHECK(io_error([&] { read_file(missing); }) ==
        missing + ": error: cannot open: No such file or directory");
  CHECK(io_error([&] { read_file(folder.path().string()); }) ==
        folder.path().string() + ": error: is a directory, expected a file");
  const std::string inside = folder / "none/f";
  CHECK(io_error([&] { write_file_atomically(inside, "x"); }) ==
        inside + ": error: cannot create: No such file or directory");
  CHECK(io_error([&] { write_file_atomically(folder.path().string(), "x"); }) ==
        folder.path().string() + ": error: is a directory, expected a file");
  CHECK(io_error([&] { MappedFile file(missing); }) ==
        missing + ": error: cannot open: No such file or directory");
  CHECK(io_error([&] { MappedFile file(folder.path().string()); }) ==
        folder.path().string() + ": error: is a directory, expected a file");
  CHECK(io_error([&] { MappedFile file("/dev/zero"); }) ==
        "/dev/zero: error: is not a regular file, which mapping needs");
}

TEST_CASE("file: a path below a file is an error and the file stays") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  CHECK(io_error([&] { write_file_atomically(folder / "f/g", "new"); }) ==
        (folder / "f/g") + ": error: cannot create: Not a directory");
  CHECK(io_error([&] { read_file(folder / "f/g"); }) ==
        (folder / "f/g") + ": error: cannot open: Not a directory");
  CHECK(read_file(folder / "f") == "old");
}

TEST_CASE("file: a write that fails keeps the old file and leaves nothing else") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  {
    const FileSizeLimit limit(1000);
    CHECK(io_error([&] { write_file_atomically(folder / "f", std::string(100000, 'n')); }) ==
          (folder / "f") + ": error: cannot write: File too large");
    CHECK(io_error([&] { write_file_atomically(folder / "new", std::string(100000, 'n')); }) ==
          (folder / "new") + ": error: cannot write: File too large");
  }
  CHECK(read_file(folder / "f") == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("file: a full device is reported") {
  if (::access("/dev/full", W_OK) != 0) {
    WARN("no /dev/full here");
    return;
  }
  CHECK(io_error([] { write_file_atomically("/dev/full", "x"); }) ==
        "/dev/full: error: cannot write: No space left on device");
  write_file_atomically("/dev/null", "x");
  struct stat status {};
  REQUIRE(::stat("/dev/null", &status) == 0);
  CHECK(S_ISCHR(status.st_mode));  // written to, not replaced
}

TEST_CASE("file: a new file has the mode of the umask, an old one keeps its own") {
  const TemporaryFolder folder;
  const mode_t old = ::umask(027);
  write_file_atomically(folder / "new", "x");
  ::umask(old);
  CHECK(mode_of(folder / "new") == 0640);  // 0666 without 027
  REQUIRE(::chmod((folder / "new").c_str(), 0604) == 0);
  write_file_atomically(folder / "new", "y");
  CHECK(mode_of(folder / "new") == 0604);
  CHECK(read_file(folder / "new") == "y");
}

TEST_CASE("file: a symbolic link is written through") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "target", "a longer old content");
  std::filesystem::create_symlink("target", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_file(folder / "target") == "new");
  CHECK(folder.entries() == 2);
}

TEST_CASE("file: a hard link's other name keeps the old content") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  std::filesystem::create_hard_link(folder / "f", folder / "other");
  write_file_atomically(folder / "f", "new");
  CHECK(read_file(folder / "f") == "new");
  CHECK(read_file(folder / "other") == "old");  // renamed into place, not overwritten
}

TEST_CASE("file: a reader that has the old file open keeps it whole") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", std::string(5000, 'o'));
  const MappedFile mapped(folder / "f");
  write_file_atomically(folder / "f", "n");
  CHECK(mapped.size() == 5000);
  CHECK(static_cast<char>(mapped.data()[4999]) == 'o');
  CHECK(read_file(folder / "f") == "n");
}

TEST_CASE("file: a mapping has the bytes of the file, an empty file none") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "empty", "");
  const MappedFile empty(folder / "empty");
  CHECK(empty.size() == 0);
  CHECK(empty.data() == nullptr);
  CHECK(empty.path() == folder / "empty");
  write_file_atomically(folder / "f", "abc");
  const MappedFile mapped(folder / "f");
  REQUIRE(mapped.size() == 3);
  CHECK(static_cast<char>(mapped.data()[0]) == 'a');
  CHECK(static_cast<char>(mapped.data()[2]) == 'c');
}

TEST_CASE("file: pipes are read to their end and written in place") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string content(200000, 'p');  // more than a pipe holds
  std::thread writer([&] { write_file_atomically(pipe, content); });
  CHECK(read_file(pipe) == content);
  writer.join();
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(io_error([&] {
          std::thread opener([&] { ::close(::open(pipe.c_str(), O_WRONLY)); });
          try {
            MappedFile file(pipe);
          } catch (...) {
            opener.join();
            throw;
          }
          opener.join();
        }) == pipe + ": error: is not a regular file, which mapping needs");
}

TEST_CASE("stream: is read whole, and a failed read is an error") {
  const TemporaryFolder folder;
  const std::string content(150000, 's');
  write_file_atomically(folder / "f", content);
  std::FILE* stream = std::fopen((folder / "f").c_str(), "rb");
  REQUIRE(stream != nullptr);
  CHECK(read_stream(stream, "<stdin>") == content);
  CHECK(read_stream(stream, "<stdin>").empty());
  std::fclose(stream);
  stream = std::fopen(folder.path().c_str(), "rb");  // a directory opens, but does not read
  REQUIRE(stream != nullptr);
  CHECK(io_error([&] { read_stream(stream, "<stdin>"); }) ==
        "<stdin>: error: cannot read: Is a directory");
  std::fclose(stream);
}
