// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/support/json.hpp"
#include "partition/placement/placement_solver.hpp"

namespace npu {

/// What mincut keeps for the certificate until the plan is final.
struct PlacementProof {
  PlacementProblem problem;
  Placement placement;
};

/// `npu.partition.certificate` of npu-ir(5).
Json certificate_to_json(const Graph& graph, const PlacementProblem& problem,
                         const Placement& placement);

}  // namespace npu
