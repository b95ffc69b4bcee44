// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// How to cut a unit that is too large so that one piece fits.
struct TilingAdvice {
  bool fits = false;
  std::int64_t row_tiles = 1;      ///< positions of the result
  std::int64_t channel_tiles = 1;  ///< channels of the result
  double bytes = 0;                ///< what one tile needs
};

/// The tiles with the least traffic, without what neighbouring tiles of a convolution share.
TilingAdvice advise_tiling(const Graph& graph, const std::vector<NodeId>& nodes, double limit);

}  // namespace npu
