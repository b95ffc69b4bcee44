// SPDX-License-Identifier: Apache-2.0
// npu-fuse -- put ops that can run as one kernel into groups.
#include "npu/passes/fuse.hpp"
#include "options/validators.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-fuse", "Put ops that can run as one kernel into groups."};
  npu::FuseOptions options;
  std::string pattern_file;
  bool list_patterns = false;
  tool.add_graph_io();
  CLI::App& app = tool.app();
  npu::cli::repeatable(
      app.add_option(
          "-p,--patterns", options.patterns,
          "patterns to apply, comma-separated: names, or default, all or none; -NAME removes one"))
      ->type_name("LIST")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--pattern-file", pattern_file, "JSON file with further patterns, tried first")
      ->type_name("FILE");
  app.add_option("--max-ops", options.max_ops, "most ops in one group")
      ->type_name("N")
      ->capture_default_str()
      ->check(npu::cli::in_range(1, 1'000'000));
  app.add_flag("--list-patterns", list_patterns, "list the built-in patterns and exit");
  tool.add_report("groups by pattern, and launches and memory traffic before and after");
  tool.add_assert("groups, kernels, launches, traffic_bytes, ...; see npu-fuse(1)");
  tool.add_examples({"npu-tag model.json | npu-fuse | npu-partition | npu-run --random-inputs 0",
                     "npu-fuse --report --assert 'kernels<=56' model.json -o model.fused.json",
                     "npu-fuse --patterns default,qkv-merge,-horizontal model.json >fused.json",
                     "npu-fuse --pattern-file mine.json model.json >fused.json"});
  return tool.run(argc, argv, [&] {
    if (list_patterns) {
      return tool.write_text(npu::format_fusion_patterns()), npu::cli::ExitStatus::kSuccess;
    }
    if (!pattern_file.empty()) {
      options.user_patterns = npu::load_fusion_patterns(pattern_file, tool.diagnostics());
      tool.stop_on_errors();
    }
    npu::Graph& graph = tool.input().read_graph();
    npu::fuse_ops(graph, options, tool.diagnostics());
    npu::cli::ExitStatus status = npu::cli::ExitStatus::kSuccess;
    if (tool.wants_report() || tool.has_asserts()) {
      const npu::FusionReport report = npu::fusion_report(graph);
      tool.report(npu::format_fusion_report(report));
      status = tool.check_asserts(npu::fusion_metrics(report));
    }
    tool.write_graph(graph);
    return status;
  });
}
