// SPDX-License-Identifier: Apache-2.0
// The only place that opens files for reading. open() of a named pipe waits for a writer, possibly
// for ever, so everything is opened with O_NONBLOCK; what was opened is examined through its
// descriptor, never through its name.
#include "support/open_file.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "npu/support/error.hpp"

namespace npu {
namespace {

constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Whether a name could leave its folder by its spelling.
bool leaves_folder(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\0') != name.npos) return true;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    if (name.substr(0, end) == "..") return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

// Folder by folder without following any link: what kernels before 5.6 can promise.
int walk_beneath(int folder, std::string_view name) {
  Descriptor current(::dup(folder));
  while (current.get() >= 0) {
    const std::size_t end = std::min(name.find('/'), name.size());
    const std::string part(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
    if (name.empty()) return ::openat(current.get(), part.c_str(), kReadFlags | O_NOFOLLOW);
    if (part.empty()) continue;
    current = Descriptor(
        ::openat(current.get(), part.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  }
  return -1;
}

}  // namespace

OpenedFile open_beneath(const std::string& folder, const std::string& name) {
  const std::string path = folder.empty() ? name : folder + "/" + name;
  if (leaves_folder(name)) {
    throw Error(ErrorCode::kIo, "is not below the folder, expected a relative name without '..'",
                {.file = name});
  }
  const Descriptor root(
      ::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) fail_io(folder, "cannot open", errno);
  struct open_how how {};
  how.flags = kReadFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long opened = ::syscall(SYS_openat2, root.get(), name.c_str(), &how, sizeof how);
  if (opened < 0 && errno == ENOSYS) opened = walk_beneath(root.get(), name);
  OpenedFile file;
  file.descriptor = Descriptor(static_cast<int>(opened));
  if (opened < 0) {
    if (errno == EXDEV || errno == ELOOP) {
      throw Error(ErrorCode::kIo, "is a symbolic link that leads out of its folder",
                  {.file = path});
    }
    fail_io(path, "cannot open", errno);
  }
  if (::fstat(file.descriptor.get(), &file.status) != 0) fail_io(path, "cannot read", errno);
  if (S_ISDIR(file.status.st_mode)) {
    throw Error(ErrorCode::kIo, "is a directory, expected a file", {.file = path});
  }
  return file;
}

void fail_io(const std::string& file, const std::string& what, int code) {
  throw Error(ErrorCode::kIo, what + ": " + std::strerror(code), {.file = file});
}

Descriptor open_scratch_file(const std::string& folder) {
  Descriptor file(
      ::open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.get() >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  // Network file systems have no files without a name.
  std::string name = folder + "/.npu-scratch.XXXXXX";
  Descriptor named(::mkostemp(name.data(), O_CLOEXEC));
  if (named.get() >= 0) ::unlink(name.c_str());
  return named;
}

std::string distrust_reason(const struct stat& status) {
  const uid_t user = ::geteuid();
  if (status.st_uid != user && status.st_uid != 0) {
    return "belongs to user " + std::to_string(status.st_uid) + ", expected " +
           (user == 0 ? std::string() : std::to_string(user) + " or ") + "0 (root)";
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return "may be written by others; chmod go-w makes it this user's alone";
  }
  return {};
}

OpenedFile open_to_read(const std::string& path, FileTrust trust) {
  std::optional<OpenedFile> file = find_to_read(path, trust);
  if (!file) fail_io(path, "cannot open", ENOENT);
  return std::move(*file);
}

std::optional<OpenedFile> find_to_read(const std::string& path, FileTrust trust) {
  const int no_links = trust == FileTrust::kOwn ? O_NOFOLLOW : 0;
  OpenedFile file;
  file.descriptor = Descriptor(::open(path.c_str(), kReadFlags | no_links));
  if (file.descriptor.get() < 0) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP && no_links != 0) {
      throw Error(ErrorCode::kIo, "is a symbolic link, expected a file", {.file = path});
    }
    fail_io(path, "cannot open", errno);
  }
  if (::fstat(file.descriptor.get(), &file.status) != 0) fail_io(path, "cannot read", errno);
  if (S_ISDIR(file.status.st_mode)) {
    throw Error(ErrorCode::kIo, "is a directory, expected a file", {.file = path});
  }
  if (trust == FileTrust::kOwn) {
    if (const std::string reason = distrust_reason(file.status); !reason.empty()) {
      throw Error(ErrorCode::kIo, reason, {.file = path});
    }
  }
  return file;
}

}  // namespace npu
