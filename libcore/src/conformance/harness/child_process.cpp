// SPDX-License-Identifier: Apache-2.0
// Starts a child with posix_spawn, which is safe whatever threads and drivers this process has, and
// reads both of its streams at once, so that neither can fill up while the other is waited for. On
// a third one the child says that it goes on.
#include "conformance/harness/child_process.hpp"

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

#include "conformance/harness/heartbeat.hpp"
#include "npu/support/error.hpp"
#include "support/descriptor.hpp"
#include "support/elapsed.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration) POSIX declares it nowhere

namespace npu::conformance {
namespace {

constexpr std::size_t kMostOutput = std::size_t{16} << 20;
constexpr int kBeatDescriptor = 3;  // in the child
constexpr int kMostLimits = 20;     // however much progress there is

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kIo, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

pid_t spawn_self(const std::vector<std::string>& arguments, const Pipe& out, const Pipe& err,
                 const Pipe& beats) {
  std::string program = "/proc/self/exe";
  std::vector<char*> argv;
  std::vector<std::string> copies = arguments;
  argv.push_back(program.data());
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::string variable = std::string(kBeatVariable) + "=" + std::to_string(kBeatDescriptor);
  std::vector<char*> variables{variable.data()};
  for (char** each = environ; *each != nullptr; ++each) variables.push_back(*each);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.write_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.write_end.get(), STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, beats.write_end.get(), kBeatDescriptor);
  pid_t child = 0;
  const int failure =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw Error(ErrorCode::kIo,
                std::string("cannot start /proc/self/exe: ") + std::strerror(failure));
  }
  return child;
}

// False at the end of the stream.
bool read_some(int descriptor, std::string& text) {
  std::array<char, 65536> bytes;
  const ssize_t size = ::read(descriptor, bytes.data(), bytes.size());
  if (size < 0) return errno == EINTR;
  const std::size_t room = kMostOutput - std::min(kMostOutput, text.size());
  text.append(bytes.data(), std::min(room, static_cast<std::size_t>(size)));
  return size > 0;
}

// Until both streams end, or the child has said nothing for as long as the limit.
void read_streams(Pipe& out, Pipe& err, Pipe& beats, std::chrono::seconds limit,
                  ChildResult& result) {
  const auto last = Clock::now() + kMostLimits * limit;
  auto end = Clock::now() + limit;
  while (out.read_end.get() >= 0 || err.read_end.get() >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::min(end, last) - Clock::now());
    if (left.count() <= 0) {
      result.is_overdue = true;
      return;
    }
    std::array<pollfd, 3> wanted{{{out.read_end.get(), POLLIN, 0},
                                  {err.read_end.get(), POLLIN, 0},
                                  {beats.read_end.get(), POLLIN, 0}}};
    if (::poll(wanted.data(), wanted.size(), static_cast<int>(left.count())) <= 0) continue;
    if (wanted[0].revents != 0 && !read_some(out.read_end.get(), result.output)) {
      out.read_end = Descriptor();
    }
    if (wanted[1].revents != 0 && !read_some(err.read_end.get(), result.errors)) {
      err.read_end = Descriptor();
    }
    std::string ignored;
    if (wanted[2].revents != 0) {
      if (read_some(beats.read_end.get(), ignored)) {
        end = Clock::now() + limit;
      } else {
        beats.read_end = Descriptor();
      }
    }
  }
}

}  // namespace

ChildResult run_self(const std::vector<std::string>& arguments, std::chrono::seconds limit) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Pipe beats = make_pipe();
  // A child whose beats nobody reads in time goes on.
  ::fcntl(beats.write_end.get(), F_SETFL, O_NONBLOCK);
  const pid_t child = spawn_self(arguments, out, err, beats);
  out.write_end = Descriptor();
  err.write_end = Descriptor();
  beats.write_end = Descriptor();
  ChildResult result;
  read_streams(out, err, beats, limit, result);
  if (result.is_overdue) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace npu::conformance
