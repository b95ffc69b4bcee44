// SPDX-License-Identifier: Apache-2.0
// Writes folders whole or not at all. rename(2) replaces an empty folder and no other, so what is
// there is never mixed with what is new. O(files) to remove what was not published.
#include "support/new_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "npu/support/error.hpp"
#include "support/descriptor.hpp"
#include "support/new_file.hpp"
#include "support/open_file.hpp"

namespace npu {
namespace {

constexpr int kMostNames = 100;

void check_is_free(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT && !path.empty()) return;
    fail_io(path, "cannot create", errno);
  }
  std::error_code code;
  const bool is_empty = S_ISDIR(status.st_mode) && std::filesystem::is_empty(path, code);
  if (code) fail_io(path, "cannot read", code.value());
  if (is_empty) return;
  throw Error(ErrorCode::kIo,
              S_ISDIR(status.st_mode)
                  ? "is a folder that is not empty: remove it or name another one"
                  : "is there already, expected a name for a new folder",
              {.file = path});
}

}  // namespace

NewFolder::NewFolder(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  check_is_free(path_);
  for (int i = 0;; ++i) {
    temporary_ = path_ + "." + random_suffix();
    mark_.emplace(temporary_, UnfinishedMark::Kind::kFolder);
    if (::mkdir(temporary_.c_str(), 0777) == 0) return;
    const int code = errno;
    mark_.reset();
    if (code != EEXIST || i == kMostNames) fail_io(path_, "cannot create", code);
  }
}

NewFolder::~NewFolder() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

void NewFolder::publish() {
  {
    const Descriptor folder(::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Some file systems do not sync folders; what matters is then up to them.
    if (folder.get() < 0) fail_io(path_, "cannot write", errno);
    if (::fsync(folder.get()) != 0 && errno != EINVAL) fail_io(path_, "cannot write", errno);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail_io(path_, "cannot rename into place", errno);
  }
  temporary_.clear();
  mark_.reset();
}

}  // namespace npu
