// SPDX-License-Identifier: Apache-2.0
// The options of npu-partition for strategies, limits and drawings.
#include "options/partition_options.hpp"

#include "options/validators.hpp"

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

void add_partition_options(Tool& tool, PartitionArguments& arguments) {
  PartitionOptions& options = arguments.options;
  tool.app()
      .add_option("-s,--strategy", arguments.strategy, strategy_help())
      ->type_name("NAME")
      ->capture_default_str();
  tool.app()
      .add_option("--min-nodes", options.min_nodes,
                  "move partitions with fewer nodes to the next device that runs them")
      ->type_name("N")
      ->capture_default_str()
      ->check(in_range(1, 1'000'000'000));
  tool.app()
      .add_option("--depth", options.depth, "levels of nested blocks, for --strategy blocks")
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
                  "most partitions; while there are more, the one that saves the least time moves "
                  "to the next device")
      ->type_name("N")
      ->check(in_range(1, 1'000'000'000));
  tool.app()
      .add_option("--memory-limit", options.memory_limit,
                  "split partitions whose peak memory is above this")
      ->type_name("BYTES")
      ->check(in_range(1, INT64_MAX));
  tool.app()
      .add_option("-k,--parts", options.parts, "number of parts for --strategy metis")
      ->type_name("K")
      ->capture_default_str()
      ->check(in_range(1, 1'000'000));
  tool.app()
      .add_option(
          "--imbalance", options.imbalance,
          "how far a part's work may exceed the mean, as a share of the mean, for --strategy metis")
      ->type_name("SHARE")
      ->capture_default_str()
      ->check(finite_at_least_zero());
  tool.app().add_flag("--best-effort", options.best_effort,
                      "where --imbalance cannot be met, take the most even parts and warn");
  tool.app()
      .add_option("--seed", options.seed, "random seed, for --strategy metis")
      ->type_name("N")
      ->capture_default_str()
      ->check(seed());
  tool.app().add_flag(
      "--what-if", options.what_if,
      "rank the reasons that keep nodes off the first device by the time that they cost");
}

PartitionOptions parsed(const PartitionArguments& arguments) {
  const auto strategy = find_strategy(arguments.strategy);
  if (!strategy) {
    std::string names;
    for (const StrategyInfo& known : partition_strategies()) {
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    }
    throw Error(ErrorCode::kUsage,
                "--strategy " + arguments.strategy + ": expected one of " + names);
  }
  PartitionOptions options = arguments.options;
  options.strategy = *strategy;
  return options;
}

void refuse_beside_verify(const Tool& tool) {
  tool.refuse({"--strategy", "--min-nodes", "--depth", "--min-flops", "--max-partitions",
               "--memory-limit", "--parts", "--imbalance", "--best-effort", "--seed", "--what-if",
               "--dot", "--dot-level", "--report", "--assert"},
              "does not go with --verify");
}

void add_dot_options(Tool& tool, std::string& file, std::string& level) {
  CLI::Option* dot = tool.app()
                         .add_option("--dot", file, "write a Graphviz drawing of the partitions")
                         ->type_name("FILE")
                         ->check(file_beside_stdout());
  tool.app()
      .add_option(
          "--dot-level", level,
          "what a box stands for: node, group or partition [the finest with at most 40 boxes]")
      ->type_name("LEVEL")
      ->check(one_of({"node", "group", "partition"}))
      ->needs(dot);
}

std::optional<DotLevel> dot_level(std::string_view name) {
  if (name == "node") return DotLevel::kNode;
  if (name == "group") return DotLevel::kGroup;
  if (name == "partition") return DotLevel::kPartition;
  return std::nullopt;
}

}  // namespace npu::cli
