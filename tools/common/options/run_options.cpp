// SPDX-License-Identifier: Apache-2.0
// The options of npu-run.
#include "options/run_options.hpp"

#include "named_value.hpp"
#include "options/tag_options.hpp"
#include "options/validators.hpp"

namespace npu::cli {

void add_custom_op_options(Tool& tool, std::vector<std::string>& load_ops, bool& promote) {
  CLI::App& app = tool.app();
  repeatable(app.add_option("--load-ops", load_ops,
                            "shared library of custom ops (npu/custom_op.hpp); repeatable"))
      ->type_name("LIBRARY");
  app.add_flag("--promote", promote,
               "promote operands of different dtypes as PyTorch does, instead of refusing them");
}

namespace {

void add_tap_option(Tool& tool, std::vector<std::string>& globs) {
  repeatable(tool.app().add_option(
                 "--tap", globs,
                 "also output the intermediate results whose names match, with --outputs, "
                 "--expect and --verify; one that no program hands out splits its fusion group; "
                 "repeatable"))
      ->type_name("GLOB")
      ->check(not_empty());
}

/// Where the results begin to differ from those of --verify.
void add_group_options(Tool& tool, CLI::Option* verify, GroupComparisonOptions& options) {
  CLI::App& app = tool.app();
  CLI::Option* each =
      app.add_flag("--each", options.each,
                   "with --verify: compare every result at the borders of fusion groups, and say "
                   "whether a group inherited its error or made it")
          ->needs(verify);
  CLI::Option* isolate =
      app.add_flag("--isolate", options.isolate,
                   "with --verify: run every fusion group alone, on the values of DEVICE")
          ->needs(verify);
  app.add_flag("--bisect", options.bisect,
               "with --verify: find the first fusion group that differs, in few runs and little "
               "memory")
      ->needs(verify)
      ->excludes(each)
      ->excludes(isolate);
  app.add_option("--reduce", options.reduce,
                 "with --verify: write the smallest part of the first group that differs, with its "
                 "weights, inputs and expected outputs beside it")
      ->type_name("FILE")
      ->check(file_beside_stdout())
      ->needs(verify);
}

void add_state_options(CLI::App& app, RunModelOptions& options) {
  app.add_option("--steps", options.steps,
                 "make N steps of a model that has states; an input may have one more dimension "
                 "for them, in front, as outputs have")
      ->type_name("N")
      ->check(in_range(1, 10'000'000));
  app.add_option("--state-in", options.state_in,
                 "begin with the states of a file that --state-out has written [zeros]")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("--state-out", options.state_out,
                 "write the states after the last step, or the last request: safetensors")
      ->type_name("FILE")
      ->check(file_beside_stdout());
}

}  // namespace

void add_run_options(Tool& tool, RunModelOptions& options, PlanRunOptions& plan_options) {
  CLI::App& app = tool.app();
  app.add_option("--weights", options.weights.file,
                 "file with the weights, safetensors or the model that was imported; default: the "
                 "document's own")
      ->type_name("FILE");
  app.add_option("--random-weights", options.weights.random_seed, "random weights from a seed")
      ->type_name("SEED")
      ->check(seed());
  repeatable(
      app.add_option_function<std::vector<std::string>>(
          "--inputs",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) options.inputs.push_back(parse_input_file(text));
          },
          "safetensors file, NAME=FILE.npy or NAME=FILE.pb (ONNX), or without NAME for a single "
          "input or a .pb file that names it; repeatable"))
      ->type_name("FILE");
  app.add_option("--random-inputs", options.random_inputs,
                 "random values from a seed for inputs that are not given")
      ->type_name("SEED")
      ->check(seed());
  app.add_option("--outputs", options.outputs,
                 "write the outputs: safetensors, or .npy or .pb for a single one")
      ->type_name("FILE")
      ->check(file_beside_stdout());
  repeatable(
      app.add_option_function<std::vector<std::string>>(
          "--expect",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) options.expect.push_back(parse_input_file(text));
          },
          "compare the outputs with a safetensors file, or with [NAME=]FILE.pb, repeatable; exit 4 "
          "if they differ"))
      ->type_name("FILE");
  add_state_options(app, options);
  CLI::Option* verify =
      app.add_option("--verify", options.verify_device,
                     "also run the whole graph on DEVICE and compare; exit 4 if the outputs differ")
          ->type_name("DEVICE")
          ->check(not_empty());
  add_group_options(tool, verify, options.groups);
  add_tap_option(tool, options.taps);
  app.add_option("--rtol", options.rtol, "relative tolerance [1e-3; 2e-2 for 16-bit floats]")
      ->type_name("X")
      ->check(finite_at_least_zero());
  app.add_option("--atol", options.atol, "absolute tolerance [1e-4; 2e-2 for 16-bit floats]")
      ->type_name("X")
      ->check(finite_at_least_zero());
  app.add_option("--bench", options.bench, "run N more times and report the distribution")
      ->type_name("N")
      ->check(in_range(1, 1'000'000));
  app.add_option("--threads", options.executor.threads, "threads per device; 0 means all cores")
      ->type_name("N")
      ->check(in_range(0, 1024))
      ->capture_default_str();
  app.add_option("--target", options.where.target,
                 "target of a document that npu-tag has not seen [host]")
      ->type_name("NAME|FILE");
  add_device_options(tool, options.where);
  app.add_option("--trace", options.trace, "write the last run as Chrome trace JSON")
      ->type_name("FILE")
      ->check(file_beside_stdout());
  add_plan_run_options(tool, plan_options);
  add_custom_op_options(tool, options.load_ops, options.promote);
  CLI::Option* one_by_one = app.add_flag_callback(
      "--no-overlap", [&options] { options.executor.overlap = false; },
      "run steps one after another, even those that could run at the same time");
  app.add_option("--in-flight", options.executor.in_flight,
                 "keep N runs going at once, on devices that have queues")
      ->type_name("N")
      ->check(in_range(1, 64))
      ->capture_default_str()
      ->excludes(one_by_one);
  tool.add_precision(options.precision, "compute float32 tensors as f32, bf16 or f16 [f32]");
  tool.add_cache(options.cache);
  tool.add_memory_limit(options.executor.backend_options);
}

