// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace npu::cli {

/// What a program does about signals and about ends that it did not ask for, from now on:
/// - SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU remove what is half written, and end it as ever;
/// - SIGXFSZ is ignored, so that a file that grows too large is an error like a full disk;
/// - SIGBUS in a mapped file that was cut short names the file and ends it with status 1;
/// - an exception that nobody catches, in a thread of a library, ends it with 3 (memory) or 70;
/// - exit() of somebody else, between begin_body and end_body, ends it with 70.
void install_signal_handlers(const std::string& program);

/// The body of the program runs: it must come to its end.
void begin_body() noexcept;
void end_body() noexcept;

/// Ends the program as the signal does by itself, after what is half written was removed.
/// Async-signal-safe.
void end_by_signal(int number) noexcept;

}  // namespace npu::cli
