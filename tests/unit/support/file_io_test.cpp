// SPDX-License-Identifier: Apache-2.0
// Reads, atomic writes and mappings on a real file system.
#include "npu/support/file_io.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
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

TEST_CASE("file: a symbolic link is written through, whole or not at all") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "inner");
  write_file_atomically(folder / "inner/target", "a longer old content");
  REQUIRE(::chmod((folder / "inner/target").c_str(), 0604) == 0);
  std::filesystem::create_symlink("inner/target", folder / "first");
  std::filesystem::create_symlink("first", folder / "link");
  {
    const FileSizeLimit limit(1000);
    CHECK(io_error([&] { write_file_atomically(folder / "link", std::string(100000, 'n')); }) ==
          (folder / "inner/target") + ": error: cannot write: File too large");
  }
  CHECK(read_file(folder / "link") == "a longer old content");
  write_file_atomically(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::is_symlink(folder / "first"));
  CHECK(read_file(folder / "inner/target") == "new");
  CHECK(mode_of(folder / "inner/target") == 0604);
  CHECK(folder.entries() == 3);
}

TEST_CASE("file: a dangling link is made to lead to a new file, and a circle is refused") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "inner");
  std::filesystem::create_symlink("inner/new", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_file(folder / "inner/new") == "new");
  std::filesystem::create_symlink("nowhere/new", folder / "lost");
  CHECK(io_error([&] { write_file_atomically(folder / "lost", "x"); }) ==
        (folder / "nowhere/new") + ": error: cannot create: No such file or directory");
  std::filesystem::create_symlink("round", folder / "round");
  CHECK(io_error([&] { write_file_atomically(folder / "round", "x"); }) ==
        (folder / "round") + ": error: cannot create: Too many levels of symbolic links");
}

TEST_CASE("file: an open file of /proc is written in place, as a shell would") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "a longer old content");
  const int open_file = ::open((folder / "f").c_str(), O_RDWR);
  REQUIRE(open_file >= 0);
  write_file_atomically("/proc/self/fd/" + std::to_string(open_file), "new");
  char content[4] = {};
  CHECK(::pread(open_file, content, sizeof content, 0) == 3);  // the same file, no other one
  ::close(open_file);
  CHECK(read_file(folder / "f") == "new");
}

TEST_CASE("file: a link of another user in a folder for everybody is not followed") {
  const TemporaryFolder folder;
  if (::geteuid() != 0) {
    WARN("skipped: only root can make a file of another user");
    return;
  }
  constexpr uid_t kNobody = 65534;
  std::filesystem::create_directory(folder / "public");
  REQUIRE(::chmod((folder / "public").c_str(), 01777) == 0);
  write_file_atomically(folder / "mine", "old");
  std::filesystem::create_symlink("../mine", folder / "public/link");
  REQUIRE(::lchown((folder / "public/link").c_str(), kNobody, kNobody) == 0);
  CHECK(
      io_error([&] { write_file_atomically(folder / "public/link", "x"); }) ==
      (folder / "public/link") +
          ": error: is a symbolic link of user 65534 in a folder that everybody may write to, and "
          "is not followed");
  CHECK(read_file(folder / "mine") == "old");
}

TEST_CASE("file: of what is this user's own, nothing is taken that others could have written") {
  const TemporaryFolder folder;
  const std::string path = folder / "f";
  write_file_atomically(path, "x");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(MappedFile(path, FileTrust::kOwn).size() == 1);
  for (const mode_t mode : {0664, 0646}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK(io_error([&] { MappedFile file(path, FileTrust::kOwn); }) ==
          path + ": error: may be written by others; chmod go-w makes it this user's alone");
    CHECK(MappedFile(path).size() == 1);
  }
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  std::filesystem::create_symlink("f", folder / "link");
  CHECK(io_error([&] { MappedFile file(folder / "link", FileTrust::kOwn); }) ==
        (folder / "link") + ": error: is a symbolic link, expected a file");
  if (::geteuid() != 0) {
    WARN("skipped: only root can make a file of another user");
    return;
  }
  REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
  CHECK(io_error([&] { MappedFile file(path, FileTrust::kOwn); }) ==
        path + ": error: belongs to user 65534, expected 0 (root)");
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
}

TEST_CASE("file: a pipe is refused as a mapping at once, and read once a writer comes") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  // Nobody ever writes to it.
  CHECK(io_error([&] { MappedFile file(pipe); }) ==
        pipe + ": error: is not a regular file, which mapping needs");
  CHECK_FALSE(is_regular_file(pipe));
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    write_file_atomically(pipe, "late");
  });
  CHECK(read_file(pipe) == "late");
  writer.join();
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
