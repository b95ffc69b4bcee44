// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "gnn/model/staged_model.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// A block whose input `x` is bfloat16, and so are the operands and results of its linear layers
/// and what gathers read of these. All else, sums above all, stays float32. `weights` by state-dict
/// key, as for find_reductions. O(nodes of the block).
Json with_bfloat16_features(const Json& block, const BlockShape& shape,
                            const std::map<std::string, Tensor>& weights, const std::string& file);

/// The same values, rounded to the nearest; threads as for segment_reduce.
Tensor to_bfloat16(const Tensor& values, std::int32_t threads);

}  // namespace npu::gnn
