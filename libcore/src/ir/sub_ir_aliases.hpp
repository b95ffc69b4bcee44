// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// A pair of a sub-IR's "aliases" (npu/backend.h): an output that may be the buffer of an input.
struct AliasPair {
  std::size_t input = 0;   ///< place among the graph's inputs
  std::size_t output = 0;  ///< and among its outputs
};

/// Those of a sub-IR. Throws Error kInvalidGraph if one is no pair of its inputs and outputs, if
/// the two differ in dtype or shape, or if a tensor is in two of them. O(aliases x tensors).
std::vector<AliasPair> read_aliases(const Graph& sub_ir);

}  // namespace npu
