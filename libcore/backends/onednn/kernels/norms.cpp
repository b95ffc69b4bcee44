// SPDX-License-Identifier: Apache-2.0
// Batch norms as numbers for weights or channels, made when a program is compiled, and group and
// RMS norms. Statistics are float64; so is the rest of a row whose numbers are so large that their
// differences could overflow float32. O(elements).
#include "kernels/norms.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/elements.hpp"
#include "kernels/share_work.hpp"

namespace npu::onednn {

namespace {

/// Below this, neither a difference from the mean nor the mean itself overflows float32, and the
/// factor is a normal number.
constexpr double kMaxFloatRange = 1e37;

/// The elements of one row of a piece, (x - mean) * factor, with weight and bias.
template <typename Number, typename T>
void norm_row(const T* from, std::int64_t count, Number mean, Number factor, const float* weight,
              const float* bias, bool per_column, T* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = per_column ? i : 0;
    auto value = static_cast<float>((static_cast<Number>(load(from[i])) - mean) * factor);
    if (weight != nullptr) value *= weight[at];
    if (bias != nullptr) value += bias[at];
    store(to[i], value);
  }
}

template <typename T>
void norm_rows(const RowNorm& call, const T* source, const float* weight, const float* bias,
               T* target) {
  const std::int64_t count = call.rows * call.inner;
  const std::int64_t pieces = call.outer * call.groups;
  share_pieces(
      pieces, threads_for(pieces * count >= kParallelElements), [&](std::int64_t piece, int) {
        const T* from = source + piece * count;
        T* to = target + piece * count;
        double sum = 0.0;
        double squares = 0.0;
        if (!call.is_rms) {
          for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(load(from[i]));
        }
        const double mean = sum / static_cast<double>(count);
        for (std::int64_t i = 0; i < count; ++i) {
          const double difference = static_cast<double>(load(from[i])) - mean;
          squares += difference * difference;
        }
        const double factor = 1.0 / std::sqrt(squares / static_cast<double>(count) +
                                              static_cast<double>(call.epsilon));
        // The root of the sum is at least the largest difference. NaN takes the way in float32.
        const bool is_large =
            std::sqrt(squares) >= kMaxFloatRange || std::abs(mean) >= kMaxFloatRange;
        for (std::int64_t row = 0; row < call.rows; ++row) {
          const std::int64_t channel = piece % call.groups * call.rows + row;
          const std::int64_t first = call.per_column ? 0 : channel;
          const float* row_weight = weight == nullptr ? nullptr : weight + first;
          const float* row_bias = bias == nullptr ? nullptr : bias + first;
          const T* row_from = from + row * call.inner;
          T* row_to = to + row * call.inner;
          if (is_large) {
            norm_row(row_from, call.inner, mean, factor, row_weight, row_bias, call.per_column,
                     row_to);
          } else {
            norm_row(row_from, call.inner, static_cast<float>(mean), static_cast<float>(factor),
                     row_weight, row_bias, call.per_column, row_to);
          }
        }
      });
}

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

RowNorm::Operands RowNorm::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const std::byte>(), in.next_if<const float>(has_weight),
          in.next_if<const float>(has_bias), in.next<std::byte>()};
}

void RowNorm::run(const Operands& operands) const {
  if (type == DType::kFloat32) {
    norm_rows(*this, elements<float>(operands.source), operands.weight, operands.bias,
              elements<float>(operands.target));
  } else {
    norm_rows(*this, elements<BFloat16>(operands.source), operands.weight, operands.bias,
              elements<BFloat16>(operands.target));
  }
}

}  // namespace npu::onednn
