// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/cost/cost_model.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Checks a partitioned document without searching for a better plan: that the plan is consistent
/// and the times stated for it are right; for `--strategy mincut` also that it takes no longer than
/// the last device alone, and that the certificate proves the cut and the lower bound. Adds an
/// error for each fault. Returns one line per check; empty if there is an error.
std::string check_certificate(const Graph& graph, const CostModel& cost, Diagnostics& diagnostics);

}  // namespace npu
