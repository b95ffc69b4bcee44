// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "csr/csr_graph.hpp"
#include "gnn/exchange/device_exchange.hpp"
#include "gnn/graph/halo.hpp"

namespace npu::gnn {

/// The covers of all parts that sums make smaller. `is_max`: EdgeSums::is_max. O(edges log edges),
/// and a flow for every part.
std::vector<PartCover> cover_parts(const CsrGraph& in_edges,
                                   const std::vector<std::int32_t>& part_of,
                                   std::int32_t part_count, bool is_max);

/// Sets SubgraphSize::saved of the parts that have a cover.
void set_saved_rows(const std::vector<PartCover>& covers, bool is_max,
                    std::vector<SubgraphSize>& sizes);

}  // namespace npu::gnn
