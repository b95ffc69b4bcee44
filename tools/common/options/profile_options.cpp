// SPDX-License-Identifier: Apache-2.0
// The options of npu-profile for staged and ordinary models.
#include "options/profile_options.hpp"

#include "named_value.hpp"
#include "options/key_value.hpp"
#include "options/part_counts.hpp"
#include "options/validators.hpp"

namespace npu::cli {
namespace {

/// For which sizes a staged model is measured.
void add_sizes(CLI::App& app, gnn::ProfileStagesOptions& options) {
  repeatable(
      app.add_option("--nodes", options.nodes, "staged model: numbers of nodes to measure at"))
      ->type_name("N,...")
      ->delimiter(',')
      ->check(in_range(1, 1'000'000'000))
      ->capture_default_str();
  repeatable(
      app.add_option("--degrees", options.degrees, "staged model: edges per node to measure at"))
      ->type_name("X,...")
      ->delimiter(',')
      ->check(finite_at_least_zero())
      ->capture_default_str();
  app.add_option("--graph", options.graph,
                 "staged model: measure at the sizes that parts of this graph have")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "-k,--parts",
         [&options](const std::string& text) { parse_part_counts(text, options.part_counts); },
         "numbers of parts that npu-plan will try, with --graph [1..16]")
      ->type_name("LIST")
      ->check(CLI::Validator(
          [&options](std::string& text) { return parse_part_counts(text, options.part_counts); },
          ""));
  app.add_flag("--undirected", options.undirected, "add missing reverse edges, with --graph");
}

/// What concerns numbers rather than times, and both in int8.
void add_calibration(CLI::App& app, ProfileOptions& all) {
  repeatable(app.add_option_function<std::vector<std::string>>(
                 "--calibrate",
                 [&all](const std::vector<std::string>& texts) {
                   for (const std::string& text : texts) {
                     all.calibrate.samples.push_back(parse_input_file(text));
                   }
                 },
                 "ordinary model: run it on the samples in FILE, safetensors, NAME=FILE.npy or "
                 "NAME=FILE.pb, and write the ranges of its tensors instead of times; repeatable"))
      ->type_name("FILE");
  app.add_option("--error-samples", all.calibrate.error_samples,
                 "with --calibrate: samples on which the model runs with one op at a time in int8; "
                 "0: none")
      ->type_name("N")
      ->check(in_range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--ranges", all.ranges,
                 "ordinary model: measure it in int8, too, with the ranges of --calibrate in FILE, "
                 "for npu-align --quantize mixed")
      ->type_name("FILE");
}

}  // namespace

void add_profile_options(Tool& tool, ProfileOptions& all) {
  gnn::ProfileStagesOptions& options = all.staged;
  CLI::App& app = tool.app();
  app.add_option("MODEL", options.model,
                 "model as a document, or staged model of a graph neural network (npu-gnn(5))");
  tool.add_output();
  app.add_option("--weights", options.weights, "safetensors file [the one that the model names]")
      ->type_name("FILE");
  app.add_option("--random-weights", all.ordinary.weights.random_seed,
                 "ordinary model: random weights from a seed")
      ->type_name("SEED")
      ->check(seed());
  app.add_option("--target", options.target, "target whose devices are measured")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  repeatable(
      app.add_option(
          "--devices", all.devices,
          "staged model: devices of the target, or NAME=BACKEND for one that it lacks [all]"))
      ->type_name("NAME,...")
      ->delimiter(',');
  add_sizes(app, options);
  app.add_option("--runs", options.runs,
                 "timed runs of each point [7], or of each placement of an ordinary model [20]")
      ->type_name("N")
      ->check(in_range(1, 100'000));
  app.add_option("--threads", options.threads, "threads per device; 0 means all cores")
      ->type_name("N")
      ->check(in_range(0, 1024))
      ->capture_default_str();
  app.add_option("--max-bytes", options.max_bytes,
                 "staged model: skip points whose tensors take more")
      ->type_name("BYTES")
      ->check(in_range(1, INT64_MAX))
      ->capture_default_str();
  tool.add_precision(all.ordinary.precision,
                     "compute float32 tensors as f32, bf16 or f16, a staged model its features as "
                     "f32 or bf16 [f32]");
  app.add_flag("--quick", all.quick,
               "measure less: a coarse grid and 3 runs; ordinary model: 6 runs of each placement "
               "and one refinement");
  app.add_option("--import", all.import,
                 "convert a table of published form (npu-gnn(5)) instead of measuring")
      ->type_name("FILE");
  app.add_option("--bandwidths", all.bandwidths, "link rates of published form, with --import")
      ->type_name("FILE");
  app.add_flag(
      "--machine", all.of_machine,
      "measure the rates of this machine, in 5 s, instead of a model, and write them as a target");
  app.add_option("--backend", all.vendor.backend,
                 "with --machine: write a target for this backend, by its fact sheets, its answers "
                 "about nodes and measured copies and launches")
      ->type_name("NAME");
  app.add_option("--links", all.links,
                 "measure the links between the processes that mpirun has started, instead of a "
                 "model, and write them to FILE, for npu-plan --links")
      ->type_name("FILE")
      ->check(file_beside_stdout());
  add_calibration(app, all);
  tool.add_report("times, links, and how well they predict; with --calibrate, ranges");
  tool.add_examples({"npu-profile --machine --report -o host.json",
                     "npu-profile --machine --backend skeleton --report -o target.json",
                     "npu-profile model.json --random-weights 0 --report -o table.json",
                     "npu-profile model.json --calibrate samples.safetensors -o model.ranges.json",
                     "npu-profile model.json --ranges model.ranges.json -o table.json",
                     "npu-profile sage.json -o table.json",
                     "npu-profile sage.json --graph graph.mtx -k 8..16 -o table.json",
                     "npu-profile sage.json --quick --devices cpu,npu --report -o table.json",
                     "npu-profile --import lookup_table.json -o table.json",
                     "mpirun -n 4 npu-profile --links links.json"});
}

bool ProfileOptions::measures_links(Tool& tool) const {
  if (links.empty()) return false;
  if (!staged.model.empty()) {
    throw Error(ErrorCode::kUsage,
                "--links measures no model; leave out '" + staged.model + "' or --links");
  }
  tool.refuse({"--output", "--weights", "--random-weights", "--target", "--devices", "--nodes",
               "--degrees", "--runs", "--threads", "--max-bytes", "--precision", "--quick",
               "--machine", "--backend", "--bandwidths", "--graph", "--calibrate", "--ranges"},
              "does not go with --links, which measures no model");
  return true;
}

bool ProfileOptions::measures_backend(Tool& tool) {
  if (vendor.backend.empty()) return false;
  if (!of_machine) {
    throw Error(ErrorCode::kUsage,
                "--backend says whose devices a target is written for: give it with --machine");
  }
  tool.refuse({"--target"}, "says what --backend finds out; leave one of them out");
  measures_machine(tool);
  vendor.threads = staged.threads;
  return true;
}

bool ProfileOptions::measures_machine(Tool& tool) {
  if (!of_machine) {
    if (staged.model.empty()) {
      throw Error(ErrorCode::kUsage, "expected a MODEL, or --machine");
    }
    return false;
  }
  if (!staged.model.empty()) {
    throw Error(ErrorCode::kUsage,
                "--machine measures no model; leave out '" + staged.model + "' or --machine");
  }
  tool.refuse({"--weights", "--random-weights", "--devices", "--nodes", "--degrees", "--runs",
               "--precision", "--quick", "--bandwidths", "--graph", "--calibrate", "--ranges"},
              "is for models, not for --machine");
  machine.target = staged.target;
  machine.threads = staged.threads;
  return true;
}

void ProfileOptions::finish(Tool& tool) {
  const auto given = [&](const char* option) { return tool.app().count(option) > 0; };
  if (given("--graph") && (given("--nodes") || given("--degrees"))) {
    throw Error(ErrorCode::kUsage, "--graph says the sizes: leave --nodes and --degrees out");
  }
  if (!given("--graph") && (given("--parts") || given("--undirected"))) {
    throw Error(ErrorCode::kUsage, "--parts and --undirected are about a graph: give --graph FILE");
  }
  if (calibrates()) {
    tool.refuse({"--runs", "--precision", "--quick", "--nodes", "--degrees", "--graph", "--devices",
                 "--max-bytes", "--ranges"},
                "is about times, --calibrate measures none");
  }
  if (!calibrates() && given("--error-samples")) {
    throw Error(ErrorCode::kUsage, "--error-samples goes with --calibrate");
  }
  if (!ranges.empty()) ordinary.ranges = read_tensor_ranges(ranges);
  ordinary.weights.file = staged.weights;
  calibrate.weights = ordinary.weights;
  calibrate.threads = staged.threads;
  if (given("--target")) calibrate.target = staged.target;
  ordinary.threads = staged.threads;
  staged.precision = ordinary.precision;
  if (ordinary.precision.empty()) ordinary.precision = "f32";
  if (tool.app().count("--target") > 0) ordinary.target = staged.target;
  if (tool.app().count("--runs") > 0) ordinary.runs = staged.runs;
  for (const std::string& text : devices) {
    if (text.find('=') == std::string::npos) {
      staged.devices.push_back({text, {}});
      continue;
    }
    const auto [name, backend] = split_key_value(text, "--devices", "NAME or NAME=BACKEND");
    staged.devices.push_back({name, backend});
  }
  if (!quick) return;
  if (!given("--nodes")) staged.nodes = {1000, 10000};
  if (!given("--degrees")) staged.degrees = {5, 20};
  staged.coarse = true;
  staged.revisits = 1;
  if (!given("--runs")) {
    staged.runs = 3;
    ordinary.runs = 6;
  }
  ordinary.refinements = 1;
}

}  // namespace npu::cli
