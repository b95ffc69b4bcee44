// SPDX-License-Identifier: Apache-2.0
// The constructors of a shared object run in the process that loads it, and no check in that
// process can survive a crash or an exit there. So a forked child loads it first. The child answers
// through a pipe: exit status 0 proves nothing, since a library may have called exit. The parent
// keeps the time and ends an overdue child with SIGKILL, since a library
// may ignore every other signal.
#include "device/probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include "npu/support/elapsed.hpp"
#include "support/child_start.hpp"
#include "support/descriptor.hpp"

namespace npu {
namespace {

constexpr char kAnswer = 'k';

[[noreturn]] void run_child(const std::function<void()>& load, int answer, pid_t parent) {
  start_as_child(parent);
  // Its output would appear twice, and stdout carries a document.
  if (const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0) {
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
  }
  try {
    load();
  } catch (...) {  // the parent meets the same fault and reports it
  }
  const ssize_t written = ::write(answer, &kAnswer, 1);
  ::_exit(written == 1 ? 0 : 1);
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
    return ready > 0 && ::read(pipe, &answer, 1) == 1 && answer == kAnswer;
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

std::string probe_load(const std::function<void()>& load, std::chrono::milliseconds time) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};  // out of files: load without a probe
  Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t parent = ::getpid();
  const Clock::time_point end = Clock::now() + time;
  const pid_t child = ::fork();
  if (child < 0) return {};  // out of processes, likewise
  if (child == 0) run_child(load, write_end.get(), parent);
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
