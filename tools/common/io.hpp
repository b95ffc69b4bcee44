// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace npu::cli {

/// The content of a file, or of stdin for "-". An empty input throws Error kParse.
std::string read_input(const std::string& path);

/// The name of an input in messages: "<stdin>" for "-".
std::string input_name(const std::string& path);

/// Writes to stdout for "-", else to a file, atomically. Throws Error kIo; a pipe that was closed
/// by its reader while SIGPIPE is ignored is no error (returns false).
bool write_output(const std::string& path, std::string_view content);

/// Writes to stderr; failures are ignored, since there is nowhere to report them.
void write_message(std::string_view text);

}  // namespace npu::cli
