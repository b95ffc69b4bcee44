// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/cost/cost_model.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Checks a document that `--strategy mincut` has partitioned, without looking for a better plan:
/// that the plan holds together, that its times are those of the plan, that no time is above that
/// of the last device alone, and that the certificate proves the cut and the lower bound. Adds an
/// error for each fault. Returns what was checked, one line each.
std::string check_certificate(const Graph& graph, const CostModel& cost, Diagnostics& diagnostics);

}  // namespace npu
