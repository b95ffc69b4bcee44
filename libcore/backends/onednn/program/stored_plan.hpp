// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <span>

#include "program/plan.hpp"
#include "program/plan_record.hpp"

namespace npu::onednn {

/// What a blob keeps of a plan: its steps (not the prologue), the buffers that they touch, and
/// places for them in one arena. Constants are numbered as in Plan::constants.
struct StoredPlan {
  PlanRecord record;
  std::size_t peak_live_bytes = 0;  ///< that no plan of the arena can do without
};
StoredPlan store_plan(const Plan& plan);

struct ThreadCounts {
  int of_run = 1;  ///< what OpenMP says now
  int most = 1;    ///< of the device
};

/// A plan to run, without a prologue, from a record of any origin; `constants` are those of its
/// blob. Whatever `threads` says of runs, results have the same bits. Throws Error kInvalidGraph
/// for a record that cannot run here.
Plan restore_plan(PlanRecord record, std::span<const PackedConstant> constants,
                  const dnnl::engine& engine, const ThreadCounts& threads);

}  // namespace npu::onednn
