// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "npu/support/file_io.hpp"

namespace npu::cli {

/// From now on documents alone go to stdout: what libraries print there goes to stderr. To be
/// called once, before anything is read or written.
void keep_stdout_for_output();

/// Whether documents go to a terminal.
bool output_is_terminal();

/// Whether a path is a name of stdout: "-", or one of those in /dev and /proc.
bool is_stdout(const std::string& path);

/// The content of a file, or of stdin for "-". An empty input throws Error kParse.
std::string read_input(const std::string& path);

/// The name of an input in messages: "<stdin>" for "-".
std::string input_name(const std::string& path);

/// Writes to stdout for "-", else to a file, atomically. Throws Error kIo; a pipe that was closed
/// by its reader while SIGPIPE is ignored is no error (returns false).
bool write_output(const std::string& path, std::string_view content);
/// As above, with the pieces that `write` passes to its sink, which ends it by an exception of its
/// own where nobody reads any longer.
bool write_output(const std::string& path, const std::function<void(const TextSink&)>& write);

/// A line of stdout that others read while it is written: the exception from "a document, whole or
/// not at all". However the program ends, by a signal too, the line that is begun gets its newline.
class OutputLine {
 public:
  OutputLine() = default;
  ~OutputLine();
  OutputLine(const OutputLine&) = delete;
  OutputLine& operator=(const OutputLine&) = delete;

  /// Writes a part of the line at once. Throws Error kIo; false if nobody reads it any longer.
  bool add(std::string_view text);
  /// Ends the line, and begins the next one.
  bool end();

 private:
  bool is_begun_ = false;
};

/// Writes to stderr, as terminal_text: names in it may come from outside. Failures are ignored,
/// since there is nowhere to report them.
void write_message(std::string_view text);

/// Writes a line over the last one on a terminal; nothing clears it.
void write_progress(std::string_view text);

}  // namespace npu::cli
