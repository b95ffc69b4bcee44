// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "csr/csr_graph.hpp"
#include "gnn/model/staged_model.hpp"
#include "gnn/plan/device_exchange.hpp"
#include "gnn/plan/plan_document.hpp"

namespace npu::gnn {

/// The covers of all parts that sums make smaller. `is_max`: EdgeSums::is_max. O(edges log edges),
/// and a flow for every part.
std::vector<PartCover> cover_parts(const CsrGraph& in_edges,
                                   const std::vector<std::int32_t>& part_of,
                                   std::int32_t part_count, bool is_max);

/// Sets SubgraphSize::saved of the parts that have a cover.
void set_saved_rows(const std::vector<PartCover>& covers, bool is_max,
                    std::vector<SubgraphSize>& sizes);

/// Whether stages first..last of a layer read rows of nodes of other parts.
bool reads_other_parts(const LayerInfo& layer, std::int32_t first, std::int32_t last);

/// By device plan: 1 if a device other than the host reads rows of other parts under it. Empty if
/// the plan has no exchange.
std::vector<char> crossing_device_plans(const Plan& plan, const StagedModel& model);

/// What crosses in every layer of a plan whose sizes, device plans and assignments are there.
std::vector<LayerCrossing> count_crossings(const Plan& plan, const StagedModel& model);

}  // namespace npu::gnn
