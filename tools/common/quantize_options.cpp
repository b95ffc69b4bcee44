// SPDX-License-Identifier: Apache-2.0
// The options of npu-align for precisions, and what it does with them.
#include "quantize_options.hpp"

#include "io.hpp"

namespace npu::cli {

void add_precision_options(Tool& tool, PrecisionOptions& options) {
  CLI::App& app = tool.app();
  app.add_option("--quantize", options.mode,
                 "choose precisions instead of layouts: int8 wherever an op can, with the fewest "
                 "conversions; before npu-fuse")
      ->type_name("int8")
      ->check(CLI::IsMember({"int8"}));
  app.add_option("--ranges", options.ranges,
                 "with --quantize: what npu-profile --calibrate wrote; see npu-ranges(5)")
      ->type_name("FILE");
  app.add_option("--calibration", options.calibration,
                 "with --quantize: how ranges are chosen: minmax, average, percentile[=P], entropy "
                 "or mse")
      ->type_name("METHOD")
      ->capture_default_str();
  app.add_flag("--full", options.full,
               "with --quantize: fail, with the ops, if some cannot be int8");
}

bool PrecisionOptions::asked(Tool& tool) const {
  const auto given = [&](const char* option) { return tool.app().count(option) > 0; };
  if (mode.empty()) {
    for (const char* option : {"--ranges", "--calibration", "--full"}) {
      if (given(option)) {
        throw Error(ErrorCode::kUsage, std::string(option) + " goes with --quantize int8");
      }
    }
    return false;
  }
  for (const char* option : {"--algorithm", "--weight", "--dot"}) {
    if (given(option)) {
      throw Error(ErrorCode::kUsage, std::string(option) + " is about layouts, not for --quantize");
    }
  }
  if (ranges.empty()) {
    throw Error(ErrorCode::kUsage,
                "--quantize needs --ranges FILE, which npu-profile --calibrate writes");
  }
  return true;
}

ExitStatus quantize_graph(Tool& tool, const PrecisionOptions& options, const std::string& target,
                          bool explain) {
  QuantizeOptions quantize;
  quantize.calibration = CalibrationMethod::parse(options.calibration);
  quantize.full = options.full;
  quantize.target = target;
  Graph& graph = tool.read_graph();
  const TensorRanges ranges = read_tensor_ranges(options.ranges);
  const QuantizeResult result = quantize_model(graph, ranges, quantize, tool.diagnostics());
  tool.stop_on_errors();
  tool.report(format_quantize_report(result));
  if (explain) write_message(format_quantize_explanation(result));
  const ExitStatus status = tool.check_asserts(quantize_metrics(result));
  tool.write_graph(graph);
  return status;
}

}  // namespace npu::cli
