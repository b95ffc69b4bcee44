// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
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

/// TensorRange::factors of what a product reads, and their gain; no factors: it is not smoothed.
struct ChannelFactors {
  std::vector<float> factors;
  double gain = 1;
};
/// By the weight of the product.
using WeightFactors = std::map<std::string, ChannelFactors>;

/// Fills ranges.products, and the factors of the tensors that they read: those of `known` for one
/// of the weights that multiply the tensor, or the best ones. `moments` by place in ranges.tensors,
/// empty for tensors that no product reads; `weights` by TensorId. Products whose channels are not
/// those that calibration recorded are left out.
void add_products(const Graph& graph, const std::vector<Tensor>& weights,
                  const std::vector<ChannelMoments>& moments, const WeightFactors& known,
                  TensorRanges& ranges);

/// Those of a graph, whose products were added.
WeightFactors weight_factors(const Graph& graph, const TensorRanges& ranges);

}  // namespace npu
