// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "csr/metis_partitioner.hpp"
#include "csr/multilevel/refine_parts.hpp"

namespace npu {

/// What the options' goals of balance allow parts to weigh; at least the mean, rounded up.
PartLimits part_limits(const CsrGraph& graph, const MetisOptions& options);

/// Moves nodes until every part keeps the limits, or until nothing helps: those first that relieve
/// their part most for the edges that this cuts, each to where most of its edges are among the
/// parts that have room; then refine_parts. The same on any number of threads. Returns how many
/// rounds it took after a first refine_parts.
int balance_parts(const CsrGraph& graph, const PartLimits& limits,
                  std::vector<std::int32_t>& part_of, std::size_t threads);

}  // namespace npu
