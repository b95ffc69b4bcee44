// SPDX-License-Identifier: Apache-2.0
// The only place that touches stdin, stdout and stderr.
//
// stdout carries one document, whole or not at all. What a library prints there (a vendor's
// greeting, DNNL_VERBOSE, a custom op that is being debugged) would stand in front of it or in the
// middle, so the document has a descriptor of its own and descriptor 1 leads to stderr.
#include "io.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "signals.hpp"
#include "support/text.hpp"

namespace npu::cli {
namespace {

int output_descriptor = STDOUT_FILENO;

// The pipe was closed by its reader, and SIGPIPE is ignored.
struct ReaderGone {};

// A reader that takes its time must not hold signals up.
void wait_for_reader() {
  pollfd wanted{output_descriptor, POLLOUT, 0};
  while (::poll(&wanted, 1, -1) < 0 && errno == EINTR) {
  }
}

void write_to_stdout(std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(output_descriptor, content.data(), content.size());
    if (written >= 0) {
      content.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      struct pollfd wanted {
        output_descriptor, POLLOUT, 0
      };
      ::poll(&wanted, 1, -1);
    } else if (errno == EPIPE) {
      throw ReaderGone{};
    } else if (errno != EINTR) {
      throw Error(ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno),
                  {.file = "<stdout>"});
    }
  }
}

}  // namespace

void keep_stdout_for_output() {
  // A stream that is closed stays useless, but its number must not become that of a file.
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    const int null = ::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (null >= 0 && null != number) ::dup2(null, number), ::close(null);
  }
  const int kept = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (kept < 0) return;
  output_descriptor = kept;
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

bool output_is_terminal() { return ::isatty(output_descriptor) == 1; }

bool is_stdout(const std::string& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

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
  return write_output(path, [&](const TextSink& sink) { sink(content); });
}

bool write_output(const std::string& path, const std::function<void(const TextSink&)>& write) {
  if (path != "-") {
    write_file_atomically(path, write);
    return true;
  }
  try {
    write(write_to_stdout);
  } catch (const ReaderGone&) {
    return false;
  }
  return true;
}

OutputLine::~OutputLine() {
  if (!is_begun_) return;
  try {
    end();
  } catch (const Error&) {  // it is the one that ends the program already, or a second one
  }
}

bool OutputLine::add(std::string_view text) {
  wait_for_reader();
  const HeldSignals held;  // so that a handler knows whether the line is begun
  try {
    write_to_stdout(text);
  } catch (const ReaderGone&) {
    return false;
  }
  is_begun_ = true;
  set_open_line(output_descriptor);
  return true;
}

bool OutputLine::end() {
  wait_for_reader();
  const HeldSignals held;
  set_open_line(-1);
  is_begun_ = false;
  try {
    write_to_stdout("\n");
  } catch (const ReaderGone&) {
    return false;
  }
  return true;
}

void write_message(std::string_view text) {
  const std::string shown = terminal_text(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  std::fflush(stderr);
}

void write_progress(std::string_view text) {
  // To the begin of the line, and clear it.
  std::fputs(("\r\033[K" + terminal_text(text)).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace npu::cli
