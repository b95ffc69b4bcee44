// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace npu {

/// One step of computing values per edge, [edges, heads], from values per node.
struct EdgeStep {
  enum class Kind : std::uint8_t {
    kSource,     ///< node[source of the edge]
    kTarget,     ///< node[target of the edge]
    kEdge,       ///< node[edge]
    kAdd,        ///< left + right
    kSubtract,   ///< left - right
    kMultiply,   ///< left * right
    kDivide,     ///< left / right
    kLeakyRelu,  ///< left, or left * first where it is negative
    kClamp,      ///< left, at least first and at most second; NaN stays
    kExp,        ///< e to the left
    kRowSum,     ///< sum of left over the edges of the same target
    kRowMax,     ///< the largest of left over them; NaN is larger than all numbers
  };
  Kind kind = Kind::kSource;
  std::size_t left = 0;  ///< earlier steps
  std::size_t right = 0;
  float first = 0;
  float second = 0;
  const float* node = nullptr;  ///< [nodes, heads], or [edges, heads] for kEdge
};

/// The edges of some rows, which lie together.
struct EdgeRange {
  const std::int64_t* offsets = nullptr;  ///< of the rows: first_row .. last_row
  const std::int32_t* sources = nullptr;  ///< by edge, of all rows; rows of what kSource reads
  std::int64_t first_row = 0;
  std::int64_t last_row = 0;
  std::int64_t heads = 1;
  std::int64_t edges() const { return offsets[last_row] - offsets[first_row]; }
};

/// The result of the last step for the edges of the range, in `values`, which keeps the other
/// steps' results, too, and its memory. O(edges * heads * steps).
const float* edge_values(std::span<const EdgeStep> steps, const EdgeRange& range,
                         std::vector<std::vector<float>>& values);

}  // namespace npu
