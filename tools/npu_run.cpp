// SPDX-License-Identifier: Apache-2.0
// npu-run -- run a document or a bundle on its devices and report what happened.
#include "file_digest.hpp"
#include "heap.hpp"
#include "interruptible_run.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/runtime/run_model.hpp"
#include "options/backend_options.hpp"
#include "options/generate_options.hpp"
#include "options/gnn_run_options.hpp"
#include "options/run_options.hpp"
#include "runtime/backend_ops.hpp"
#include "token_loop.hpp"
#include "tool.hpp"

using npu::cli::ExitStatus;

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-run",
                      "Run a model on its devices and report outputs, steps and times as JSON."};
  npu::RunModelOptions options;
  npu::cli::PlanRunOptions plan_options;
  npu::cli::BackendOptions backend_options;
  std::string list_ops_device;
  std::string digest;
  std::optional<double> deadline;
  npu::DigestCheck check = npu::DigestCheck::kOnUse;
  npu::cli::TokenLoopOptions loop;
  tool.input().add_option(tool.app());
  tool.add_output();
  tool.input().add_import_options(tool.app());
  CLI::App& app = tool.app();
  npu::cli::add_run_options(tool, options, plan_options);
  npu::cli::add_generate_options(tool, loop);
  app.add_option("--require-digest", digest,
                 "run only a bundle with this SHA-256, which npu-compile --info prints")
      ->type_name("HEX")
      ->transform(npu::cli::sha256_option());
  app.add_flag_callback(
      "--no-verify-digests", [&] { check = npu::DigestCheck::kOmitted; },
      "do not look for damage in the sections of a bundle");
  CLI::Option* list_ops =
      app.add_option(
             "--list-ops", list_ops_device,
             "list what the backends of the target, or of DEVICE, have registered, and exit")
          ->type_name("[DEVICE]")
          ->expected(0, 1);
  npu::cli::add_backend_options(tool, backend_options);
  tool.add_deadline(
      deadline,
      "exit 3 if the first run is not done within so many seconds, as far as it can be stopped");
  tool.add_report("placement, steps and comparisons as tables");
  tool.add_assert(
      "transfers, transfer_bytes, measured_ms, predicted_ms, load_ms, median_ms, ...; see "
      "npu-run(1)");
  npu::cli::add_run_examples(tool);
  return tool.run(argc, argv, [&] {
    if (backend_options.wanted()) return npu::cli::run_backend_options(tool, backend_options);
    if (list_ops->count() > 0) {
      return tool.write_text(npu::list_registered_ops(options, list_ops_device)),
             ExitStatus::kSuccess;
    }
    npu::cli::keep_freed_memory();
    if (plan_options.wanted() && !digest.empty()) {
      throw npu::Error(npu::ErrorCode::kUsage, "--require-digest: a plan is no bundle");
    }
    if (plan_options.wanted() && options.executor.in_flight > 1) {
      throw npu::Error(npu::ErrorCode::kUsage, "--in-flight: a plan makes one run at a time");
    }
    if (plan_options.wanted()) {
      tool.refuse({"--memory-limit", "--deadline", "--bind", "--freeze"}, "is not for plans");
      return npu::cli::run_plan(tool, options, plan_options);
    }
    tool.refuse({"--units"}, "is for plans, which --features makes run");
    if (loop.wanted()) npu::cli::check_token_loop(tool, loop);
    if (!loop.wanted()) tool.refuse({"--source"}, "goes with --generate or --score");
    options.measure_precision = tool.wants_report();
    const auto bundle = digest.empty() ? tool.input().read_bundle(false, check)
                                       : npu::cli::read_pinned_bundle(tool, digest);
    if (bundle != nullptr) options.sizes = tool.input().bound_sizes();
    if (loop.wanted()) {
      return npu::cli::run_decoder(tool, bundle.get(), options, deadline, loop);
    }
    npu::RunReport report;
    npu::cli::run_interruptibly(options, deadline, [&] {
      report = bundle != nullptr
                   ? npu::run_bundle(*bundle, options, tool.diagnostics())
                   : npu::run_model(tool.input().read_graph(), options, tool.diagnostics());
    });
    tool.stop_on_errors();
    if (tool.wants_report()) tool.report(npu::format_run_report(report));
    const bool within = npu::cli::complain_of_mismatches(tool, options, report);
    const ExitStatus status = tool.check_asserts(npu::run_metrics(report));
    tool.write_text(npu::write_document(npu::run_report_json(report)));
    return within ? status : ExitStatus::kAssertFailed;
  });
}
