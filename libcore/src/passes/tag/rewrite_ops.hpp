// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "npu/ir/graph.hpp"
#include "npu/passes/tag.hpp"

namespace npu {

struct RewrittenOps {
  bool changed = false;         ///< whether other nodes are folded, or any was decomposed
  std::optional<Graph> before;  ///< the graph as it was, if nodes were exchanged at all
};

/// Makes of a graph what runs on a target: a node whose op a device names in `decompose` becomes
/// nodes that it runs, and with `fold` nodes that follow from weights and constants alone, and that
/// the device would compute in every run or that would cut the graph, are folded (npu-ir(5)). What
/// is folded already is decided again. Ids change if anything does.
RewrittenOps rewrite_ops(Graph& graph, const Target& target, const TagOptions& options);

}  // namespace npu
