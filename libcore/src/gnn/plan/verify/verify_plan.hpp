// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::gnn {

/// How the bound of a layer was checked: "lagrangian" (the multipliers prove it), "search" (another
/// search does), "none" (it does not hold) or "unchecked" (that would take too long).
struct BoundProof {
  std::int32_t layer = 1;
  std::string proof;
};

/// What the check of a plan recomputed, in milliseconds.
struct PlanCheck {
  bool ok = true;
  double makespan_ms = 0;
  double max_load_ms = 0;
  double dual_bound_ms = 0;
  double load_bound_ms = 0;  ///< the plan's own, which was checked
  std::vector<BoundProof> proofs;
};

/// Recomputes a plan from its inputs and adds an error for everything that does not hold.
PlanCheck verify_plan(const std::string& path, Diagnostics& diagnostics);

Json to_json(const PlanCheck& check);

}  // namespace npu::gnn
