// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/padding/rewrite_rows.hpp"

namespace npu::padding {

/// Makes an output have its last valid row alone along a dimension that varies, of size 1 then, and
/// computes no more than that row as far up as the rules of the nodes say that a row follows from a
/// row. Nodes whose other readers need all rows stay, and so do all other outputs. False if the
/// output has one row already, or if its own node needs all rows: then nothing is changed. Ids
/// change, names of results stay.
bool sink_last_row(Graph& graph, TensorId output, std::int32_t dim, const PaddingAnalysis& analysis,
                   const PaddedSizes& sizes, const TensorSizes& shapes, AddedSizes& added);

}  // namespace npu::padding
