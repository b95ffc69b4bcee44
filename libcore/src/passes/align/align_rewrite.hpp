// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/passes/align.hpp"
#include "passes/align/align_problem.hpp"

namespace npu::align {

/// Inserts nodes (`conversions` as conversions_of gives them), writes modes and brings
/// npu.partition and npu.fusion up to date. Fills result.conversions, nodes and splits.
void rewrite_graph(Graph& graph, const Problem& problem, const std::vector<AlignMode>& modes,
                   const std::vector<Conversion>& conversions, AlignResult& result);

}  // namespace npu::align
