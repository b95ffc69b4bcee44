// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "gnn/block/find_reductions.hpp"
#include "rows/row_products.hpp"

namespace npu::gnn {

/// Adds the products of float32 rows with weights that programs would compute besides the own
/// kernels that there are, with the bias, the addition and the relu that alone read them. O(nodes),
/// plus packing weights that are not packed yet.
void add_products(const Graph& graph, const std::map<std::string, Tensor>& weights,
                  PackedWeights& packed, OwnKernels& own);

}  // namespace npu::gnn
