// SPDX-License-Identifier: Apache-2.0
// npu-compile -- compile a document to one file that npu-run maps and runs, or a plan to a folder.
#include "compile/kernel_report.hpp"
#include "device/isa_level.hpp"
#include "file_digest.hpp"
#include "gnn/compile_blocks.hpp"
#include "interruptible_compile.hpp"
#include "npu/ir/json_writer.hpp"
#include "options/compile_options.hpp"
#include "options/unit_options.hpp"
#include "tool.hpp"

namespace {

using npu::cli::ExitStatus;
using npu::cli::Tool;

/// --info: describes a bundle.
ExitStatus describe(Tool& tool) {
  const auto bundle = tool.input().read_bundle(true);
  tool.report(npu::format_bundle(*bundle));
  tool.write_text(
      npu::write_document(npu::bundle_info(*bundle, npu::cli::sha256_hex(bundle->bytes()))));
  return ExitStatus::kSuccess;
}

ExitStatus compile_document(Tool& tool, npu::cli::CompileOptions& options) {
  const auto* precision = options.precision.asked(tool) ? &options.precision : nullptr;
  options.model.measure_precision = tool.wants_report();
  options.model.compile.control.blob_folder = tool.output_folder();
  if (precision != nullptr) tool.refuse({"--tune"}, "does not go with --quantize");
  options.tuning.read(options.model);
  if (options.entries.wanted()) {
    return compile_documents(tool, options.entries, options.buckets, options.model, precision,
                             options.tuning, options.deadline);
  }
  if (options.buckets.wanted()) {
    return compile_buckets(tool, options.buckets, options.model, precision, options.tuning,
                           options.deadline);
  }
  npu::Graph& graph = tool.input().read_graph();
  if (precision != nullptr) {
    return compile_int8(tool, graph, *precision, options.model, options.deadline);
  }
  npu::CompileModelResult result = npu::cli::compile_interruptibly(
      graph, options.model, options.deadline, tool.verbosity() < 0, tool.diagnostics());
  tool.stop_on_errors();
  tool.report(npu::format_compile_report(result.report));
  if (tool.verbosity() > 0) tool.report(npu::format_kernel_report(result.model));
  const ExitStatus status = tool.check_asserts(npu::compile_metrics(result.report));
  tool.write_bundle(result.content);
  options.tuning.write(tool, result.content);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  Tool tool{"npu-compile", "Compile a document to one file that npu-run maps and runs."};
  npu::cli::CompileOptions options;
  add_compile_options(tool, options);
  return tool.run(argc, argv, [&] {
    if (options.info) return describe(tool);
    if (!options.isa.empty()) npu::limit_isa_level(options.isa);
    if (!options.entries.wanted() && npu::gnn::is_plan_file(tool.input().path())) {
      tool.refuse({"--tune", "--buckets", "--bucket"}, "is for documents, not for plans");
      return compile_plan(tool, options.model, options.plan_devices);
    }
    tool.refuse({"--device"}, "is for plans of npu-plan");
    return compile_document(tool, options);
  });
}
