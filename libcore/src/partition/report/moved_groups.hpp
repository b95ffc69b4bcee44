// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Says how many groups of several nodes are on another device than npu.fusion says they were made
/// for, whose list of patterns lacks theirs, and what to do about it; empty if there are none.
/// Patterns that are not built in, and devices without a list, are passed over.
std::string moved_groups_note(const Graph& graph, const Target& target);

}  // namespace npu
