// SPDX-License-Identifier: Apache-2.0
// npu-compile's second mode, which compiles plans of npu-plan: the call into the library. A signal
// ends it before the next unit, so that the unfinished folder is removed.
#include "options/unit_options.hpp"

#include "gnn/compile_blocks.hpp"
#include "npu_version.hpp"
#include "options/gnn_run_options.hpp"
#include "progress.hpp"
#include "stop_signals.hpp"

namespace npu::cli {

ExitStatus compile_plan(Tool& tool, const CompileModelOptions& shared,
                        const std::vector<std::string>& devices) {
  tool.refuse({"--devices", "--exclude-device", "--random-weights", "--no-fallback", "--load-ops",
               "--promote", "--quantize", "--calibrate", "--calibration", "--max-error", "--full",
               "--no-smooth", "--no-bias-correction", "--jobs", "--memory-limit", "--deadline",
               "--bind", "--freeze"},
              "is not for plans");
  if (tool.output() == "-") {
    throw Error(ErrorCode::kUsage, "a plan is compiled to a folder; give -o DIR");
  }
  gnn::RunPlanOptions options;
  options.plan = tool.input().path();
  if (tool.app().count("--precision") > 0) {
    options.precision = Tool::plan_precision(shared.compile.precision);
  }
  options.weights = shared.weights.file;
  options.target = shared.where.target;
  options.devices = plan_devices(devices);
  options.threads = shared.compile.threads;
  options.cache = shared.cache;
  gnn::CompileBlocksReport report;
  {
    constexpr LeftBehindTexts kTexts{
        "a backend does not stop compiling and is left behind\n",
        "error: the deadline is over, and a backend does not stop compiling; it is left behind\n"};
    Progress line(tool.verbosity() < 0, 2, Progress::CtrlC::kIsNotOurs);
    const StopSignals signals(kTexts, std::nullopt);
    options.progress = [&](double done, const std::string& what) {
      line(done, what);
      return !StopSignals::has_come();
    };
    report = gnn::compile_blocks(options, {tool.output(), tool.producer()}, tool.diagnostics());
  }
  tool.stop_on_errors();
  tool.report(gnn::format_blocks_report(report));
  return tool.check_asserts(gnn::blocks_metrics(report));
}

}  // namespace npu::cli
