// SPDX-License-Identifier: Apache-2.0
// The only place that touches stdin, stdout and stderr.
#include "io.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"

namespace npu::cli {

std::string input_name(const std::string& path) { return path == "-" ? "<stdin>" : path; }

std::string read_input(const std::string& path) {
  std::string content = path == "-" ? read_stream(stdin, "<stdin>") : read_file(path);
  if (content.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error(ErrorCode::kParse,
                path == "-"
                    ? "the input is empty; did the command before this one in the pipe fail?"
                    : "the file is empty",
                {.file = input_name(path)});
  }
  return content;
}

bool write_output(const std::string& path, std::string_view content) {
  if (path != "-") {
    write_file_atomically(path, content);
    return true;
  }
  errno = 0;
  if (std::fwrite(content.data(), 1, content.size(), stdout) == content.size() &&
      std::fflush(stdout) == 0) {
    return true;
  }
  if (errno == EPIPE) return false;
  throw Error(ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno),
              {.file = "<stdout>"});
}

void write_message(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace npu::cli
