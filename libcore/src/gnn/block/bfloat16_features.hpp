// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "npu/ir/graph.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// Makes the input `x` of a block bfloat16, and with it the operands and results of its linear
/// layers and what gathers read of these. All else, sums above all, stays float32. `weights` by
/// state-dict key, as for find_reductions. False if there is nothing to change. O(nodes).
bool bfloat16_features(Graph& block, const std::map<std::string, Tensor>& weights);

/// The same values, rounded to the nearest; threads as for segment_reduce.
Tensor to_bfloat16(const Tensor& values, std::int32_t threads);

}  // namespace npu::gnn
