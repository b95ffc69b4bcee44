// SPDX-License-Identifier: Apache-2.0
// Signals and the deadline of a compile. The handlers only note what came and start a timer, whose
// own signal ends the program if the compile has not: threads of a backend that does not stop
// cannot be ended otherwise.
#include "interruptible_compile.hpp"

#include <array>
#include <cmath>
#include <csignal>
#include <ctime>
#include <utility>

#include "exit_status.hpp"
#include "progress.hpp"
#include "signals.hpp"
#include "tool.hpp"

namespace npu::cli {
namespace {

constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGALRM};
constexpr std::time_t kGraceSeconds = 1;
constexpr long kGraceNanoseconds = 700'000'000;

StopRequest compile_stop;
timer_t last_resort;

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
  if (is_first_stop(number, compile_stop)) start_timer({});
}

extern "C" void leave_behind(int /*number*/) {
  if (const int signal = compile_stop.signal.load(); signal != 0) {
    say_in_handler("a backend does not stop compiling and is left behind\n");
    end_by_signal(signal);
    return;
  }
  end_in_handler(
      "error: the deadline is over, and a backend does not stop compiling; it is left "
      "behind\n",
      ExitStatus::kInfeasible);
}

/// The signals are its own as long as it lives; there is one at a time.
class StopSignals {
 public:
  explicit StopSignals(std::optional<double> deadline_s) {
    compile_stop.signal.store(0);
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
  ~StopSignals() {
    ::timer_delete(last_resort);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool has_come() noexcept { return compile_stop.signal.load() != 0; }
  /// Returns if none came.
  static void end_if_come() noexcept {
    if (has_come()) end_by_signal(compile_stop.signal.load());
  }

 private:
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace

void compile_interruptibly(CompileModelOptions options, std::optional<double> deadline_s,
                           bool quiet,
                           const std::function<void(const CompileModelOptions&)>& compile) {
  Progress progress(quiet, 2, Progress::CtrlC::kIsNotOurs);
  const StopSignals signals(deadline_s);
  options.compile.control.progress = [&](double done, const std::string& what) {
    progress(done, what);
    return !StopSignals::has_come();
  };
  if (deadline_s) options.compile.control.deadline = seconds_from_now(*deadline_s);
  try {
    compile(options);
    StopSignals::end_if_come();
  } catch (...) {
    StopSignals::end_if_come();
    throw;
  }
}

CompileModelResult compile_interruptibly(Graph& graph, const CompileModelOptions& options,
                                         std::optional<double> deadline_s, bool quiet,
                                         Diagnostics& diagnostics) {
  CompileModelResult result;
  compile_interruptibly(options, deadline_s, quiet, [&](const CompileModelOptions& watched) {
    result = compile_model(graph, watched, diagnostics);
  });
  return result;
}

}  // namespace npu::cli
