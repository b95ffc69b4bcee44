// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "ops/schema.hpp"

namespace npu::states {

/// A node that takes rows of its first operand by their numbers.
struct RowLookup {
  TensorId index;
  std::size_t dim = 0;  ///< of the first operand
};

/// Nothing for other nodes, or where more than one dimension is indexed. O(1).
std::optional<RowLookup> row_lookup(const BoundNode& node);

}  // namespace npu::states
