// SPDX-License-Identifier: Apache-2.0
// Progress of long commands on a terminal, and Ctrl-C.
#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "io.hpp"
#include "signals.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu::cli {
namespace {

StopRequest interrupt;

extern "C" void request_stop(int signal) { is_first_stop(signal, interrupt); }

}  // namespace

Progress::Progress(bool quiet, double quiet_seconds, CtrlC ctrl_c)
    : start_(Clock::now()),
      began_(start_),
      shown_(start_),
      quiet_seconds_(quiet_seconds),
      visible_(!quiet && ::isatty(STDERR_FILENO) == 1) {
  if (ctrl_c == CtrlC::kStops) take_signal(SIGINT, request_stop, SA_RESTART);
}

Progress::~Progress() {
  if (has_line_) write_progress("");
}

bool Progress::interrupted() { return interrupt.signal.load() != 0; }

bool Progress::operator()(double done, const std::string& what) {
  if (done <= 0) began_ = Clock::now();
  constexpr double kEverySeconds = 0.1;
  if (visible_ && seconds_since(start_) >= quiet_seconds_ &&
      (!has_line_ || seconds_since(shown_) >= kEverySeconds)) {
    const auto percent = std::lround(100 * std::clamp(done, 0.0, 1.0));
    std::string line = std::to_string(percent) + " %, ";
    if (done > 0) line += fixed_text(seconds_since(began_) * (1 - done) / done, 0) + " s left, ";
    write_progress(line + what);
    shown_ = Clock::now();
    has_line_ = true;
  }
  return !interrupted();
}

}  // namespace npu::cli
