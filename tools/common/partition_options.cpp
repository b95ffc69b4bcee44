// SPDX-License-Identifier: Apache-2.0
// What npu-partition plans by.
#include "partition_options.hpp"

namespace npu::cli {
namespace {

std::string strategy_help() {
  std::string text = "how to group nodes";
  for (const StrategyInfo& strategy : partition_strategies()) {
    text += "; " + std::string(strategy.name) + ": " + std::string(strategy.summary);
  }
  return text;
}

}  // namespace

void add_partition_options(Tool& tool, PartitionOptions& options) {
  tool.app()
      .add_option("-s,--strategy", options.strategy, strategy_help())
      ->type_name("NAME")
      ->capture_default_str();
  tool.app()
      .add_option("--min-nodes", options.min_nodes,
                  "move partitions with fewer nodes to the next device that runs them")
      ->type_name("N")
      ->capture_default_str()
      ->check(in_range(1, 1'000'000'000));
  tool.app()
      .add_option("--depth", options.depth, "levels of blocks within blocks; strategy blocks only")
      ->type_name("N")
      ->capture_default_str()
      ->check(in_range(1, 64));
  tool.app()
      .add_option("--min-flops", options.min_flops,
                  "move partitions with less work to the next device that runs them")
      ->type_name("FLOPS")
      ->capture_default_str()
      ->check(finite_at_least_zero());
  tool.app()
      .add_option("--max-partitions", options.max_partitions,
                  "allow no more partitions than this; what saves least time moves")
      ->type_name("N")
      ->check(in_range(1, 1'000'000'000));
  tool.app()
      .add_option("--memory-limit", options.memory_limit,
                  "cut partitions that need more memory at once")
      ->type_name("BYTES")
      ->check(in_range(1, INT64_MAX));
  tool.app()
      .add_option("-k,--parts", options.parts, "number of parts for --strategy metis")
      ->type_name("K")
      ->capture_default_str()
      ->check(in_range(1, 1'000'000));
  tool.app()
      .add_option("--imbalance", options.imbalance,
                  "how far above the mean a part's work may be, for --strategy metis")
      ->type_name("SHARE")
      ->capture_default_str()
      ->check(finite_at_least_zero());
  tool.app()
      .add_option("--seed", options.seed, "random seed, for --strategy metis")
      ->type_name("N")
      ->capture_default_str()
      ->check(seed());
  tool.app().add_flag("--what-if", options.what_if,
                      "rank what keeps nodes from the first device by what it costs");
}

}  // namespace npu::cli
