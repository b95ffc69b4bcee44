// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/tensor/tensor.hpp"
#include "quant/product_errors.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu {

/// Whether some node multiplies a tensor with a weight of the model.
bool is_read_by_product(const Graph& graph, TensorId id);
/// Whether one of these is a matrix product, whose channels are at the end.
bool is_read_by_matrix_product(const Graph& graph, TensorId id);

/// Fills ranges.products, and the factors of the tensors that they read. `moments` by place in
/// ranges.tensors, empty for tensors that no product reads; `weights` by TensorId. Products whose
/// channels are not those that calibration recorded are left out.
void add_products(const Graph& graph, const std::vector<Tensor>& weights,
                  const std::vector<ChannelMoments>& moments, TensorRanges& ranges);

}  // namespace npu
