// SPDX-License-Identifier: Apache-2.0
// npu-align -- give every op a tensor layout, or a precision, and insert the fewest conversions; or
// pad sizes that vary.
#include "io.hpp"
#include "npu/passes/align.hpp"
#include "options/padding_options.hpp"
#include "options/quantize_options.hpp"
#include "options/validators.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  npu::cli::Tool tool{
      "npu-align",
      "Give every op a tensor layout, or a precision, and insert the fewest conversions."};
  npu::AlignOptions options;
  npu::cli::PrecisionOptions precisions;
  npu::cli::PaddingOptions padding;
  std::string dot;
  bool explain = false;
  tool.add_graph_io();
  CLI::App& app = tool.app();
  app.add_option("-a,--algorithm", options.algorithm,
                 "optimal: the fewest conversions, by a minimum cut; greedy: one forward pass")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option(
         "-w,--weight", options.weight,
         "what to minimise: count (of conversions), bytes (that they write) or time (predicted)")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("-t,--target", options.target,
                 "target whose rules apply to a document without tags; see npu-target(5)")
      ->type_name("NAME|FILE");
  add_precision_options(tool, precisions);
  add_padding_options(tool, padding);
  app.add_flag("--explain", explain,
               "print to stderr every conversion and what forces it; with --quantize, why each op "
               "is int8 or not");
  app.add_option("--dot", dot, "write a Graphviz drawing of modes and conversions")
      ->type_name("FILE")
      ->check(npu::cli::file_beside_stdout());
  tool.add_report("conversions of both algorithms and ops by rule");
  tool.add_assert(
      "conversions, conversion_bytes, conversion_us, padded_bytes, greedy_conversions, ...; with "
      "--quantize int8_ops, float_ops, int8_macs, ...; see npu-align(1)");
  tool.add_examples(
      {"npu-tag model.json | npu-partition | npu-align --explain | npu-run --random-inputs 0",
       "npu-align --assert 'conversions<=2' model.part.json >model.aligned.json",
       "npu-align --algorithm greedy --report model.part.json >model.greedy.json",
       "npu-align --quantize int8 --ranges model.ranges.json --explain model.json >model.q.json",
       "npu-align --quantize mixed --max-error 1e-3 --ranges model.ranges.json model.json >m.json",
       "npu-align --onnx-qdq model.qdq.onnx model.q.json >/dev/null",
       "npu-align --bucket S=128 template.json | npu-align --verify",
       "npu-align --dot model.dot model.json >model.aligned.json && dot -Tsvg model.dot "
       ">model.svg"});
  return tool.run(argc, argv, [&] {
    if (padding.asked(tool)) return pad_template(tool, padding);
    if (precisions.asked(tool)) return quantize_graph(tool, precisions, options.target, explain);
    if (precisions.verify) return verify_certificates(tool);
    if (!precisions.onnx_qdq.empty()) return export_graph_qdq(tool, precisions, options.target);
    npu::Graph& graph = tool.input().read_graph();
    const npu::AlignResult result = npu::align_layout(graph, options, tool.diagnostics());
    tool.stop_on_errors();
    tool.report(npu::format_align_report(result));
    if (explain) npu::cli::write_message(npu::format_align_explanation(result));
    const npu::cli::ExitStatus status = tool.check_asserts(npu::align_metrics(result));
    if (!dot.empty()) npu::cli::write_output(dot, npu::alignment_to_dot(graph, result));
    tool.write_graph(graph);
    return status;
  });
}
