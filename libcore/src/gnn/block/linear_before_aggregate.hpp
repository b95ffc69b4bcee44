// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gnn/model/staged_model.hpp"
#include "npu/ir/graph.hpp"

namespace npu::gnn {

/// Moves every linear layer that is the only reader of an aggregation before the gather of that
/// aggregation, where that moves fewer bytes: sums and means of rows commute with a product. True
/// if there was one. Results differ by rounding.
bool linear_before_aggregate(Graph& block, const BlockShape& shape);

}  // namespace npu::gnn
