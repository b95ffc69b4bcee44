// SPDX-License-Identifier: Apache-2.0
// Signals and the deadline of work that can be stopped. The handlers only note what came and start
// a timer, whose own signal ends the program if the work has not: threads of a backend that does
// not stop cannot be ended otherwise.
#include "stop_signals.hpp"

#include <cmath>
#include <ctime>

#include "exit_status.hpp"
#include "signals.hpp"

namespace npu::cli {
namespace {

constexpr std::time_t kGraceSeconds = 1;
constexpr long kGraceNanoseconds = 700'000'000;

StopRequest stop_request;
timer_t last_resort;
LeftBehindTexts left_behind;
bool (*ask_others)() noexcept = nullptr;

void start_timer(itimerspec after) noexcept {
  after.it_value.tv_sec += kGraceSeconds;
  after.it_value.tv_nsec += kGraceNanoseconds;
  if (after.it_value.tv_nsec >= 1'000'000'000) {
    ++after.it_value.tv_sec;
    after.it_value.tv_nsec -= 1'000'000'000;
  }
  ::timer_settime(last_resort, 0, &after, nullptr);
}

extern "C" void ask_to_stop(int number) {
  if (!is_first_stop(number, stop_request)) return;
  if (ask_others != nullptr && !ask_others()) end_by_signal(number);
  start_timer({});
}

extern "C" void leave_behind(int /*number*/) {
  if (const int signal = stop_request.signal.load(); signal != 0) {
    say_in_handler(left_behind.after_signal);
    end_by_signal(signal);
    return;
  }
  end_in_handler(left_behind.after_deadline, ExitStatus::kInfeasible);
}

}  // namespace

StopSignals::StopSignals(const LeftBehindTexts& texts, std::optional<double> deadline_s,
                         bool (*asks)() noexcept) {
  stop_request.signal.store(0);
  left_behind = texts;
  ask_others = asks;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  ::timer_create(CLOCK_MONOTONIC, &event, &last_resort);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    take_signal(kSignals[i], kSignals[i] == SIGALRM ? leave_behind : ask_to_stop, SA_RESTART,
                &before_[i]);
  }
  if (!deadline_s) return;
  itimerspec after{};
  after.it_value.tv_sec = static_cast<std::time_t>(*deadline_s);
  after.it_value.tv_nsec = static_cast<long>(1e9 * std::fmod(*deadline_s, 1.0));
  start_timer(after);
}

StopSignals::~StopSignals() {
  ::timer_delete(last_resort);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  ask_others = nullptr;
  end_if_come();  // also by one that came when the work had ended
}

bool StopSignals::has_come() noexcept { return stop_request.signal.load() != 0; }

void StopSignals::end_if_come() noexcept {
  if (has_come()) end_by_signal(stop_request.signal.load());
}

}  // namespace npu::cli
