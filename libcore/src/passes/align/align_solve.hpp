// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "npu/passes/align.hpp"
#include "passes/align/align_problem.hpp"

namespace npu::align {

/// Units so that producers come first; throws Error kInvalidGraph for a group that is not convex.
std::vector<std::int32_t> unit_order(const Graph& graph, const Problem& problem);

/// The mode of every unit by the forward pass of LayoutAlignToNPU.
std::vector<AlignMode> solve_greedy(const Graph& graph, const Problem& problem);
/// The mode of every unit by a minimum cut; fills the certificate.
std::vector<AlignMode> solve_optimal(const Problem& problem, const AlignOptions& options,
                                     AlignCertificate& certificate);

}  // namespace npu::align
