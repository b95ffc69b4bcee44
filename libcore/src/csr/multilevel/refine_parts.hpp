// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "csr/csr_graph.hpp"

namespace npu {

/// What parts may weigh.
struct PartLimits {
  std::int32_t part_count = 2;
  std::vector<std::int64_t> most;  ///< of a part, for each node weight
};

/// Moves nodes between parts: first out of parts that are too heavy, where others have room, then
/// to where their edges are, as long as that makes the cut smaller or loads more even. No part gets
/// above the limits by it, and none is emptied. The same on any number of threads.
void refine_parts(const CsrGraph& graph, const PartLimits& limits,
                  std::vector<std::int32_t>& part_of, std::size_t threads);

}  // namespace npu
