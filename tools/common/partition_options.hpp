// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/partition/partition_graph.hpp"
#include "tool.hpp"

namespace npu::cli {

/// --strategy and everything that the strategies and their limits depend on.
void add_partition_options(Tool& tool, PartitionOptions& options);

}  // namespace npu::cli
