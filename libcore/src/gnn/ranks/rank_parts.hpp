// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/graph/halo.hpp"
#include "gnn/model/edge_sums.hpp"
#include "gnn/plan/document/plan_document.hpp"

namespace npu::gnn {

/// Throws Error kInvalidGraph unless the parts of a rank, which were laid out from the graph, have
/// as many nodes and edges as the plan says; `file` is the plan's.
void check_rank_parts(const GnnPlan& plan, std::int32_t rank, const std::vector<Subgraph>& parts,
                      const std::string& file);

/// What layers of the model sum over edges. Throws Error kInvalidGraph if sums are to cross between
/// the plan's ranks that the model does not have; `file` is the plan's.
EdgeSums checked_edge_sums(const GnnPlan& plan, const StagedModel& model, const std::string& file);

/// The plan with nothing but the clusters of one rank's parts.
GnnPlan plan_of_rank(const GnnPlan& plan, std::int32_t rank);

}  // namespace npu::gnn
