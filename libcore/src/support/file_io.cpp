// SPDX-License-Identifier: Apache-2.0
// Whole-file reads, atomic writes and read-only mappings, every call checked.
#include "npu/support/file_io.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "npu/support/error.hpp"

namespace npu {
namespace {

[[noreturn]] void fail(const std::string& file, const std::string& what, int code) {
  throw Error(ErrorCode::kIo, what + ": " + std::strerror(code), {.file = file});
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return value_; }
  /// Closes now and reports what close() says: some file systems report a full disk only there.
  bool close_checked() {
    const int value = value_;
    value_ = -1;
    return ::close(value) == 0;
  }

 private:
  int value_;
};

struct stat checked_stat(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail(path, "cannot read", errno);
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::kIo, "is a directory, expected a file", {.file = path});
  }
  return status;
}

void write_all(int descriptor, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(path, "cannot write", errno);
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot open", errno);
  const struct stat status = checked_stat(file.get(), path);
  std::string content;
  if (S_ISREG(status.st_mode)) content.reserve(static_cast<std::size_t>(status.st_size) + 1);
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t count = ::read(file.get(), block.data(), block.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      fail(path, "cannot read", errno);
    }
    if (count == 0) return content;
    content.append(block.data(), static_cast<std::size_t>(count));
  }
}

std::string read_stream(std::FILE* stream, const std::string& name) {
  std::string content;
  std::array<char, 1 << 16> block;
  for (;;) {
    const std::size_t count = std::fread(block.data(), 1, block.size(), stream);
    content.append(block.data(), count);
    if (count < block.size()) {
      if (std::ferror(stream) != 0) fail(name, "cannot read", errno);
      return content;
    }
  }
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, std::vector<std::string_view>{content});
}

void write_file_atomically(const std::string& path, const std::vector<std::string_view>& pieces) {
  struct stat status {};
  const bool exists = ::lstat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::kIo, "is a directory, expected a file", {.file = path});
  }
  if (exists && !S_ISREG(status.st_mode)) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (file.get() < 0) fail(path, "cannot open", errno);
    for (const std::string_view piece : pieces) write_all(file.get(), piece, path);
    if (!file.close_checked()) fail(path, "cannot write", errno);
    return;
  }
  std::string temporary = path + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot create", errno);
  try {
    for (const std::string_view piece : pieces) write_all(file.get(), piece, path);
    // mkostemp makes 0600; a new file gets what open() would have given it, an old one keeps its
    // mode.
    mode_t mode = status.st_mode & 07777;
    if (!exists) {
      const mode_t mask = ::umask(0);
      ::umask(mask);
      mode = 0666 & ~mask;
    }
    if (::fchmod(file.get(), mode) != 0) fail(path, "cannot write", errno);
    if (::fsync(file.get()) != 0) fail(path, "cannot write", errno);
    if (!file.close_checked()) fail(path, "cannot write", errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      fail(path, "cannot rename into place", errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot open", errno);
  const struct stat status = checked_stat(file.get(), path);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kIo, "is not a regular file, which mapping needs", {.file = path});
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail(path, "cannot map", errno);
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace npu
