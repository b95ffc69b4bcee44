// SPDX-License-Identifier: Apache-2.0
// Progress of long commands on a terminal, and Ctrl-C.
#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <ctime>

#include "io.hpp"
#include "npu/support/elapsed.hpp"
#include "npu/support/text.hpp"
#include "signals.hpp"

namespace npu::cli {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

timespec first_request;

// Programs such as timeout(1) send the signal to the program and to its group at once: a second one
// that follows immediately is the same Ctrl-C.
extern "C" void request_stop(int signal) {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (stop_requested == 0) {
    stop_requested = 1;
    first_request = now;
    return;
  }
  const double seconds = static_cast<double>(now.tv_sec - first_request.tv_sec) +
                         1e-9 * static_cast<double>(now.tv_nsec - first_request.tv_nsec);
  if (seconds < 0.3) return;
  end_by_signal(signal);
}

}  // namespace

Progress::Progress(bool quiet, double quiet_seconds, CtrlC ctrl_c)
    : start_(Clock::now()),
      shown_(start_),
      quiet_seconds_(quiet_seconds),
      visible_(!quiet && ::isatty(STDERR_FILENO) == 1) {
  if (ctrl_c == CtrlC::kIsNotOurs) return;
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  struct sigaction before {};
  // A program that was started with Ctrl-C ignored keeps ignoring it.
  if (::sigaction(SIGINT, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {
    ::sigaction(SIGINT, &action, nullptr);
  }
}

Progress::~Progress() {
  if (has_line_) write_progress("");
}

bool Progress::interrupted() { return stop_requested != 0; }

bool Progress::operator()(double done, const std::string& what) {
  const double elapsed = seconds_since(start_);
  return show(done, done > 0 ? elapsed * (1 - done) / done : -1, what);
}

bool Progress::show(double done, double remaining_s, const std::string& what) {
  constexpr double kEverySeconds = 0.1;
  if (visible_ && seconds_since(start_) >= quiet_seconds_ &&
      (!has_line_ || seconds_since(shown_) >= kEverySeconds)) {
    const auto percent = std::lround(100 * std::clamp(done, 0.0, 1.0));
    std::string line = std::to_string(percent) + " %, ";
    if (remaining_s >= 0) line += fixed_text(remaining_s, 0) + " s left, ";
    write_progress(line + what);
    shown_ = Clock::now();
    has_line_ = true;
  }
  return !interrupted();
}

}  // namespace npu::cli
