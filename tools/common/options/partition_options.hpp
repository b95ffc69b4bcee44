// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "npu/partition/partition_graph.hpp"
#include "partition/report/report.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The command line's values before names are looked up.
struct PartitionArguments {
  std::string strategy = "convex";
  PartitionOptions options;
};

/// --strategy and everything that the strategies and their limits depend on.
void add_partition_options(Tool& tool, PartitionArguments& arguments);

/// Throws Error kUsage for a strategy that does not exist.
PartitionOptions parsed(const PartitionArguments& arguments);

/// Throws Error kUsage for options that do not go with --verify.
void refuse_beside_verify(const Tool& tool);

/// --dot and --dot-level.
void add_dot_options(Tool& tool, std::string& file, std::string& level);

/// The level of that name; nothing for the empty text, which means "choose by size".
std::optional<DotLevel> dot_level(std::string_view name);

}  // namespace npu::cli
