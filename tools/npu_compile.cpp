// SPDX-License-Identifier: Apache-2.0
// npu-compile -- compile a document to one file that npu-run maps and runs, or a plan to a folder.
#include "compile/kernel_report.hpp"
#include "compile_precision.hpp"
#include "device/isa_level.hpp"
#include "file_digest.hpp"
#include "gnn/compile_blocks.hpp"
#include "gnn_run_options.hpp"
#include "interruptible_compile.hpp"
#include "npu/ir/json_writer.hpp"
#include "run_options.hpp"
#include "tag_options.hpp"
#include "tool.hpp"
#include "tuning_file.hpp"
#include "unit_options.hpp"

namespace {

using npu::cli::ExitStatus;

/// --info: describes a bundle.
ExitStatus describe(npu::cli::Tool& tool) {
  const auto bundle = tool.read_bundle(true);
  tool.report(npu::format_bundle(*bundle));
  tool.write_text(
      npu::write_document(npu::bundle_info(*bundle, npu::cli::sha256_hex(bundle->bytes()))));
  return ExitStatus::kSuccess;
}

void add_compile_options(CLI::App& app, std::string& isa, npu::CompileModelOptions& options) {
  app.add_option(
         "--isa", isa,
         "level of instructions to compile for: one that this CPU has; default: its highest")
      ->type_name("LEVEL")
      ->check(npu::cli::one_of({npu::kIsaLevels.begin(), npu::kIsaLevels.end()}));
  app.add_option("--weights", options.weights.file,
                 "safetensors file with the weights; default: npu.weights_file of the document")
      ->type_name("FILE");
  app.add_option("--random-weights", options.weights.random_seed, "random weights from a seed")
      ->type_name("SEED")
      ->check(npu::cli::seed());
  app.add_option("-j,--jobs", options.compile.jobs,
                 "how many partitions compile at the same time; 0 means all cores")
      ->type_name("N")
      ->check(npu::cli::in_range(0, 1024))
      ->capture_default_str();
  app.add_option("--threads", options.compile.threads,
                 "threads per device that the program is compiled for; 0 means all cores")
      ->type_name("N")
      ->check(npu::cli::in_range(0, 1024))
      ->capture_default_str();
  app.add_flag_callback(
      "--no-fallback", [&options] { options.compile.fallback = false; },
      "fail if a backend refuses a partition, instead of using the next device");
}

}  // namespace

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-compile", "Compile a document to one file that npu-run maps and runs."};
  npu::CompileModelOptions options;
  bool info = false;
  std::string isa;
  npu::cli::CompilePrecision precision;
  std::vector<std::string> plan_devices;
  std::optional<double> deadline;
  npu::cli::TuningFile tuning;
  tool.add_graph_input();
  tool.add_output();
  tool.add_import_options();
  CLI::App& app = tool.app();
  app.add_option("-t,--target", options.where.target,
                 "target of a document that npu-tag has not seen [host]")
      ->type_name("NAME|FILE");
  npu::cli::add_device_options(tool, options.where);
  npu::cli::add_plan_device_option(tool, plan_devices);
  tool.add_precision(options.compile.precision,
                     "compute float32 tensors as f32, bf16 or f16 [f32]");
  add_compile_precision(tool, precision);
  add_compile_options(app, isa, options);
  npu::cli::add_custom_op_options(tool, options.load_ops, options.promote);
  tuning.add_option(tool);
  tool.add_cache(options.cache);
  tool.add_memory_limit(options.compile.backend_options);
  tool.add_deadline(deadline, "exit 3 if the model is not compiled after so many seconds");
  app.add_flag("--info", info, "print as JSON what the bundle GRAPH holds, and exit");
  tool.add_report(
      "what each partition was compiled to and, with 16 bits, how far its results are from f32");
  tool.add_assert(
      "partitions, kernels, reorders, refused, cache_hits, compile_ms, ...; with --quantize "
      "snr_db, int8_macs, ...; see npu-compile(1)");
  tool.add_examples(
      {"npu-compile model.json -o model.npub && npu-run model.npub --random-inputs 0",
       "npu-tag model.json | npu-partition | npu-compile -o model.npub --report",
       "npu-compile --precision bf16 --report model.part.json -o model.npub",
       "npu-compile --quantize int8 --calibrate samples.safetensors model.json -o m.npub",
       "npu-compile plan.json -o units && npu-run plan.json --features x.npy --units units",
       "npu-compile --info model.npub"});
  return tool.run(argc, argv, [&] {
    if (info) return describe(tool);
    if (!isa.empty()) npu::limit_isa_level(isa);
    if (npu::gnn::is_plan_file(tool.input())) {
      tool.refuse({"--tune"}, "is for documents, not for plans");
      return compile_plan(tool, options, plan_devices);
    }
    tool.refuse({"--device"}, "is for plans of npu-plan");
    const bool is_quantized = precision.asked(tool);
    options.measure_precision = tool.wants_report();
    options.compile.control.blob_folder = tool.output_folder();
    npu::Graph& graph = tool.read_graph();
    if (is_quantized) tool.refuse({"--tune"}, "does not go with --quantize");
    tuning.read(options);
    if (is_quantized) return compile_int8(tool, graph, precision, options, deadline);
    npu::CompileModelResult result = npu::cli::compile_interruptibly(
        graph, options, deadline, tool.verbosity() < 0, tool.diagnostics());
    tool.stop_on_errors();
    tool.report(npu::format_compile_report(result.report));
    if (tool.verbosity() > 0) tool.report(npu::format_kernel_report(result.model));
    const ExitStatus status = tool.check_asserts(npu::compile_metrics(result.report));
    tool.write_bundle(result.content);
    tuning.write(tool, result.model);
    return status;
  });
}
