// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "export/node_export.hpp"

namespace npu::onnx_export {

/// A weight of int8 with a scale for each index of `axis`, and without zero points.
struct ChannelIntegers {
  TensorId integers;
  std::int64_t axis = 0;
  std::vector<double> scales;
};

/// What a weight is if a dequantize node on a constant makes it; `axis` is the one that a scale for
/// the whole tensor is stated for.
std::optional<ChannelIntegers> channel_integers(const NodeExport& node, TensorId weight,
                                                std::int64_t axis);

/// A batch norm as factors and offsets of the channels.
struct ChannelNorm {
  NodeId node;
  std::vector<double> factors;
  std::vector<double> offsets;
};
/// The norm that alone reads the node's result, if all that it reads besides is constant.
std::optional<ChannelNorm> norm_behind(const NodeExport& node);

/// Names of a product's constants in the file; an empty bias is none.
struct ProductConstants {
  std::string weight;
  std::string bias;
};
/// The weight, transposed if asked for, with the norm's factors in its scales, and the bias, in
/// int32 with the scale of the sums if `operand` has one scale and all numbers fit.
ProductConstants integer_product(NodeExport& node, const ChannelIntegers& weight, TensorId operand,
                                 const ChannelNorm* norm, bool transpose);

/// The elements of a constant as int8, uint8 or int32.
Tensor integer_tensor(const Tensor& values, DType dtype);
/// A matrix with rows and columns exchanged.
Tensor transposed_matrix(const Tensor& matrix);

}  // namespace npu::onnx_export
