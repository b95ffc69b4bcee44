// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "npu/csr/csr_graph.hpp"
#include "npu/gnn/rank_plan.hpp"

namespace npu::gnn {

/// Told of every fault: its place below the plan's `ranks`, and a text.
using RankComplaint = std::function<void(const std::string& pointer, const std::string& text)>;

/// Counts again what a plan says of its ranks, from the graph and its partition: what each owns and
/// holds, and for each pair the edges, that the cover covers them, that its edges are a matching,
/// and, by another algorithm, that no matching is larger.
void verify_ranks(const RankPlan& plan, const CsrGraph& in_edges,
                  const std::vector<std::int32_t>& part_of, const RowWidths& widths,
                  const RankComplaint& complain);

}  // namespace npu::gnn
