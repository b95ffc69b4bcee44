// SPDX-License-Identifier: Apache-2.0
// The options of npu-align for precisions, and what it does with them.
#include "options/quantize_options.hpp"

#include "export/export_onnx.hpp"
#include "io.hpp"
#include "options/validators.hpp"

namespace npu::cli {
namespace {

void write_onnx_qdq(Tool& tool, const Graph& graph, const PrecisionOptions& options,
                    const std::string& target) {
  export_onnx(graph,
              {.output = options.onnx_qdq,
               .producer = tool.producer(),
               .target = target,
               .weights = options.weights},
              tool.diagnostics());
  tool.stop_on_errors();
}

}  // namespace

void add_quantize_mode(Tool& tool, std::string& mode, const std::string& what) {
  tool.app()
      .add_option("--quantize", mode, what)
      ->type_name("int8|mixed")
      ->check(CLI::Validator(
          [](std::string& text) {
            return text == "int8" || text == "mixed" ? std::string()
                                                     : "expected int8 or mixed, found " + text;
          },
          ""));
}

void add_quantize_choice(Tool& tool, QuantizeChoice& choice) {
  CLI::App& app = tool.app();
  app.add_option("--max-error", choice.max_error,
                 "with --quantize mixed: what the relative powers of errors may add up to")
      ->type_name("X")
      ->check(finite_at_least_zero());
  app.add_option("--calibration", choice.calibration,
                 "with --quantize: how ranges are chosen: minmax, average, percentile[=P], entropy "
                 "or mse")
      ->type_name("METHOD")
      ->capture_default_str();
  app.add_flag("--full", choice.full,
               "with --quantize: fail, with the ops, if some cannot be int8");
  app.add_flag("--no-smooth", choice.no_smooth,
               "with --quantize: move no differences of channels from activations into weights");
  app.add_flag("--no-bias-correction", choice.no_bias_correction,
               "with --quantize: leave biases as they are, whatever rounded weights do to means");
}

void QuantizeChoice::refuse(const Tool& tool) {
  tool.refuse({"--calibration", "--full", "--max-error", "--no-smooth", "--no-bias-correction"},
              "goes with --quantize");
}

void QuantizeChoice::check(const std::string& mode) const {
  const bool is_mixed = mode == "mixed";
  if (is_mixed != max_error.has_value()) {
    throw Error(ErrorCode::kUsage, "--quantize mixed and --max-error X go together");
  }
  if (is_mixed && full) throw Error(ErrorCode::kUsage, "--full is for --quantize int8");
}

QuantizeOptions QuantizeChoice::options() const {
  QuantizeOptions options;
  options.calibration = CalibrationMethod::parse(calibration);
  options.full = full;
  options.max_error = max_error;
  options.smooth = !no_smooth;
  options.correct_biases = !no_bias_correction;
  return options;
}

void add_precision_options(Tool& tool, PrecisionOptions& options) {
  CLI::App& app = tool.app();
  add_quantize_mode(tool, options.mode,
                    "choose precisions instead of layouts, before npu-fuse: int8 wherever an op "
                    "can, with the fewest conversions, or mixed, for the least time within "
                    "--max-error");
  app.add_option("--profile", options.profile,
                 "with --quantize mixed: times in float, by npu-profile [the target's rates]")
      ->type_name("FILE");
  app.add_flag("--verify", options.verify,
               "check what --quantize or --bucket wrote into a document, and print what it proves");
  app.add_option("--ranges", options.ranges,
                 "with --quantize: what npu-profile --calibrate wrote; see npu-ranges(5)")
      ->type_name("FILE");
  add_quantize_choice(tool, options.choice);
  app.add_option("--onnx-qdq", options.onnx_qdq,
                 "write the quantized model as ONNX, too, with QuantizeLinear and "
                 "DequantizeLinear; without --quantize, of a document that is quantized already")
      ->type_name("FILE")
      ->check(file_beside_stdout());
  app.add_option("--weights", options.weights.file,
                 "with --onnx-qdq: safetensors file with the weights; default: npu.weights_file of "
                 "the document")
      ->type_name("FILE");
  app.add_option("--random-weights", options.weights.random_seed,
                 "with --onnx-qdq: random weights from a seed")
      ->type_name("SEED")
      ->check(seed());
}

bool PrecisionOptions::asked(const Tool& tool) const {
  if (onnx_qdq.empty()) {
    tool.refuse({"--weights", "--random-weights"}, "goes with --onnx-qdq");
  } else if (verify) {
    throw Error(ErrorCode::kUsage, "--verify checks a document, without --onnx-qdq");
  }
  if (mode.empty()) {
    tool.refuse({"--ranges", "--profile"}, "goes with --quantize");
    QuantizeChoice::refuse(tool);
    if (verify) {
      tool.refuse(
          {"--assert", "--report", "--explain", "--dot", "--algorithm", "--weight", "--target"},
          "does not go with --verify");
    }
    return false;
  }
  tool.refuse({"--algorithm", "--weight", "--dot"}, "is about layouts, not for --quantize");
  choice.check(mode);
  if (mode != "mixed" && !profile.empty()) {
    throw Error(ErrorCode::kUsage, "--profile is for --quantize mixed");
  }
  if (verify) throw Error(ErrorCode::kUsage, "--verify checks a document, without --quantize");
  if (ranges.empty()) {
    throw Error(ErrorCode::kUsage,
                "--quantize needs --ranges FILE, which npu-profile --calibrate writes");
  }
  return true;
}

ExitStatus export_graph_qdq(Tool& tool, const PrecisionOptions& options,
                            const std::string& target) {
  tool.refuse(
      {"--assert", "--report", "--explain", "--dot", "--algorithm", "--weight"},
      "does not go with --onnx-qdq alone, which writes a document that is quantized already");
  Graph& graph = tool.input().read_graph();
  write_onnx_qdq(tool, graph, options, target);
  tool.write_graph(graph);
  return ExitStatus::kSuccess;
}

ExitStatus quantize_graph(Tool& tool, const PrecisionOptions& options, const std::string& target,
                          bool explain) {
  QuantizeOptions quantize = options.choice.options();
  quantize.target = target;
  if (!options.profile.empty()) quantize.profile = read_node_table(options.profile);
  Graph& graph = tool.input().read_graph();
  const TensorRanges ranges = read_tensor_ranges(options.ranges);
  const QuantizeResult result = quantize_model(graph, ranges, quantize, tool.diagnostics());
  tool.stop_on_errors();
  tool.report(format_quantize_report(result));
  if (explain) write_message(format_quantize_explanation(result));
  const ExitStatus status = tool.check_asserts(quantize_metrics(result));
  if (!options.onnx_qdq.empty()) write_onnx_qdq(tool, graph, options, target);
  tool.write_graph(graph);
  return status;
}

}  // namespace npu::cli
