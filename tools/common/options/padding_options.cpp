// SPDX-License-Identifier: Apache-2.0
// Padding: the options of npu-align, and what they do.
#include "options/padding_options.hpp"

#include "ir/bind_sizes.hpp"
#include "npu/support/error.hpp"
#include "options/bucket_options.hpp"
#include "passes/padding/pad_graph.hpp"
#include "passes/quantize/quantize.hpp"

namespace npu::cli {
bool PaddingOptions::asked(const Tool& tool) const {
  if (buckets.empty()) return false;
  tool.refuse({"--algorithm", "--weight", "--target", "--quantize", "--verify", "--onnx-qdq",
               "--explain", "--dot", "--assert"},
              "does not go with --bucket");
  return true;
}

void add_padding_options(Tool& tool, PaddingOptions& options) {
  repeatable(tool.app().add_option(
                 "--bucket", options.buckets,
                 "of a template: bind a size to its largest value, and prove that inputs padded up "
                 "to it give what the exact size gives; B=1,S=128 for several; repeatable"))
      ->type_name("NAME=N");
}

ExitStatus pad_template(Tool& tool, const PaddingOptions& options) {
  SizeBindings capacities;
  for (const std::string& text : options.buckets) add_sizes(text, capacities);
  const Template model = tool.input().read_sizes();
  for (const auto& [name, capacity] : capacities) {
    if (model.symbols().find(name) != nullptr) continue;
    throw Error(ErrorCode::kUsage, "--bucket " + name + "=" + std::to_string(capacity) + ": " +
                                       model.file() + " has no size '" + name + "'; it has " +
                                       model.symbols().names());
  }
  // Lives until the body has ended, and it is written.
  static PaddedGraph padded;
  padded = pad_graph(model, capacities, tool.diagnostics());
  tool.stop_on_errors();
  tool.note(format_padding(padded.padding));
  tool.write_graph(padded.graph);
  return ExitStatus::kSuccess;
}

ExitStatus verify_certificates(Tool& tool) {
  const Graph& graph = tool.input().read_graph();
  if (graph.npu_member("padding") == nullptr) {
    tool.write_text(verify_precisions(graph));
    return ExitStatus::kSuccess;
  }
  verify_padding(graph, tool.diagnostics());
  tool.stop_on_errors();
  std::string text = format_padding(*padding::PaddingSection::read(graph, tool.diagnostics()));
  if (graph.npu_member("precision") != nullptr) text += verify_precisions(graph);
  tool.write_text(std::move(text));
  return ExitStatus::kSuccess;
}

}  // namespace npu::cli
