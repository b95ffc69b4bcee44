// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "npu/ir/graph.hpp"
#include "quant/choose_range.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu {

/// The integers of weights that corrections and extremes are for.
inline constexpr QuantForm kCorrectedWeights{DType::kInt8, -127, 127, true};

/// What the channels of a tensor held: sums over all finite numbers.
struct ChannelMoments {
  std::vector<double> sum;
  std::vector<double> squares;
  double count = 0;  ///< of numbers in each channel

  double mean(std::size_t channel) const { return count > 0 ? sum[channel] / count : 0; }
  double power(std::size_t channel) const { return count > 0 ? squares[channel] / count : 0; }
};

/// Adds a row-major tensor, whose channels are along `axis`. O(elements).
void add_moments(std::span<const float> values, const Shape& shape, std::int32_t axis,
                 ChannelMoments& moments);

/// The weight of a convolution or matrix product: element (o, i, t) multiplies channel
/// channel(o, i) of the operand for channel o of the result, at tap t of the kernel.
struct ProductWeight {
  std::span<const float> values;
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;  ///< of each group
  std::int64_t groups = 1;
  std::int64_t taps = 1;  ///< next to each other
  std::int64_t output_step = 0;
  std::int64_t input_step = 0;

  std::int64_t channels() const { return inputs * groups; }
  std::size_t channel(std::int64_t output, std::int64_t input) const {
    return static_cast<std::size_t>(output / (outputs / groups) * inputs + input);
  }
  std::span<const float> kernel(std::int64_t output, std::int64_t input) const {
    return values.subspan(static_cast<std::size_t>(output * output_step + input * input_step),
                          static_cast<std::size_t>(taps));
  }
};

/// The weight of a node that multiplies an operand of shape `data` with one, without its values;
/// nothing if the node has none, or does not contract `axis` of the operand with it.
std::optional<ProductWeight> product_weight(const Graph& graph, const Node& node, const Shape& data,
                                            std::int32_t axis);

/// The operand that products read, with each channel divided by a factor.
struct ProductOperand {
  const ChannelExtremes* extremes = nullptr;
  const ChannelMoments* moments = nullptr;
};

/// The least and the greatest number of each channel of the result in a weight whose input channels
/// are multiplied by `factors` (empty: by 1), and 0. The axis is not set.
ChannelExtremes weight_extremes(const ProductWeight& weight, const std::vector<float>& factors);

/// Factors for the channels of an operand, powers of two, that make the errors of the products
/// which read it, in integers of 8 bits, least among a few choices between moving all differences
/// of channels into the weights and none; empty if that is none. `gain` is the ratio of the
/// predicted powers of errors, each relative to its product's result. O(elements of the weights).
std::vector<float> choose_factors(const ProductOperand& operand,
                                  const std::vector<ProductWeight>& weights, double& gain);

/// What to add to each channel of a product's result so that its mean does not change when the
/// weight, multiplied by `factors` (empty: by 1), is rounded to integers from -127 to 127 with
/// scales for `extremes`. Where a kernel reaches beyond the border, as if it did not.
std::vector<float> bias_correction(const ProductWeight& weight, const std::vector<float>& factors,
                                   const ChannelExtremes& extremes, const ChannelMoments& moments);

}  // namespace npu
