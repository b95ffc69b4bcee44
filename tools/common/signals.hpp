// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>

#include "exit_status.hpp"

namespace npu::cli {

/// Installs the program's handling of signals and unexpected exits:
/// - SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU remove unfinished files, then end it as usual;
/// - SIGXFSZ is ignored, so that a file that grows too large is an error like a full disk;
/// - SIGBUS in a mapped file that was truncated names the file and ends it with status 1;
/// - an uncaught exception in a thread of a library ends it with 3 (memory) or 70;
/// - a library's call of exit(), between begin_body and end_body, ends it with 70.
void install_signal_handlers(const std::string& program);

/// Mark the beginning and the end of the program's body, within which it must not exit.
void begin_body() noexcept;
void end_body() noexcept;

/// What the program says before SIGTERM ends it; empty: nothing. At most 200 bytes.
void set_termination_note(const std::string& text);
void clear_termination_note() noexcept;

/// The descriptor of a line that is begun, which gets a newline if a signal or a library ends the
/// program; -1: none.
void set_open_line(int descriptor) noexcept;

/// For as long as it lives, the signals that end the program wait.
class HeldSignals {
 public:
  HeldSignals() noexcept;
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

/// Ends a line that is begun, removes unfinished files, then ends the program as the
/// signal does by default. Async-signal-safe.
void end_by_signal(int number) noexcept;

/// The first signal that asked a command to stop; for its handler and for the command.
struct StopRequest {
  std::atomic<int> signal{0};  ///< 0: none has come
  std::atomic<std::int64_t> at_ns{0};
};

/// Whether a signal is the first one, which `request` then holds. Programs such as timeout(1) send
/// one to the program and to its group at once: a second one that follows immediately is the same
/// one, and a later one ends the program. Async-signal-safe.
bool is_first_stop(int signal, StopRequest& request) noexcept;

/// Installs a handler, which SIGINT and SIGTERM do not interrupt. A program that was started with
/// Ctrl-C ignored keeps ignoring it; nobody else sends SIGALRM, which is always taken. `before`, if
/// it is not null, gets what was there.
void take_signal(int signal, void (*handler)(int), int flags, struct sigaction* before = nullptr);

/// Writes "PROGRAM: " and `text` to stderr. Async-signal-safe.
void say_in_handler(const char* text) noexcept;
/// The same, then removes unfinished files and ends the program. Async-signal-safe.
[[noreturn]] void end_in_handler(const char* text, ExitStatus status) noexcept;

}  // namespace npu::cli
