// SPDX-License-Identifier: Apache-2.0
// The only place that writes files which replace others.
//
// If the file system supports O_TMPFILE, the file has no name until it is complete, so that not
// even SIGKILL leaves a part of it; otherwise it has a temporary name in its folder, which is
// registered for the program's signal handlers. An existing name cannot be linked to, only renamed
// over: then the complete file has a temporary name for a moment.
#include "support/new_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <utility>

#include "npu/support/error.hpp"
#include "support/open_file.hpp"
#include "support/signal_hooks.hpp"

namespace npu {
namespace {

constexpr int kMostLinks = 40;  // the kernel's limit
constexpr int kMostTries = 100;
constexpr std::size_t kLongestStem = 240;  // NAME_MAX less what a temporary name adds

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string link_target(const std::string& path) {
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  if (length < 0) fail_io(path, "cannot read the symbolic link", errno);
  std::string target(text.data(), static_cast<std::size_t>(length));
  if (target.starts_with('/') || path.find('/') == std::string::npos) return target;
  return folder_of(path) + "/" + target;
}

// The links in /proc/PID/fd lead to open files, whatever their text is.
bool is_in_proc(const std::string& path) {
  struct statfs status {};
  return ::statfs(folder_of(path).c_str(), &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

// The check that the kernel makes in open() if fs.protected_symlinks is set; since links are
// followed here, it has to be made here.
void check_link_owner(const std::string& path, const struct stat& link) {
  struct stat folder {};
  if (::stat(folder_of(path).c_str(), &folder) != 0) return;
  const bool is_public = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  if (!is_public || link.st_uid == ::geteuid() || link.st_uid == folder.st_uid) return;
  throw Error(ErrorCode::kIo,
              "is a symbolic link of user " + std::to_string(link.st_uid) +
                  " in a folder that everybody may write to, and is not followed",
              {.file = path});
}

}  // namespace

std::string random_suffix() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    // Not for secrecy: a name that is taken only costs another attempt.
    number = static_cast<std::uint64_t>(::getpid());
  }
  std::string text;
  for (int i = 0; i < 8; ++i, number /= kLetters.size()) text += kLetters[number % kLetters.size()];
  return text;
}

void write_fully(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EFAULT) {
      // The mapped file that the bytes come from has been truncated.
      const char* name = mapped_file_at(bytes.data());
      throw Error(ErrorCode::kIo, "was cut short while it was read",
                  {.file = name != nullptr ? name : path});
    } else if (errno != EINTR) {
      fail_io(path, "cannot write", errno);
    }
  }
}

WriteTarget find_write_target(const std::string& path) {
  struct stat status {};
  WriteTarget target{.path = path};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      throw Error(ErrorCode::kIo, "is a directory, expected a file", {.file = path});
    }
    target.in_place = !S_ISREG(status.st_mode);
    if (target.in_place) return target;
  }
  for (int links = 0;; ++links) {
    if (::lstat(target.path.c_str(), &status) != 0) {
      if (errno != ENOENT || path.empty()) fail_io(path, "cannot create", errno);
      return target;
    }
    if (!S_ISLNK(status.st_mode)) {
      target.exists = true;
      target.mode = status.st_mode & 0777;
      return target;
    }
    if (links == kMostLinks) fail_io(path, "cannot create", ELOOP);
    if (is_in_proc(target.path)) return {.path = path, .exists = true, .in_place = true};
    check_link_owner(target.path, status);
    target.path = link_target(target.path);
  }
}

template <typename Create>
void NewFile::try_names(const Create& create) {
  for (int i = 0;; ++i) {
    temporary_ = options_.temporary + random_suffix();
    mark_.emplace(temporary_);
    if (create()) break;
    const int code = errno;
    mark_.reset();
    if (code != EEXIST || i == kMostTries) fail_io(path_, "cannot create", code);
  }
  has_name_ = true;
}

NewFile::NewFile(std::string path, Options options)
    : path_(std::move(path)), options_(std::move(options)) {
  if (options_.temporary.empty()) {
    const std::size_t name = path_.rfind('/') + 1;  // 0 without a slash
    options_.temporary = path_.substr(0, name + kLongestStem) + ".";
  }
  // A file that replaces a private one must be private as well.
  const mode_t mode = options_.mode ? 0600 : options_.create_mode;
  // A file without a name is linked through /proc; AT_EMPTY_PATH would require a capability.
  if (::access("/proc/self/fd", X_OK) == 0) {
    file_ = Descriptor(::open(folder_of(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  }
  if (file_.get() >= 0) return;
  const auto create = [&] {
    file_ = Descriptor(
        ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode));
    return file_.get() >= 0;
  };
  try_names(create);
  // Tells programs that clean up temporary files that this one is in use.
  ::flock(file_.get(), LOCK_EX | LOCK_NB);
}

NewFile::~NewFile() {
  if (has_name_) ::unlink(temporary_.c_str());
}

void NewFile::write(std::string_view bytes) { write_fully(file_.get(), bytes, path_); }

void NewFile::sync() {
  if (::fsync(file_.get()) != 0) fail_io(path_, "cannot write", errno);
}

void NewFile::publish(bool sync) {
  if (options_.mode && ::fchmod(file_.get(), *options_.mode) != 0)
    fail_io(path_, "cannot write", errno);
  if (sync) this->sync();
  if (!has_name_) {
    const std::string open_file = "/proc/self/fd/" + std::to_string(file_.get());
    const auto link_as = [&](const std::string& name) {
      return ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    if (!options_.exists && link_as(path_)) return;
    try_names([&] { return link_as(temporary_); });
  }
  if (!file_.close_checked()) fail_io(path_, "cannot write", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_io(path_, "cannot rename into place", errno);
  has_name_ = false;
  mark_.reset();
}

}  // namespace npu
