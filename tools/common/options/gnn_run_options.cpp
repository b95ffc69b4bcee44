// SPDX-License-Identifier: Apache-2.0
// npu-run's second mode, which runs plans of npu-plan: its options, and the call into the library.
#include "options/gnn_run_options.hpp"

#include "npu/ir/json_writer.hpp"
#include "options/key_value.hpp"
#include "options/validators.hpp"
#include "progress.hpp"
#include "signals.hpp"

namespace npu::cli {
namespace {

gnn::RunPlanOptions joined(const std::string& plan, const RunModelOptions& shared,
                           const PlanRunOptions& options) {
  gnn::RunPlanOptions run = options.run;
  run.plan = plan;
  run.weights = shared.weights.file;
  run.precision = Tool::plan_precision(shared.precision);
  if (!shared.where.target.empty()) run.target = shared.where.target;
  run.devices = plan_devices(options.devices);
  run.outputs = shared.outputs;
  if (!shared.expect.empty()) run.expect = shared.expect.back().path;
  run.rtol = shared.rtol;
  run.atol = shared.atol;
  run.trace = shared.trace;
  run.threads = shared.executor.threads;
  run.bench = static_cast<std::int32_t>(shared.bench);
  run.cache = shared.cache;
  return run;
}

}  // namespace

void add_plan_device_option(Tool& tool, std::vector<std::string>& devices) {
  repeatable(
      tool.app().add_option("--device", devices, "plan: run device NAME on BACKEND; repeatable"))
      ->type_name("NAME=BACKEND");
}

std::vector<gnn::DeviceBackend> plan_devices(const std::vector<std::string>& texts) {
  std::vector<gnn::DeviceBackend> devices;
  for (const std::string& text : texts) {
    const auto [device, backend] = split_key_value(text, "--device", "NAME=BACKEND");
    devices.push_back({device, backend});
  }
  return devices;
}

void add_plan_run_options(Tool& tool, PlanRunOptions& options) {
  CLI::App& app = tool.app();
  app.add_option("--features", options.run.features,
                 "run GRAPH, a plan by npu-plan, on these node features: .npy, safetensors or .mtx")
      ->type_name("FILE");
  add_plan_device_option(tool, options.devices);
  app.add_option("--units", options.run.units,
                 "plan: take programs from DIR, which npu-compile has written, and compile nothing")
      ->type_name("DIR")
      ->check(not_empty());
  app.add_flag("--simulate", options.run.simulate,
               "plan: replay its predicted times; needs no backend");
}

ExitStatus run_plan(Tool& tool, const RunModelOptions& shared, PlanRunOptions options) {
  gnn::RunPlanOptions run = joined(tool.input().path(), shared, options);
  gnn::RunPlanResult result;
  {
    Progress line(!tool.shows_progress());
    run.progress = std::ref(line);
    run.joined = [](std::int32_t rank, std::int32_t size) {
      set_termination_note("error: rank " + std::to_string(rank) + " of " + std::to_string(size) +
                           " was told to end: another rank has ended, or the launcher");
    };
    run.left = [] { clear_termination_note(); };
    result = gnn::run_plan(run, tool.diagnostics());
  }
  if (!result.speaks) return ExitStatus::kSuccess;
  tool.stop_on_errors();
  if (!result.within) tool.complain("the output is out of tolerance");
  tool.report(gnn::format_run_times(result.report));
  tool.report(format_phase_times(result.times));
  const ExitStatus status = tool.check_asserts(gnn::run_metrics(result.report));
  tool.write_text(write_document(gnn::to_json(result.report)));
  return result.within ? status : ExitStatus::kAssertFailed;
}

}  // namespace npu::cli
