// SPDX-License-Identifier: Apache-2.0
// The one place that opens files to read. open() of a named pipe waits for a writer, for ever if
// none comes, so nothing is opened without O_NONBLOCK; what was opened is examined by its
// descriptor, never by its name.
#include "support/open_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "npu/support/error.hpp"

namespace npu {

void fail_io(const std::string& file, const std::string& what, int code) {
  throw Error(ErrorCode::kIo, what + ": " + std::strerror(code), {.file = file});
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
  const int no_links = trust == FileTrust::kOwn ? O_NOFOLLOW : 0;
  OpenedFile file;
  file.descriptor =
      Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | no_links));
  if (file.descriptor.get() < 0) {
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
