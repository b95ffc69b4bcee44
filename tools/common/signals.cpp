// SPDX-License-Identifier: Apache-2.0
// Handles signals and unexpected exits. Handlers write with write(2) from texts that were prepared
// before, since a signal may come while the heap or stderr is locked.
#include "signals.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>

#include "exit_status.hpp"
#include "support/signal_hooks.hpp"
#include "support/text.hpp"

namespace npu::cli {
namespace {

// What handlers use.
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

// "PROGRAM: ", for handlers.
std::array<char, 64> message_start{};
std::array<char, 208> termination_note{};
std::atomic<pid_t> body_of{0};   // the process whose body runs; 0: none
std::atomic<int> open_line{-1};  // a descriptor; -1: none

void say(const char* text) noexcept {
  const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);  // there is nowhere to report it
}

// A pipe that nobody empties must not keep the program from ending.
void end_open_line() noexcept {
  const int descriptor = open_line.exchange(-1);
  if (descriptor < 0) return;
  pollfd wanted{descriptor, POLLOUT, 0};
  if (::poll(&wanted, 1, 0) != 1 || (wanted.revents & POLLOUT) == 0) return;
  const ssize_t written = ::write(descriptor, "\n", 1);
  static_cast<void>(written);
}

[[noreturn]] void end_with(ExitStatus status) noexcept {
  end_open_line();
  remove_unfinished_files();
  ::_exit(static_cast<int>(status));
}

extern "C" void end_on_bus_error(int number, siginfo_t* info, void* /*context*/) {
  const char* file = mapped_file_at(info->si_addr);
  if (file == nullptr) return end_by_signal(number);
  say(message_start.data());
  say(file);
  say(": error: was cut short while it was read; replace a file by renaming a new one over it\n");
  end_with(ExitStatus::kBadInput);
}

extern "C" void end_on_signal(int number) {
  if (number == SIGTERM && termination_note[0] != '\0') {
    say(message_start.data());
    say(termination_note.data());
  }
  end_by_signal(number);
}

extern "C" void end_on_exit() {
  // A child process that probes a library has no output to lose.
  if (body_of.load() != ::getpid()) return;
  say(message_start.data());
  say("error: a library (a backend or custom ops) has ended the program before its output was "
      "written\n");
  end_with(ExitStatus::kInternal);
}

[[noreturn]] void end_on_terminate() {
  say(message_start.data());
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
    say("internal error, please report: terminated\n");
  } catch (const std::bad_alloc&) {
    say("error: out of memory\n");
    end_with(ExitStatus::kInfeasible);
  } catch (const std::exception& error) {
    say("internal error, please report: ");
    say(terminal_text(error.what()).c_str());
    say("\n");
  } catch (...) {
    say("internal error, please report: an exception of unknown type\n");
  }
  end_with(ExitStatus::kInternal);
}

}  // namespace

void set_open_line(int descriptor) noexcept { open_line.store(descriptor); }

HeldSignals::HeldSignals() noexcept {
  sigset_t held{};
  sigemptyset(&held);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGALRM}) {
    sigaddset(&held, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void end_by_signal(int number) noexcept {
  end_open_line();
  remove_unfinished_files();
  std::signal(number, SIG_DFL);
  ::raise(number);
}

bool is_first_stop(int signal, StopRequest& request) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  if (request.signal.load() == 0) {
    request.at_ns.store(now_ns);  // before the signal, which says that there is a time
    request.signal.store(signal);
    return true;
  }
  constexpr std::int64_t kAtOnceNs = 300'000'000;
  if (now_ns - request.at_ns.load() >= kAtOnceNs) end_by_signal(signal);
  return false;
}

void take_signal(int signal, void (*handler)(int), int flags, struct sigaction* before) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGTERM);
  struct sigaction known {};
  const bool is_known = ::sigaction(signal, nullptr, &known) == 0;
  if (before != nullptr) *before = known;
  if (is_known && known.sa_handler == SIG_IGN && signal != SIGALRM) return;
  ::sigaction(signal, &action, nullptr);
}

void say_in_handler(const char* text) noexcept {
  say(message_start.data());
  say(text);
}

void end_in_handler(const char* text, ExitStatus status) noexcept {
  say_in_handler(text);
  end_with(status);
}

void install_signal_handlers(const std::string& program) {
  const std::string start = program + ": ";
  std::memcpy(message_start.data(), start.c_str(),
              std::min(start.size(), message_start.size() - 1));
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = end_on_bus_error;
  ::sigaction(SIGBUS, &action, nullptr);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU}) {
    take_signal(number, end_on_signal, 0);
  }
  std::set_terminate(end_on_terminate);
  std::atexit(end_on_exit);
  std::at_quick_exit(end_on_exit);
}

void set_termination_note(const std::string& text) {
  const std::string line = text.substr(0, 200) + "\n";
  std::memcpy(termination_note.data(), line.c_str(), line.size() + 1);
}

void clear_termination_note() noexcept { termination_note[0] = '\0'; }

void begin_body() noexcept { body_of.store(::getpid()); }

void end_body() noexcept { body_of.store(0); }

}  // namespace npu::cli
