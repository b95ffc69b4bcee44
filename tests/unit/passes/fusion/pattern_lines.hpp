// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/passes/fuse.hpp"

namespace npu::test {

using Lines = std::vector<std::string>;

/// These patterns and no others.
inline FuseOptions just(Lines patterns) {
  patterns.insert(patterns.begin(), "none");
  return {.patterns = patterns};
}

/// Groups that a pattern made.
inline Lines lines_of(const Graph& graph, const FuseOptions& options) {
  Lines lines;
  for (const FusionGroup& group : plan_fusion(graph, options).groups) {
    if (group.pattern == "alias" || group.pattern == "single") continue;
    std::string line = group.pattern + ":";
    for (const NodeId id : group.nodes) line += " " + graph.node(id).name;
    lines.push_back(line);
  }
  return lines;
}

}  // namespace npu::test
