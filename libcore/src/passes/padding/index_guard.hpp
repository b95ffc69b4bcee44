// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/padding/padded_sizes.hpp"

namespace npu::padding {

/// Whether every element of an index tensor of the sizes `shape` names a valid row of a padded
/// dimension of `size`, counted from the front, by how it is made: numbers of rows, sizes,
/// constants of the document, or what guard nodes give. O(nodes looked at), a few.
bool is_valid_row(const Graph& graph, const PaddedSizes& sizes, TensorId index,
                  const SizeShape& shape, const SizeExpression& size);

}  // namespace npu::padding
