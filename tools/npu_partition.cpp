// SPDX-License-Identifier: Apache-2.0
// npu-partition -- group tagged nodes into partitions and plan the transfers between them.
#include "io.hpp"
#include "npu/partition/partition_graph.hpp"
#include "options/partition_options.hpp"
#include "options/validators.hpp"
#include "partition/placement/certificate.hpp"
#include "partition/report/report.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-partition",
                      "Group tagged nodes into partitions and plan the transfers between them."};
  npu::cli::PartitionArguments arguments;
  std::string dot;
  std::string level_name;
  std::string profile;
  bool verify = false;
  tool.add_graph_io();
  npu::cli::add_partition_options(tool, arguments);
  tool.app().add_flag("--verify", verify,
                      "check the plan and the proof in GRAPH, and write what was checked");
  npu::cli::add_dot_options(tool, dot, level_name);
  tool.app()
      .add_option("--profile", profile, "use times that npu-profile measured for this model")
      ->type_name("FILE")
      ->check(npu::cli::not_empty());
  tool.add_report("steps, metrics, and why each operator is on its device");
  tool.add_assert(
      "partitions, transfers, transfer_bytes, copied_bytes, predicted_us, ...; see "
      "npu-partition(1)");
  tool.add_examples({"npu-tag model.json | npu-partition -o model.part.json --report",
                     "npu-tag model.json | npu-partition --assert 'transfers<=4' >model.part.json",
                     "npu-partition --strategy mincut --what-if tagged.json >model.part.json",
                     "npu-partition --verify model.part.json",
                     "npu-profile model.json -o table.json && npu-tag model.json | npu-partition "
                     "--strategy mincut --profile table.json -o model.part.json",
                     "npu-partition --dot model.dot tagged.json >model.part.json && dot -Tsvg "
                     "model.dot >model.svg",
                     "npu-partition --dot model.dot --dot-level partition tagged.json "
                     ">model.part.json"});
  return tool.run(argc, argv, [&] {
    if (verify) npu::cli::refuse_beside_verify(tool);
    npu::Graph& graph = tool.input().read_graph();
    const auto cost = npu::partition_cost(graph, profile);
    if (verify) {
      std::string checked = npu::check_certificate(graph, *cost, tool.diagnostics());
      tool.stop_on_errors();
      return tool.write_text(std::move(checked)), npu::cli::ExitStatus::kSuccess;
    }
    npu::PartitionOptions options = npu::cli::parsed(arguments);
    options.cost = cost.get();
    const npu::PartitionResult result = npu::partition_graph(graph, options, tool.diagnostics());
    if (tool.wants_report()) tool.report(npu::format_partition_report(graph, result));
    if (options.what_if && tool.verbosity() >= 0) tool.note(npu::format_what_if(result));
    const npu::cli::ExitStatus status = tool.check_asserts(npu::partition_metrics(result));
    if (!dot.empty()) {
      npu::cli::write_output(
          dot,
          npu::plan_to_dot(
              graph, result.plan,
              npu::cli::dot_level(level_name).value_or(npu::readable_dot_level(graph, result.plan)),
              result.times));
    }
    tool.write_graph(graph);
    return status;
  });
}
