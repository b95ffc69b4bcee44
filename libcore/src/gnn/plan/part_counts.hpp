// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "gnn/plan/plan_input.hpp"
#include "npu/support/error.hpp"

namespace npu::gnn {

/// The numbers of parts to cut a graph into, ascending: those that were asked for, and 1 unless
/// there are ranks. Those above the number of nodes are left out with a warning, those below the
/// number of ranks without. Throws Error kUsage if none is left by the ranks.
std::vector<std::int32_t> counts_to_try(const MakePlanOptions& options, std::int64_t node_count,
                                        Diagnostics& diagnostics);

}  // namespace npu::gnn
