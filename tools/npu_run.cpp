// SPDX-License-Identifier: Apache-2.0
// npu-run -- run a document or a bundle on its devices and report what happened.
#include "npu/ir/json_writer.hpp"
#include "npu/runtime/backend_ops.hpp"
#include "npu/runtime/gnn_runner.hpp"
#include "npu/runtime/run_model.hpp"
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

}  // namespace

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-run",
                      "Run a model on its devices and report outputs, steps and times as JSON."};
  npu::RunModelOptions options;
  npu::GnnRunOptions plan_options;
  std::string list_ops_device;
  tool.add_graph_input();
  CLI::App& app = tool.app();
  app.add_option("--weights", options.weights.file,
                 "safetensors file with the weights; default: npu.weights_file of the document")
      ->type_name("FILE");
  app.add_option("--random-weights", options.weights.random_seed, "make weights up from a seed")
      ->type_name("SEED")
      ->check(npu::cli::seed());
  app.add_option("--inputs", options.inputs,
                 "safetensors file, NAME=FILE.npy, or FILE.npy for a single input; repeatable")
      ->type_name("FILE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--random-inputs", options.random_inputs, "make missing inputs up from a seed")
      ->type_name("SEED")
      ->check(npu::cli::seed());
  app.add_option("--outputs", options.outputs,
                 "write the outputs: safetensors, or .npy for a single one")
      ->type_name("FILE")
      ->check(npu::cli::file_beside_stdout());
  app.add_option("--expect", options.expect,
                 "compare the outputs with a safetensors file; exit 4 if they differ")
      ->type_name("FILE");
  app.add_option("--verify", options.verify_device,
                 "run the whole graph on DEVICE, too, and compare; exit 4 if the outputs differ")
      ->type_name("DEVICE")
      ->check(npu::cli::not_empty());
  app.add_option("--rtol", options.rtol, "relative tolerance [1e-3; 2e-2 for 16-bit floats]")
      ->type_name("X")
      ->check(npu::cli::finite_at_least_zero());
  app.add_option("--atol", options.atol, "absolute tolerance [1e-4; 2e-2 for 16-bit floats]")
      ->type_name("X")
      ->check(npu::cli::finite_at_least_zero());
  app.add_option("--bench", options.bench, "run N more times and report the distribution")
      ->type_name("N")
      ->check(npu::cli::in_range(1, 1'000'000));
  app.add_option("--threads", options.executor.threads, "threads per device; 0 means all cores")
      ->type_name("N")
      ->check(npu::cli::in_range(0, 1024))
      ->capture_default_str();
  app.add_option("--target", options.target,
                 "target of a document that npu-tag has not seen [host]")
      ->type_name("NAME|FILE");
  app.add_option("--trace", options.trace, "write the last run as Chrome trace JSON")
      ->type_name("FILE")
      ->check(npu::cli::file_beside_stdout());
  app.add_option("--features", plan_options.features,
                 "run a plan of npu-plan on these node features: .npy, safetensors or .mtx")
      ->type_name("FILE");
  app.add_option("--device", plan_options.devices, "plan: run device NAME on BACKEND; repeatable")
      ->type_name("NAME=BACKEND")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--simulate", plan_options.simulate,
               "plan: replay its predicted times; needs no backend");
  app.add_option("--load-ops", options.load_ops,
                 "shared object of custom ops (npu/custom_op.hpp); repeatable")
      ->type_name("LIBRARY")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--promote", options.promote,
               "promote operands of different dtypes as PyTorch does, instead of refusing them");
  CLI::Option* list_ops =
      app.add_option(
             "--list-ops", list_ops_device,
             "list what the backends of the target, or of DEVICE, have registered, and exit")
          ->type_name("[DEVICE]")
          ->expected(0, 1);
  app.add_flag_callback(
      "--no-overlap", [&options] { options.executor.overlap = false; },
      "run steps one after another, even those that could run at the same time");
  tool.add_precision(options.precision, "compute float32 tensors as f32 or bf16 [f32]");
  tool.add_cache(options.cache);
  tool.add_report("placement, steps and comparisons as tables");
  tool.add_assert(
      "transfers, transfer_bytes, measured_ms, predicted_ms, load_ms, median_ms, ...; see "
      "npu-run(1)");
  tool.add_examples(
      {"npu-tag model.json | npu-partition | npu-run --random-inputs 0 --verify cpu",
       "npu-run model.part.json --inputs in.safetensors --expect out.safetensors",
       "npu-run plan.json --features x.npy --outputs out.npy --trace trace.json",
       "npu-run model.part.json --random-inputs 0 --bench 20 --threads 2 --trace trace.json",
       "npu-tag --load-ops ./libmyops.so m.json | npu-partition | npu-run --load-ops ./libmyops.so",
       "npu-run --list-ops cpu | grep scatter",
       "npu-compile model.json -o model.npub && npu-run model.npub --random-inputs 0 --bench 50"});
  return tool.run(argc, argv, [&] {
    if (list_ops->count() > 0) {
      return tool.write_text(npu::list_registered_ops(options, list_ops_device)),
             ExitStatus::kSuccess;
    }
    if (!plan_options.features.empty() || plan_options.simulate) {
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
      const npu::GnnRunResult result = npu::run_gnn_plan(plan_options, tool.diagnostics());
      tool.stop_on_errors();
      if (!result.within) tool.complain("the output is out of tolerance");
      const ExitStatus status = tool.check_asserts(as_metrics(result.report));
      tool.write_text(npu::write_document(result.report));
      return result.within ? status : ExitStatus::kAssertFailed;
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
