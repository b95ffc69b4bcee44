// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Moves the nodes of a partition that its device refuses to devices behind it in the target's
/// list, whose names are added to `to`: all of them to one where one runs all. False, with nothing
/// moved, if some node has nowhere to go. O(nodes x devices).
bool move_refused_nodes(Graph& graph, const Partition& partition, const Target& target,
                        const std::string& reason, std::string& to);

/// An error of a backend with the partition that it was about. What a backend calls invalid has the
/// name of its node already.
Error partition_error(const Error& error, const Graph& graph, const Partition& partition,
                      std::size_t index);

}  // namespace npu
