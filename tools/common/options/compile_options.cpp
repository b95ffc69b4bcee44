// SPDX-License-Identifier: Apache-2.0
// The options of npu-compile, in the order of its --help.
#include "options/compile_options.hpp"

#include "device/isa_level.hpp"
#include "options/gnn_run_options.hpp"
#include "options/run_options.hpp"
#include "options/tag_options.hpp"
#include "options/validators.hpp"

namespace npu::cli {
namespace {

void add_model_options(CLI::App& app, std::string& isa, CompileModelOptions& options) {
  app.add_option(
         "--isa", isa,
         "level of instructions to compile for: one that this CPU has; default: its highest")
      ->type_name("LEVEL")
      ->check(one_of({kIsaLevels.begin(), kIsaLevels.end()}));
  app.add_option("--weights", options.weights.file,
                 "file with the weights, safetensors or the model that was imported; default: the "
                 "document's own")
      ->type_name("FILE");
  app.add_option("--random-weights", options.weights.random_seed, "random weights from a seed")
      ->type_name("SEED")
      ->check(seed());
  app.add_option("-j,--jobs", options.compile.jobs,
                 "how many partitions compile at the same time; 0 means all cores")
      ->type_name("N")
      ->check(in_range(0, 1024))
      ->capture_default_str();
  app.add_option("--threads", options.compile.threads,
                 "threads per device that the program is compiled for; 0 means all cores")
      ->type_name("N")
      ->check(in_range(0, 1024))
      ->capture_default_str();
  app.add_flag_callback(
      "--no-fallback", [&options] { options.compile.fallback = false; },
      "fail if a backend refuses a partition, instead of using the next device");
}

}  // namespace

void add_compile_options(Tool& tool, CompileOptions& all) {
  CompileModelOptions& options = all.model;
  CLI::App& app = tool.app();
  tool.input().add_option(app);
  tool.add_output();
  tool.input().add_import_options(app);
  app.add_option("-t,--target", options.where.target,
                 "target of a document that npu-tag has not seen [host]")
      ->type_name("NAME|FILE");
  add_device_options(tool, options.where);
  add_bucket_options(tool, all.buckets);
  add_entry_options(tool, all.entries);
  add_plan_device_option(tool, all.plan_devices);
  tool.add_precision(options.compile.precision,
                     "compute float32 tensors as f32, bf16 or f16 [f32]");
  add_compile_precision(tool, all.precision);
  add_model_options(app, all.isa, options);
  add_custom_op_options(tool, options.load_ops, options.promote);
  all.tuning.add_option(tool);
  tool.add_cache(options.cache);
  tool.add_memory_limit(options.compile.backend_options);
  tool.add_deadline(all.deadline, "exit 3 if the model is not compiled after so many seconds");
  app.add_flag("--info", all.info, "print as JSON what the bundle GRAPH holds, and exit");
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
       "npu-compile --buckets S=32,64,128 bert.onnx -o bert.npub",
       "npu-compile --entry encode=e.json --entry decode=d.json --buckets S=64,512 -o m.npub",
       "npu-compile plan.json -o units && npu-run plan.json --features x.npy --units units",
       "npu-compile --info model.npub"});
}

}  // namespace npu::cli
