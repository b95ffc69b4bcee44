// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "ir/bind_sizes.hpp"
#include "passes/padding/infer_tails.hpp"

namespace npu::padding {

/// Sizes of tensors that are not the template's, by name.
using AddedSizes = std::map<std::string, SizeShape, std::less<>>;

/// Puts other nodes in the place of those whose results no class of rows makes right: a mean over
/// rows becomes their sum, divided by how many are valid; the last row is read at an index that is
/// computed; attention over padded keys gets a mask, all of which is valid until it is masked.
/// False if there is none. Ids change, names of results stay.
bool rewrite_rows(Graph& graph, const PaddingAnalysis& analysis, const PaddedSizes& sizes,
                  const TensorSizes& shapes, AddedSizes& added);

}  // namespace npu::padding
