// SPDX-License-Identifier: Apache-2.0
// The options of npu-compile for precisions, and what it does with them.
#include "options/compile_precision.hpp"

#include "compile/kernel_report.hpp"
#include "interruptible_compile.hpp"
#include "named_value.hpp"
#include "options/validators.hpp"

namespace npu::cli {

void add_compile_precision(Tool& tool, CompilePrecision& options) {
  CLI::App& app = tool.app();
  add_quantize_mode(tool, options.mode,
                    "calibrate and quantize first: int8 wherever an op can, with the fewest "
                    "conversions, or mixed, for the least time within --max-error");
  repeatable(app.add_option_function<std::vector<std::string>>(
                 "--calibrate",
                 [&options](const std::vector<std::string>& texts) {
                   for (const std::string& text : texts)
                     options.samples.push_back(parse_input_file(text));
                 },
                 "with --quantize: samples to run the model on, safetensors, NAME=FILE.npy or "
                 "NAME=FILE.pb; with --entry, ENTRY=FILE and ENTRY:NAME=FILE are for one document; "
                 "repeatable"))
      ->type_name("FILE");
  add_quantize_choice(tool, options.choice);
}

bool CompilePrecision::asked(const Tool& tool) const {
  if (mode.empty()) {
    tool.refuse({"--calibrate"}, "goes with --quantize");
    QuantizeChoice::refuse(tool);
    return false;
  }
  choice.check(mode);
  if (samples.empty()) {
    throw Error(ErrorCode::kUsage, "--quantize needs samples: give --calibrate FILE");
  }
  tool.refuse({"--load-ops", "--promote"},
              "does not go with --quantize, since calibration runs no such ops");
  return true;
}

CompileQuantizedOptions CompilePrecision::options(const CompileModelOptions& model) const {
  return {.model = model, .precision = choice.options(), .samples = samples};
}

ExitStatus compile_int8(Tool& tool, Graph& graph, const CompilePrecision& options,
                        const CompileModelOptions& model, std::optional<double> deadline) {
  CompileQuantizedResult result;
  compile_interruptibly(
      model, deadline, tool.verbosity() < 0, [&](const CompileModelOptions& watched) {
        result = compile_quantized(graph, options.options(watched), tool.diagnostics());
      });
  tool.stop_on_errors();
  if (tool.verbosity() >= 0) tool.complain(quantized_summary(result));
  tool.report(format_quantize_report(result.precision));
  tool.report(format_compile_report(result.model.report));
  if (tool.verbosity() > 0) tool.report(format_kernel_report(result.model.model));
  const ExitStatus status = tool.check_asserts(compile_quantized_metrics(result));
  tool.write_bundle(result.model.content);
  return status;
}

}  // namespace npu::cli
