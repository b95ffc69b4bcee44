// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/ir/graph.hpp"
#include "passes/quantize/precision_mixed.hpp"

namespace npu::quantize {

/// The problem and what proves its solution, for `npu.precision`: ops and tensors by the names that
/// they have in the graph. `mixed` is null if conversions were counted, whose proof is `head`.
Json certificate_json(Json head, const Graph& graph, const PrecisionProblem& problem,
                      const PrecisionCosts& costs, const MixedChoice* mixed);

}  // namespace npu::quantize
