// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "passes/align/align_problem.hpp"

namespace npu::align {

/// Where a layout comes from: an op or a boundary, and the rule.
struct Origin {
  std::string name;
  std::string rule;
};
/// For every conversion the nearest op or boundary that fixes the layout before and after it.
std::vector<std::pair<Origin, Origin>> origins_of(const Graph& graph, const Problem& problem,
                                                  const std::vector<AlignMode>& modes,
                                                  const std::vector<Conversion>& conversions);

}  // namespace npu::align
