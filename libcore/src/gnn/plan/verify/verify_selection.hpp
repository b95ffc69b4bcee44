// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "gnn/plan/search/selection.hpp"

namespace npu::gnn {

/// The result of checking a bound: no choice is below it, some choice is, or it took too long.
enum class BoundCheck { kHolds, kFails, kUnknown };

/// Whether every choice has a largest load of at least `bound`. Starts from `multipliers` (see
/// lagrangian_bound) and visits about `budget` candidates. Independent of the search.
BoundCheck check_load_bound(const SelectionProblem& problem, double bound,
                            const std::vector<double>& multipliers,
                            std::int64_t budget = 1'000'000'000);

}  // namespace npu::gnn
