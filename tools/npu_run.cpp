// SPDX-License-Identifier: Apache-2.0
// npu-run -- run a document or a bundle on its devices and report what happened.
#include "heap.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/runtime/backend_ops.hpp"
#include "npu/runtime/gnn_runner.hpp"
#include "npu/runtime/run_model.hpp"
#include "progress.hpp"
#include "run_options.hpp"
#include "tool.hpp"

namespace {

using npu::cli::ExitStatus;

/// Numbers at the top level of the report and in `bench`.
npu::cli::Metrics as_metrics(const npu::Json& report) {
  npu::cli::Metrics metrics;
  const auto add = [&](const npu::Json& object) {
    for (const auto& [key, value] : object.items()) {
      if (value.is_number()) metrics[key] = value.get<double>();
    }
  };
  add(report);
  if (const npu::Json* bench = npu::find_member(report, "bench")) add(*bench);
  return metrics;
}

/// The options that plans and documents share.
ExitStatus run_plan(npu::cli::Tool& tool, const npu::RunModelOptions& options,
                    npu::GnnRunOptions& plan_options) {
  plan_options.plan = tool.input();
  plan_options.weights = options.weights.file;
  if (!options.target.empty()) plan_options.target = options.target;
  plan_options.outputs = options.outputs;
  plan_options.expect = options.expect;
  plan_options.rtol = options.rtol.value_or(1e-4);
  plan_options.atol = options.atol.value_or(1e-5);
  plan_options.trace = options.trace;
  plan_options.threads = options.executor.threads;
  plan_options.bench = static_cast<std::int32_t>(options.bench);
  plan_options.cache = options.cache;
  npu::GnnRunResult result;
  {
    npu::cli::Progress line(tool.verbosity() < 0);
    plan_options.progress = [&line](double done, const std::string& what) {
      return line(done, what);
    };
    result = npu::run_gnn_plan(plan_options, tool.diagnostics());
  }
  tool.stop_on_errors();
  if (!result.within) tool.complain("the output is out of tolerance");
  if (tool.wants_report()) tool.report(npu::format_phase_times(result.times));
  const ExitStatus status = tool.check_asserts(as_metrics(result.report));
  tool.write_text(npu::write_document(result.report));
  return result.within ? status : ExitStatus::kAssertFailed;
}

}  // namespace

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-run",
                      "Run a model on its devices and report outputs, steps and times as JSON."};
  npu::RunModelOptions options;
  npu::GnnRunOptions plan_options;
  std::string list_ops_device;
  tool.add_graph_input();
  CLI::App& app = tool.app();
  npu::cli::add_run_options(tool, options, plan_options);
  CLI::Option* list_ops =
      app.add_option(
             "--list-ops", list_ops_device,
             "list what the backends of the target, or of DEVICE, have registered, and exit")
          ->type_name("[DEVICE]")
          ->expected(0, 1);
  tool.add_report("placement, steps and comparisons as tables");
  tool.add_assert(
      "transfers, transfer_bytes, measured_ms, predicted_ms, load_ms, median_ms, ...; see "
      "npu-run(1)");
  npu::cli::add_run_examples(tool);
  return tool.run(argc, argv, [&] {
    if (list_ops->count() > 0) {
      return tool.write_text(npu::list_registered_ops(options, list_ops_device)),
             ExitStatus::kSuccess;
    }
    npu::cli::keep_freed_memory();
    if (!plan_options.features.empty() || plan_options.simulate) {
      return run_plan(tool, options, plan_options);
    }
    options.measure_precision = tool.wants_report();
    const auto bundle = tool.read_bundle();
    const npu::RunModelResult result =
        bundle != nullptr ? npu::run_bundle(*bundle, options, tool.diagnostics())
                          : npu::run_model(tool.read_graph(), options, tool.diagnostics());
    tool.stop_on_errors();
    if (tool.wants_report()) tool.report(npu::format_run_report(result.report));
    for (const std::string& mismatch : result.mismatches) tool.complain(mismatch);
    const ExitStatus status = tool.check_asserts(as_metrics(result.report));
    tool.write_text(npu::write_document(result.report));
    return result.within ? status : ExitStatus::kAssertFailed;
  });
}
