// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Removes unfinished files, then ends the program as the
/// signal does by default. Async-signal-safe.
void end_by_signal(int number) noexcept;

/// Writes "PROGRAM: " and `text` to stderr. Async-signal-safe.
void say_in_handler(const char* text) noexcept;
/// The same, then removes unfinished files and ends the program. Async-signal-safe.
[[noreturn]] void end_in_handler(const char* text, ExitStatus status) noexcept;

}  // namespace npu::cli
