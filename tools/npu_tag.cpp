// SPDX-License-Identifier: Apache-2.0
// npu-tag -- assign every node to the first device of a target that supports it.
#include "frontend/frontend.hpp"
#include "npu/passes/tag.hpp"
#include "npu/target/select_devices.hpp"
#include "npu/target/target.hpp"
#include "options/tag_options.hpp"
#include "passes/states/named_states.hpp"
#include "passes/tag/ask_backends.hpp"
#include "passes/tag/rewrite_ops.hpp"
#include "passes/tag/tag_nodes.hpp"
#include "tag_documents.hpp"
#include "target/custom_ops.hpp"
#include "target/list_ops.hpp"
#include "tool.hpp"

using npu::cli::ExitStatus;

namespace {

ExitStatus tag(npu::cli::Tool& tool, const npu::Target& target, const npu::TagOptions& options,
               const npu::cli::TagArguments& arguments) {
  npu::Graph& graph = tool.input().read_graph();
  if (!arguments.states.empty()) {
    npu::name_states(graph, arguments.state_names(), tool.diagnostics());
    tool.stop_on_errors();
  }
  npu::rewrite_ops(graph, target, options);
  const auto answers = options.ask ? npu::ask_backends(graph, target, options) : nullptr;
  npu::tag_nodes(graph, target, options, answers.get(), tool.diagnostics());
  tool.stop_on_errors();
  ExitStatus status = ExitStatus::kSuccess;
  if (tool.wants_report() || tool.has_asserts()) {
    const npu::TagReport report = npu::tag_report(graph, target);
    tool.report(npu::format_tag_report(report));
    status = tool.check_asserts(npu::tag_metrics(report));
  }
  if (!arguments.weights_out.empty()) {
    npu::write_imported_weights(graph, arguments.weights_out, tool.diagnostics());
  }
  tool.write_graph(graph);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-tag",
                      "Assign every node to the first device of a target that supports it."};
  npu::cli::TagArguments options;
  add_tag_options(tool, options);
  return tool.run(argc, argv, [&] {
    if (!options.frontend.empty()) {
      return tool.write_text(npu::list_frontend_ops(options.frontend)), ExitStatus::kSuccess;
    }
    if (options.list_targets) return tool.write_text(npu::format_targets()), ExitStatus::kSuccess;
    const npu::DeviceChoice& where = options.where;
    const npu::Target target = npu::with_custom_ops(
        npu::select_devices(npu::load_target(where.target), where.devices, where.excluded),
        options.load_ops);
    if (options.print_target) {
      return tool.write_text(npu::format_target(target)), ExitStatus::kSuccess;
    }
    if (tool.app().count("--list-ops") > 0) {
      return tool.write_text(npu::format_target_ops(target, options.listed_device)),
             ExitStatus::kSuccess;
    }
    if (options.as_states) {
      npu::Graph model = npu::cli::document_with_states(tool, options);
      return tool.write_template(model), ExitStatus::kSuccess;
    }
    if (!options.encode_for.empty()) {
      npu::Graph model = npu::cli::document_of_encoder(tool, options);
      return tool.write_template(model), ExitStatus::kSuccess;
    }
    if (options.as_template) {
      npu::Graph& model = tool.input().read_template();
      npu::append_states(model.document(),
                         npu::named_states(model.document(), options.state_names(), model.file,
                                           tool.diagnostics()));
      tool.stop_on_errors();
      return tool.write_template(model), ExitStatus::kSuccess;
    }
    return tag(tool, target, options.tag_options(), options);
  });
}
