// SPDX-License-Identifier: Apache-2.0
// The constructors of a shared object run in the process that loads it, and no check in that
// process can survive a crash or an exit there. So a helper loads it first: another program, since
// this one may have threads and drivers that a forked child would have to live with. The helper
// answers through a pipe: exit status 0 proves nothing, since a library may have called exit. The
// parent keeps the time and ends an overdue helper with SIGKILL, since a library may ignore every
// other signal.
#include "device/probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "device/library_folders.hpp"
#include "support/descriptor.hpp"
#include "support/elapsed.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration) POSIX declares it nowhere

namespace npu {
namespace {

constexpr std::array<std::string_view, 4> kKindNames{"any", "backend", "frontend", "custom-ops"};

/// What posix_spawn does between fork and exec.
class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  /// Its output would appear twice, and stdout carries a document.
  void silence() {
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  void pass(int descriptor, int as) {
    ::posix_spawn_file_actions_adddup2(&actions_, descriptor, as);
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

/// 0, or why it does not start.
int start_helper(std::vector<std::string> arguments, int answer, pid_t& child) {
  SpawnActions actions;
  actions.pass(answer, kProbeAnswer);
  actions.silence();
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return ::posix_spawn(&child, argv.front(), actions.get(), nullptr, argv.data(), environ);
}

// Whether the child answers before `end`; also false as soon as it no longer can.
bool answers(int pipe, Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    struct pollfd wanted {
      pipe, POLLIN, 0
    };
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    char answer = '\0';
    return ready > 0 && ::read(pipe, &answer, 1) == 1 && answer == kProbeDone;
  }
}

// The child's status; nothing if it is still running at `end`, or cannot be waited for.
std::optional<int> status_until(pid_t child, Clock::time_point end) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return std::nullopt;
    if (Clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string seconds_text(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

}  // namespace

std::string_view library_kind_name(LibraryKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

LibraryKind library_kind(std::string_view name) {
  const auto* found = std::find(kKindNames.begin(), kKindNames.end(), name);
  return found == kKindNames.end() ? LibraryKind::kAny
                                   : static_cast<LibraryKind>(found - kKindNames.begin());
}

std::string probe_library(LibraryKind kind, const std::string& path, const std::string& name,
                          std::chrono::milliseconds time) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return std::string("cannot be looked at: ") + std::strerror(errno);
  }
  Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const std::string helper = helper_program("probe-library");
  const Clock::time_point end = Clock::now() + time;
  pid_t child = 0;
  const int failure = start_helper(
      {helper, std::string(library_kind_name(kind)), std::to_string(::getpid()), path, name},
      write_end.get(), child);
  if (failure != 0) {
    return "cannot be looked at before it is loaded, since " + helper +
           " does not start: " + std::strerror(failure);
  }
  write_end = Descriptor();
  const bool came_back = answers(read_end.get(), end);
  std::optional<int> status;
  if (!came_back) status = status_until(child, end);
  if (!status) {
    ::kill(child, SIGKILL);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (came_back) return {};
  if (!status) return "does not come back from loading within " + seconds_text(time);
  if (WIFSIGNALED(*status)) {
    const int number = WTERMSIG(*status);
    return "crashes while it is loaded (signal " + std::to_string(number) + ", " +
           ::strsignal(number) + ")";
  }
  return "ends the process while it is loaded (exit status " +
         std::to_string(WEXITSTATUS(*status)) + ")";
}

}  // namespace npu
