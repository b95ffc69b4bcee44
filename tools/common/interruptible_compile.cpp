// SPDX-License-Identifier: Apache-2.0
// A compile that signals and a deadline end; stop_signals does what concerns the process.
#include "interruptible_compile.hpp"

#include "progress.hpp"
#include "stop_signals.hpp"
#include "tool.hpp"

namespace npu::cli {

void compile_interruptibly(CompileModelOptions options, std::optional<double> deadline_s,
                           bool quiet,
                           const std::function<void(const CompileModelOptions&)>& compile) {
  constexpr LeftBehindTexts kTexts{
      "a backend does not stop compiling and is left behind\n",
      "error: the deadline is over, and a backend does not stop compiling; it is left behind\n"};
  Progress progress(quiet, 2, Progress::CtrlC::kIsNotOurs);
  const StopSignals signals(kTexts, deadline_s);
  options.compile.control.progress = [&](double done, const std::string& what) {
    progress(done, what);
    return !StopSignals::has_come();
  };
  if (deadline_s) options.compile.control.deadline = seconds_from_now(*deadline_s);
  compile(options);
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
