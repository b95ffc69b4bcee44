// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/model/staged_model.hpp"
#include "gnn/plan/document/plan_document.hpp"
#include "gnn/plan/verify/verify_ranks.hpp"

namespace npu::gnn {

/// Counts again what a plan says of its exchange between devices: for each part its edges from
/// others, that the cover covers them, that its edges are a matching and, by another algorithm,
/// that no matching is larger; that the parts without a cover would not become smaller by one; and
/// what crosses in each layer. `host` is the device that the plan's inputs make the host.
void verify_exchange(const GnnPlan& plan, const CsrGraph& in_edges,
                     const std::vector<std::int32_t>& part_of, const StagedModel& model,
                     const std::string& host, const RankComplaint& complain);

}  // namespace npu::gnn
