// SPDX-License-Identifier: Apache-2.0
// npu-partition -- group tagged nodes into partitions and plan the transfers between them.
#include "io.hpp"
#include "npu/partition/certificate.hpp"
#include "npu/partition/partition_graph.hpp"
#include "tool.hpp"

namespace {

npu::cli::Metrics as_metrics(const npu::PartitionResult& result) {
  npu::cli::Metrics metrics;
  for (const auto& [key, value] : result.metrics_json.items()) metrics[key] = value.get<double>();
  return metrics;
}

std::string strategy_help() {
  std::string text = "how to group nodes";
  for (const npu::StrategyInfo& strategy : npu::partition_strategies()) {
    text += "; " + std::string(strategy.name) + ": " + std::string(strategy.summary);
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  npu::cli::Tool tool{"npu-partition",
                      "Group tagged nodes into partitions and plan the transfers between them."};
  npu::PartitionOptions options;
  std::string dot;
  bool verify = false;
  tool.add_graph_io();
  tool.app()
      .add_option("-s,--strategy", options.strategy, strategy_help())
      ->type_name("NAME")
      ->capture_default_str();
  tool.app()
      .add_option("--min-nodes", options.min_nodes,
                  "move partitions with fewer nodes to the next device that runs them")
      ->type_name("N")
      ->capture_default_str()
      ->check(npu::cli::in_range(1, 1'000'000'000));
  tool.app()
      .add_option("--depth", options.depth, "levels of blocks within blocks; strategy blocks only")
      ->type_name("N")
      ->capture_default_str()
      ->check(npu::cli::in_range(1, 64));
  tool.app()
      .add_option("--min-flops", options.min_flops,
                  "move partitions with less work to the next device that runs them")
      ->type_name("FLOPS")
      ->capture_default_str()
      ->check(npu::cli::finite_at_least_zero());
  tool.app()
      .add_option("--max-partitions", options.max_partitions,
                  "allow no more partitions than this; what saves least time moves")
      ->type_name("N")
      ->check(npu::cli::in_range(1, 1'000'000'000));
  tool.app()
      .add_option("--memory-limit", options.memory_limit,
                  "cut partitions that need more memory at once")
      ->type_name("BYTES")
      ->check(npu::cli::in_range(1, INT64_MAX));
  tool.app()
      .add_option("-k,--parts", options.parts, "number of parts for --strategy metis")
      ->type_name("K")
      ->capture_default_str()
      ->check(npu::cli::in_range(1, 1'000'000));
  tool.app()
      .add_option("--imbalance", options.imbalance,
                  "how far above the mean a part's work may be, for --strategy metis")
      ->type_name("SHARE")
      ->capture_default_str()
      ->check(npu::cli::finite_at_least_zero());
  tool.app()
      .add_option("--seed", options.seed, "random seed, for --strategy metis")
      ->type_name("N")
      ->capture_default_str()
      ->check(npu::cli::seed());
  tool.app().add_flag("--what-if", options.what_if,
                      "rank what keeps nodes from the first device by what it costs");
  tool.app().add_flag("--verify", verify,
                      "check the plan and the proof in GRAPH, and write what was checked");
  tool.app()
      .add_option("--dot", dot, "write a Graphviz drawing of the partitions")
      ->type_name("FILE")
      ->check(npu::cli::file_beside_stdout());
  tool.add_report("steps, metrics, and operators with the reason for their device");
  tool.add_assert(
      "partitions, transfers, transfer_bytes, copied_bytes, predicted_us, ...; see "
      "npu-partition(1)");
  tool.add_examples({"npu-tag model.json | npu-partition -o model.part.json --report",
                     "npu-tag model.json | npu-partition --assert 'transfers<=4' >model.part.json",
                     "npu-partition --strategy mincut --what-if tagged.json >model.part.json",
                     "npu-partition --verify model.part.json",
                     "npu-partition --dot model.dot tagged.json >model.part.json && dot -Tsvg "
                     "model.dot >model.svg"});
  return tool.run(argc, argv, [&] {
    npu::Graph& graph = tool.read_graph();
    if (verify) {
      std::string checked = npu::check_certificate(graph, npu::roofline_cost(), tool.diagnostics());
      tool.stop_on_errors();
      return tool.write_text(std::move(checked)), npu::cli::ExitStatus::kSuccess;
    }
    options.report = tool.wants_report();
    const npu::PartitionResult result = npu::partition_graph(graph, options, tool.diagnostics());
    tool.report(result.report);
    if (options.what_if && tool.verbosity() >= 0) tool.note(result.what_if);
    const npu::cli::ExitStatus status = tool.check_asserts(as_metrics(result));
    if (!dot.empty()) npu::cli::write_output(dot, npu::plan_to_dot(graph, result.plan));
    tool.write_graph(graph);
    return status;
  });
}
