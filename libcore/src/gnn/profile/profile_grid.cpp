// SPDX-License-Identifier: Apache-2.0
// Sizes to measure at, from the graph that will be planned. METIS makes parts of nearly equal
// numbers of nodes and edges, so their sizes are known without partitioning.
#include "gnn/profile/profile_grid.hpp"

#include <algorithm>
#include <cmath>

namespace npu::gnn {

ProfileGrid grid_for_graph(std::int64_t nodes, std::int64_t edges, std::int32_t most_parts,
                           std::int64_t pad, bool coarse) {
  constexpr std::int64_t kLeastNodes = 16;
  ProfileGrid grid;
  const auto whole = static_cast<double>(nodes);
  const auto smallest =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::llround(whole / (2.0 * most_parts))),
                               std::min(kLeastNodes, nodes), nodes);
  grid.nodes.push_back(smallest);
  // Time is nearly linear in nodes; caches bend it. Points no more than a factor of four apart, or
  // what rounding adds to that: large graphs take long, and another point would add as much.
  constexpr double kRounding = 0.01;
  const double factor = whole / static_cast<double>(smallest);
  const auto steps =
      static_cast<std::int32_t>(std::ceil(std::log(factor) / std::log(4.0) - kRounding));
  for (std::int32_t i = 1; i < steps && !coarse; ++i) {
    grid.nodes.push_back(static_cast<std::int64_t>(std::llround(
        static_cast<double>(smallest) * std::pow(factor, static_cast<double>(i) / steps))));
  }
  // The largest points take longest: where padding adds little, one of them serves both.
  const std::int64_t padded = (nodes + pad - 1) / pad * pad;
  if (static_cast<double>(padded) > 1.1 * whole) grid.nodes.push_back(nodes);
  grid.nodes.push_back(padded);
  std::sort(grid.nodes.begin(), grid.nodes.end());
  grid.nodes.erase(std::unique(grid.nodes.begin(), grid.nodes.end()), grid.nodes.end());
  // Parts differ from the mean by their imbalance; padding moves the ratio in both directions.
  const double mean = static_cast<double>(edges) / whole;
  grid.degrees.push_back(0.5 * mean);
  if (!coarse) grid.degrees.push_back(mean);
  grid.degrees.push_back(1.5 * mean);
  return grid;
}

}  // namespace npu::gnn
