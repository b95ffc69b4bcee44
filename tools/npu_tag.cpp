// SPDX-License-Identifier: Apache-2.0
// npu-tag -- assign every node to the first device of a target that supports it.
#include "frontend/frontend.hpp"
#include "npu/passes/tag.hpp"
#include "npu/target/select_devices.hpp"
#include "npu/target/target.hpp"
#include "tag_options.hpp"
#include "target/custom_ops.hpp"
#include "target/list_ops.hpp"
#include "tool.hpp"

using npu::cli::ExitStatus;

namespace {

ExitStatus tag(npu::cli::Tool& tool, const npu::Target& target, const npu::TagOptions& options,
               const std::string& weights_out) {
  npu::Graph& graph = tool.read_graph();
  npu::tag_ops(graph, target, options, tool.diagnostics());
  tool.stop_on_errors();
  ExitStatus status = ExitStatus::kSuccess;
  if (tool.wants_report() || tool.has_asserts()) {
    const npu::TagReport report = npu::tag_report(graph, target);
    tool.report(npu::format_tag_report(report));
    status = tool.check_asserts(npu::tag_metrics(report));
  }
  if (!weights_out.empty()) npu::write_imported_weights(graph, weights_out, tool.diagnostics());
  tool.write_graph(graph);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-tag",
                      "Assign every node to the first device of a target that supports it."};
  npu::TagOptions options;
  std::vector<std::string> force;
  std::vector<std::string> load_ops;
  npu::DeviceChoice where{.target = "host"};
  std::string list_ops_device;
  std::string frontend;
  std::string weights_out;
  bool list_targets = false;
  bool print_target = false;
  tool.add_graph_io();
  CLI::App& app = tool.app();
  app.add_option("--weights-out", weights_out,
                 "write the weights of a model such as ONNX here, decoded, as safetensors")
      ->type_name("FILE");
  app.add_option("-t,--target", where.target,
                 "built-in target, or a file if it has a '/' or ends in .json")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  npu::cli::add_device_options(tool, where);
  app.add_option(
         "--force", force,
         "put nodes whose op type or name matches GLOB on DEVICE; repeatable, the last match wins")
      ->type_name("DEVICE=GLOB")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--keep-tags", options.keep_tags,
               "keep devices that nodes already have, in dev_info or device");
  app.add_flag("--ask", options.ask,
               "ask the devices' backends which of the nodes they take, and write that down");
  app.add_option("--load-ops", load_ops,
                 "shared library of custom ops (npu/custom_op.hpp), for devices that run every op; "
                 "repeatable")
      ->type_name("LIBRARY")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag_callback(
      "--no-fold", [&options] { options.fold = false; },
      "give nodes that follow from weights alone a device, too, which computes them in every run");
  CLI::Option* list_ops =
      app.add_option("--list-ops", list_ops_device,
                     "list what each device of the target, or DEVICE alone, supports, and exit")
          ->type_name("[DEVICE]")
          ->expected(0, 1);
  app.add_option("--frontend", frontend, "list what this frontend imports")
      ->type_name("NAME")
      ->needs(list_ops);
  app.add_flag("--list-targets", list_targets, "list the built-in targets and exit");
  app.add_flag("--print-target", print_target, "print the target's description and exit");
  tool.add_report("op types and coverage by device");
  tool.add_assert(
      "nodes_<device>, coverage_nodes, coverage_flops, unsupported_ops, ...; see npu-tag(1)");
  tool.add_examples(
      {"npu-tag model.json | npu-partition | npu-run --random-inputs 0",
       "npu-tag --devices npu,cpu --report model.json -o model.tagged.json",
       "npu-tag --force 'cpu=aten.add*' --report model.json -o model.tagged.json",
       "npu-tag --target my_npu.json --assert 'coverage_flops>=0.95' model.json >model.tagged.json",
       "npu-tag --ask --report model.json -o model.tagged.json",
       "npu-tag --list-ops npu | grep conv"});
  return tool.run(argc, argv, [&] {
    if (!frontend.empty())
      return tool.write_text(npu::list_frontend_ops(frontend)), ExitStatus::kSuccess;
    if (list_targets) return tool.write_text(npu::format_targets()), ExitStatus::kSuccess;
    const npu::Target target = npu::with_custom_ops(
        npu::select_devices(npu::load_target(where.target), where.devices, where.excluded),
        load_ops);
    if (print_target) return tool.write_text(npu::format_target(target)), ExitStatus::kSuccess;
    if (list_ops->count() > 0) {
      return tool.write_text(npu::format_target_ops(target, list_ops_device)), ExitStatus::kSuccess;
    }
    for (const std::string& rule : force) options.force.push_back(npu::cli::parse_force_rule(rule));
    return tag(tool, target, options, weights_out);
  });
}
