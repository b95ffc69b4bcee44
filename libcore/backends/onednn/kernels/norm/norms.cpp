// SPDX-License-Identifier: Apache-2.0
// Batch norms as numbers for weights or channels, made when a program is compiled. O(elements).
#include "kernels/norm/norms.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

/// One number for a channel of a batch norm.
double factor_of(const float* scale, const float* variance, float epsilon, std::int64_t channel) {
  return (scale == nullptr ? 1.0 : static_cast<double>(scale[channel])) /
         std::sqrt(static_cast<double>(variance[channel]) + static_cast<double>(epsilon));
}

double number_of(const float* values, std::int64_t i) {
  return values == nullptr ? 0.0 : static_cast<double>(values[i]);
}

}  // namespace

FoldNormWeights::Operands FoldNormWeights::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<const float>(), in.next_if<const float>(fold.has_scale),
          in.next<float>()};
}

void FoldNormWeights::run(const Operands& operands) const {
  for (std::int64_t group = 0; group < fold.groups; ++group) {
    for (std::int64_t row = 0; row < fold.rows; ++row) {
      for (std::int64_t channel = 0; channel < fold.channels; ++channel) {
        const double factor = factor_of(operands.scale, operands.variance, fold.epsilon,
                                        group * fold.channels + channel);
        const std::int64_t begin =
            ((group * fold.rows + row) * fold.channels + channel) * fold.inner;
        for (std::int64_t i = begin; i < begin + fold.inner; ++i) {
          operands.target[i] = static_cast<float>(static_cast<double>(operands.weight[i]) * factor);
        }
      }
    }
  }
}

FoldNormBias::Operands FoldNormBias::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const float>(),
          in.next<const float>(),
          in.next_if<const float>(fold.has_scale),
          in.next_if<const float>(fold.has_shift),
          in.next_if<const float>(fold.has_bias),
          in.next<float>()};
}

void FoldNormBias::run(const Operands& operands) const {
  for (std::int64_t i = 0; i < fold.groups * fold.channels; ++i) {
    const double factor = factor_of(operands.scale, operands.variance, fold.epsilon, i);
    const double centred = number_of(operands.bias, i) - static_cast<double>(operands.mean[i]);
    operands.target[i] = static_cast<float>(centred * factor + number_of(operands.shift, i));
  }
}

NormVectors::Operands NormVectors::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<const float>(), in.next_if<const float>(has_scale),
          in.next_if<const float>(has_shift), in.next<float>()};
}

void NormVectors::run(const Operands& operands) const {
  float* factors = operands.target;
  float* terms = factors + padded_channels;
  std::fill_n(factors, 2 * padded_channels, 0.0F);
  for (std::int64_t i = 0; i < channels; ++i) {
    const double factor = factor_of(operands.scale, operands.variance, epsilon, i);
    factors[i] = static_cast<float>(factor);
    terms[i] = static_cast<float>(number_of(operands.shift, i) -
                                  static_cast<double>(operands.mean[i]) * factor);
  }
}

Footprint footprint(const FoldNormWeights& kernel) {
  const NormFold& fold = kernel.fold;
  const Count channels =
      at_least_one(fold.groups, "groups") * at_least_one(fold.channels, "channels");
  const Count weights =
      channels * at_least_one(fold.rows, "rows") * at_least_one(fold.inner, "inner");
  return FootprintBuilder()
      .read(weights)
      .read(channels)
      .read_if(fold.has_scale, channels)
      .write(weights)
      .done();
}

Footprint footprint(const FoldNormBias& kernel) {
  const NormFold& fold = kernel.fold;
  const Count channels =
      at_least_one(fold.groups, "groups") * at_least_one(fold.channels, "channels");
  return FootprintBuilder()
      .read(channels)
      .read(channels)
      .read_if(fold.has_scale, channels)
      .read_if(fold.has_shift, channels)
      .read_if(fold.has_bias, channels)
      .write(channels)
      .done();
}

Footprint footprint(const NormVectors& kernel) {
  const Count channels = at_least_one(kernel.channels, "channels");
  require(kernel.padded_channels >= kernel.channels, "'padded_channels' is below 'channels'");
  return FootprintBuilder()
      .read(channels)
      .read(channels)
      .read_if(kernel.has_scale, channels)
      .read_if(kernel.has_shift, channels)
      .write(Count{2} * kernel.padded_channels)
      .done();
}

}  // namespace npu::onednn
