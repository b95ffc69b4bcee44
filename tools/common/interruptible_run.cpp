// SPDX-License-Identifier: Apache-2.0
// A run that signals and a deadline end; stop_signals does what concerns the process.
#include "interruptible_run.hpp"

#include "npu/runtime/run_stop.hpp"
#include "stop_signals.hpp"
#include "tool.hpp"

namespace npu::cli {
namespace {

RunStop* stop_of_run = nullptr;  // for the handler, as long as it is installed

bool ask_run() noexcept {
  if (!stop_of_run->reaches_run()) return false;
  stop_of_run->ask();
  return true;
}

}  // namespace

void run_interruptibly(RunModelOptions& options, std::optional<double> deadline_s,
                       const std::function<void()>& body) {
  if (deadline_s) options.deadline = seconds_from_now(*deadline_s);
  options.executor.stop = std::make_shared<RunStop>(options.deadline);
  stop_of_run = options.executor.stop.get();
  const StopSignals signals({"a backend does not stop its run and is left behind\n", ""},
                            std::nullopt, ask_run);
  body();
}

}  // namespace npu::cli
