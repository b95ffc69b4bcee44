// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/cost/cost_model.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Checks a partitioned document, without looking for a better plan: that the plan holds together
/// and that its times are those of the plan; for `--strategy mincut` also that it takes no longer
/// than the last device alone, and that the certificate proves the cut and the lower bound. Adds an
/// error for each fault. Returns what was checked, one line each; empty if there is an error.
std::string check_certificate(const Graph& graph, const CostModel& cost, Diagnostics& diagnostics);

}  // namespace npu
