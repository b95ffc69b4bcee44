// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/padding/rewrite_rows.hpp"

namespace npu::padding {

/// Lets products and ops by element work on rows with the dimensions that they have, where a view
/// joins them to one dimension and a later one parts them again: joined, the valid rows of one text
/// would stand behind the padding of the text before. What does not come to such an end stays.
/// False if nothing changes. Ids change, names of tensors that are read by others stay.
bool keep_rows_apart(Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
                     AddedSizes& added);

}  // namespace npu::padding
