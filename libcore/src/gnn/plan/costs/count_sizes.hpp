// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "csr/csr_graph.hpp"
#include "gnn/graph/halo.hpp"

namespace npu::gnn {

/// The sizes of all parts, counted by definition: for the check of a plan. O(edges log nodes).
std::map<std::int64_t, SubgraphSize> count_sizes(const CsrGraph& graph,
                                                 const std::vector<std::int32_t>& part_of);

}  // namespace npu::gnn
