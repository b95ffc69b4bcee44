// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/padding/padded_sizes.hpp"

namespace npu::padding {

/// Whether no element of an index tensor can count from the end of a padded dimension of `size`,
/// by how it is made: numbers of rows, sizes, constants of the document, or what guard nodes give.
/// O(nodes looked at), a few.
bool counts_from_front(const Graph& graph, const PaddedSizes& sizes, TensorId index,
                       const SizeExpression& size);

}  // namespace npu::padding
