// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace npu::gnn {

/// Where a table is measured: every number of nodes with every number of edges per node.
struct ProfileGrid {
  std::vector<std::int64_t> nodes;
  std::vector<double> degrees;
};

/// The sizes that parts of a graph have when it is cut into up to `most_parts`, shares of them and
/// paddings included, from a half of the smallest part to the whole graph padded to `pad`. `coarse`
/// leaves out the points between.
ProfileGrid grid_for_graph(std::int64_t nodes, std::int64_t edges, std::int32_t most_parts,
                           std::int64_t pad, bool coarse);

}  // namespace npu::gnn
