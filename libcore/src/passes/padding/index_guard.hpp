// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/padding/padded_sizes.hpp"

namespace npu::padding {

/// Whether every element of an index tensor names a valid row of a padded dimension of `size`,
/// counted from the front, by how it is made: sums, products and quotients of numbers of rows and
/// of sizes, constants of the document, or what guard nodes give. O(nodes looked at x samples), a
/// few.
bool is_valid_row(const Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
                  TensorId index, const SizeExpression& size);

}  // namespace npu::padding
