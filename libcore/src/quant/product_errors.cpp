// SPDX-License-Identifier: Apache-2.0
// Predicts the errors of products in int8, and what makes them less.
//
// An activation has one scale for all its channels, so a channel of small numbers beside one of
// large numbers has few levels. Dividing each channel by a factor and multiplying the weights that
// read it changes nothing in float (SmoothQuant, Xiao et al. 2023; cross-layer equalisation, Nagel
// et al. 2019); what the activation gains the weights may lose, whose scales are by channel of the
// result. For factors
//   s = max|x|^a / max|w|^(1 - a)
// of each channel the error is predicted from the widths of the steps and the powers of both sides,
// and the best of some exponents a is taken. Factors are powers of two: they change no bit.
//
// Rounding weights shifts the mean of a result by the sum of errors times means of the channels,
// which a bias takes back. O(elements of the weights) each.
#include "quant/product_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "quant/choose_range.hpp"
#include "quant/weight_operand.hpp"

namespace npu {
namespace {

constexpr double kActivationSteps = 255;
constexpr auto kWeightSteps = static_cast<double>(kCorrectedWeights.high);
constexpr std::array<double, 4> kExponents{0.25, 0.5, 0.75, 1.0};
constexpr int kMostDoublings = 24;

double factor_of(const std::vector<float>& factors, std::size_t channel) {
  return factors.empty() ? 1.0 : double{factors[channel]};
}

double largest(const ChannelExtremes& extremes, std::size_t channel) {
  return std::max(std::abs(double{extremes.low[channel]}),
                  std::abs(double{extremes.high[channel]}));
}

/// Calls visit(output, channel, kernel) for all kernels.
template <typename Visit>
void for_each_kernel(const ProductWeight& weight, const Visit& visit) {
  for (std::int64_t o = 0; o < weight.outputs; ++o) {
    for (std::int64_t i = 0; i < weight.inputs; ++i) {
      visit(index_of(o), weight.channel(o, i), weight.kernel(o, i));
    }
  }
}

/// What all predictions for a weight share: of each kernel the power and the largest number.
struct KernelFacts {
  const ProductWeight* weight = nullptr;
  std::vector<double> power;    ///< by output and input
  std::vector<double> largest;  ///< likewise
  double signal = 0;            ///< the power of the result
};

KernelFacts facts_of(const ProductWeight& weight, const ChannelMoments& moments) {
  KernelFacts facts;
  facts.weight = &weight;
  for_each_kernel(weight, [&](std::size_t, std::size_t channel, std::span<const float> kernel) {
    double power = 0;
    double most = 0;
    for (const float value : kernel) {
      power += double{value} * double{value};
      most = std::max(most, std::abs(double{value}));
    }
    facts.power.push_back(power);
    facts.largest.push_back(most);
    facts.signal += power * moments.power(channel);
  });
  return facts;
}

/// The predicted power of the error of a product, relative to that of its result.
double predicted_error(const KernelFacts& facts, const ProductOperand& operand,
                       const std::vector<float>& factors) {
  const ProductWeight& weight = *facts.weight;
  double low = 0;
  double high = 0;
  for (std::size_t c = 0; c < operand.extremes->low.size(); ++c) {
    low = std::min(low, double{operand.extremes->low[c]} / factor_of(factors, c));
    high = std::max(high, double{operand.extremes->high[c]} / factor_of(factors, c));
  }
  const double step = (high - low) / kActivationSteps;
  double error = 0;
  std::size_t at = 0;
  for (std::int64_t o = 0; o < weight.outputs; ++o) {
    double weights = 0;  // power of the weights of this output
    double inputs = 0;   // power of what they multiply
    double most = 0;
    for (std::int64_t i = 0; i < weight.inputs; ++i, ++at) {
      const std::size_t channel = weight.channel(o, i);
      const double factor = factor_of(factors, channel);
      weights += facts.power[at] * factor * factor;
      inputs += operand.moments->power(channel) / (factor * factor);
      most = std::max(most, facts.largest[at] * factor);
    }
    const double weight_step = most / kWeightSteps;
    error += step * step / 12 * weights +
             weight_step * weight_step / 12 * inputs * static_cast<double>(weight.taps);
  }
  return facts.signal > 0 ? error / facts.signal : 0;
}

/// The largest weight that multiplies each channel.
std::vector<double> largest_by_channel(const std::vector<KernelFacts>& all, std::size_t channels) {
  std::vector<double> result(channels, 0);
  for (const KernelFacts& facts : all) {
    std::size_t at = 0;
    for_each_kernel(*facts.weight, [&](std::size_t, std::size_t channel, std::span<const float>) {
      result[channel] = std::max(result[channel], facts.largest[at++]);
    });
  }
  return result;
}

/// Powers of two, around 1; channels that were 0 keep 1.
std::vector<float> factors_for(double exponent, const ChannelExtremes& extremes,
                               const std::vector<double>& weights) {
  std::vector<double> logs(weights.size(), 0);
  std::vector<double> known;
  for (std::size_t c = 0; c < logs.size(); ++c) {
    const double most = largest(extremes, c);
    if (!(most > 0) || !(weights[c] > 0)) continue;
    logs[c] = exponent * std::log2(most) - (1 - exponent) * std::log2(weights[c]);
    known.push_back(logs[c]);
  }
  if (known.empty()) return {};
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  std::vector<float> factors(logs.size(), 1.0F);
  for (std::size_t c = 0; c < logs.size(); ++c) {
    if (!(largest(extremes, c) > 0) || !(weights[c] > 0)) continue;
    const int power = static_cast<int>(std::lround(logs[c] - *middle));
    factors[c] = std::ldexp(1.0F, std::clamp(power, -kMostDoublings, kMostDoublings));
  }
  return factors;
}

std::optional<ProductWeight> convolution_weight(const Shape& data, const Shape& shape) {
  if (data.size() != shape.size() || shape.size() < 3 || shape[1] <= 0 || shape[0] <= 0) {
    return std::nullopt;
  }
  ProductWeight weight;
  weight.outputs = shape[0];
  weight.inputs = shape[1];
  weight.groups = data[1] / shape[1];
  if (weight.groups < 1 || weight.channels() != data[1] || shape[0] % weight.groups != 0) {
    return std::nullopt;
  }
  for (std::size_t d = 2; d < shape.size(); ++d) weight.taps *= shape[d];
  weight.input_step = weight.taps;
  weight.output_step = weight.taps * shape[1];
  return weight;
}

std::optional<ProductWeight> matrix_weight(const Shape& data, const Shape& shape,
                                           std::int32_t output_axis) {
  if (shape.size() != 2 || data.empty()) return std::nullopt;
  ProductWeight weight;
  const bool is_transposed = output_axis == 0;  // (outputs, inputs), as in linear
  weight.outputs = shape[is_transposed ? 0 : 1];
  weight.inputs = shape[is_transposed ? 1 : 0];
  weight.output_step = is_transposed ? weight.inputs : 1;
  weight.input_step = is_transposed ? 1 : weight.outputs;
  if (weight.inputs != data.back() || weight.outputs < 1) return std::nullopt;
  return weight;
}

}  // namespace

std::optional<ProductWeight> product_weight(const Graph& graph, const Node& node, const Shape& data,
                                            std::int32_t axis) {
  const auto operand = weight_operand(graph, node);
  if (!operand) return std::nullopt;
  const Shape& shape = graph.tensor(operand->tensor).shape;
  const bool at_front = fusion_role(node.op_type) == FusionRole::kConv;
  if (at_front && operand->axis != 0) return std::nullopt;  // transposed
  if (axis != (at_front ? 1 : static_cast<std::int32_t>(data.size()) - 1)) return std::nullopt;
  return at_front ? convolution_weight(data, shape) : matrix_weight(data, shape, operand->axis);
}

void add_moments(std::span<const float> values, const Shape& shape, std::int32_t axis,
                 ChannelMoments& moments) {
  const std::size_t size = index_of(shape[index_of(axis)]);
  if (size == 0) return;
  moments.sum.resize(size, 0);
  moments.squares.resize(size, 0);
  std::size_t inner = 1;
  for (std::size_t d = index_of(axis) + 1; d < shape.size(); ++d) inner *= index_of(shape[d]);
  if (inner == 0) return;
  const std::size_t outer = values.size() / (size * inner);
  for (std::size_t row = 0; row < outer * size; ++row) {
    double sum = 0;
    double squares = 0;
    for (const float value : values.subspan(row * inner, inner)) {
      const double number = std::isfinite(value) ? double{value} : 0.0;
      sum += number;
      squares += number * number;
    }
    moments.sum[row % size] += sum;
    moments.squares[row % size] += squares;
  }
  moments.count += static_cast<double>(outer * inner);
}

ChannelExtremes weight_extremes(const ProductWeight& weight, const std::vector<float>& factors) {
  ChannelExtremes extremes;
  extremes.low.assign(index_of(weight.outputs), 0);
  extremes.high.assign(index_of(weight.outputs), 0);
  for_each_kernel(weight,
                  [&](std::size_t output, std::size_t channel, std::span<const float> kernel) {
                    const auto factor = static_cast<float>(factor_of(factors, channel));
                    for (const float value : kernel) {
                      extremes.low[output] = std::min(extremes.low[output], value * factor);
                      extremes.high[output] = std::max(extremes.high[output], value * factor);
                    }
                  });
  return extremes;
}

std::vector<float> choose_factors(const ProductOperand& operand,
                                  const std::vector<ProductWeight>& weights, double& gain) {
  gain = 1;
  std::vector<KernelFacts> facts;
  for (const ProductWeight& weight : weights) facts.push_back(facts_of(weight, *operand.moments));
  const auto error_of = [&](const std::vector<float>& factors) {
    double error = 0;
    for (const KernelFacts& each : facts) error += predicted_error(each, operand, factors);
    return error;
  };
  const double plain = error_of({});
  std::vector<float> best;
  if (!(plain > 0) || !std::isfinite(plain)) return best;
  double least = plain;
  const std::vector<double> by_channel = largest_by_channel(facts, operand.extremes->low.size());
  for (const double exponent : kExponents) {
    std::vector<float> factors = factors_for(exponent, *operand.extremes, by_channel);
    const double error = error_of(factors);
    if (!(error < least)) continue;
    least = error;
    best = std::move(factors);
  }
  gain = least > 0 ? plain / least : 1;
  return best;
}

std::vector<float> bias_correction(const ProductWeight& weight, const std::vector<float>& factors,
                                   const ChannelExtremes& extremes, const ChannelMoments& moments) {
  std::vector<float> scales;
  for (std::size_t o = 0; o < extremes.low.size(); ++o) {
    scales.push_back(static_cast<float>(
        quant_params({extremes.low[o], extremes.high[o]}, kCorrectedWeights).scale));
  }
  std::vector<double> sums(scales.size(), 0);
  for_each_kernel(
      weight, [&](std::size_t output, std::size_t channel, std::span<const float> kernel) {
        const auto factor = static_cast<float>(factor_of(factors, channel));
        const float inverse = 1.0F / scales[output];
        double error = 0;
        for (const float value : kernel) {
          const float number = value * factor;
          const float level = std::clamp(std::nearbyint(number * inverse), -127.0F, 127.0F);
          error += double{number} - double{level} * double{scales[output]};
        }
        sums[output] += error * moments.mean(channel) / double{factor};
      });
  std::vector<float> correction;
  for (const double sum : sums) correction.push_back(static_cast<float>(sum));
  return correction;
}

}  // namespace npu
