// SPDX-License-Identifier: Apache-2.0
// What several fusion patterns ask about a node.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/fusion/fusion_builder.hpp"

namespace npu::fusion {

/// Kernels take channels in blocks of so many.
inline constexpr std::int64_t kChannelBlock = 16;

/// float32, and float16, which is float32 inside of a backend with kernels of its own.
constexpr bool is_single(DType dtype) noexcept {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16;
}

bool is_weight(const FusionBuilder& builder, TensorId id);
/// Whether all operands but the first are weights.
bool has_known_operands(const FusionBuilder& builder, const Node& node);
/// Multiplication or division by a number.
bool is_factor(const FusionBuilder& builder, std::int32_t n);
/// True for an op whose result has its first operand's elements in the same row-major order.
bool keeps_row_major(const FusionBuilder& builder, std::int32_t n);
/// A matrix product with a weight, directly or through aliases of it.
bool is_projection(const FusionBuilder& builder, std::int32_t n);

/// A convolution with one filter per channel.
bool is_depthwise(const FusionBuilder& builder, std::int32_t n);
/// A convolution with a filter of one point that reads all channels, and gives as many points.
bool is_pointwise(const FusionBuilder& builder, std::int32_t n);

/// A convolution in two dimensions that is not transposed, with known weights.
struct ConvolutionFacts {
  Shape source;
  Shape weight;
  Shape result;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation;
  std::int64_t groups = 1;

  /// A filter of one point that reads all channels, with stride 1.
  bool is_pointwise() const;
};
/// Nothing for other nodes, and for those that npu-align keeps row-major.
std::optional<ConvolutionFacts> convolution_facts(const FusionBuilder& builder, std::int32_t n);

/// A convolution, matrix product or batch norm that is free, and from which a kernel can grow.
bool is_kernel_anchor(const FusionBuilder& builder, std::int32_t n);
/// Whether a group grew from an anchor, of a pattern of kernels or of another one.
bool is_grown(FusionBuilder& builder, std::int32_t g, bool of_kernels);

/// By tensor: whether integers, truth or an order follow from it through element-wise ops and
/// views.
std::vector<bool> deciding_tensors(const Graph& graph);

}  // namespace npu::fusion