bool complain_of_mismatches(Tool& tool, const RunModelOptions& options, const RunReport& report) {
  bool within = true;
  const auto look = [&](const std::optional<ComparisonReport>& comparison,
                        const std::string& against) {
    if (!comparison) return;
    for (const OutputComparison& output : comparison->outputs) {
      if (output.comparison.ok) continue;
      tool.complain(against + ": " + mismatch_text(output));
      within = false;
    }
  };
  look(report.expect,
       "--expect " + (options.expect.empty() ? std::string() : options.expect.back().path));
  look(report.verify, "--verify " + options.verify_device);
  if (report.groups && report.groups->first) {
    tool.complain("--verify " + options.verify_device + ": " + first_fault_text(*report.groups));
    within = false;
  }
  return within;
}

void add_run_examples(Tool& tool) {
  tool.add_examples(
      {"npu-run model.json --random-inputs 0 --verify cpu",
       "npu-run model.json --random-inputs 0 --verify cpu --each --report",
       "npu-run --devices cpu model.json --random-inputs 0 --outputs reference.safetensors",
       "npu-run model.part.json --inputs in.safetensors --expect out.safetensors",
       "npu-run plan.json --features x.npy --outputs out.npy --trace trace.json",
       "npu-run model.part.json --random-inputs 0 --bench 20 --threads 2 --trace trace.json",
       "npu-tag --load-ops ./libmyops.so m.json | npu-partition | npu-run --load-ops ./libmyops.so",
       "npu-run llm.npub --generate 64 --tokens prompts.ids --temperature 0.7 --top-p 0.9 --seed 7",
       "encode <chat.txt | npu-run llm.npub --generate 256 --tokens - --tokens-out - | decode",
       "npu-run --list-ops cpu | grep scatter",
       "npu-compile model.json -o model.npub && npu-run model.npub --random-inputs 0 --bench 50"});
}

}  // namespace npu::cli
