// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of single kernels share: numbers, layouts, and the definition in float64 of what
// kernels do to a result.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/base/elements.hpp"
#include "kernels/base/epilogue.hpp"
#include "kernels/base/simd.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::onednn::test {

inline std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(-1.0F, 1.0F);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& value : result) value = distribution(engine);
  return result;
}

/// The instruction sets that this CPU runs, from `least` on.
inline std::vector<VectorIsa> instruction_sets(VectorIsa least) {
  std::vector<VectorIsa> result;
  for (const VectorIsa isa : {VectorIsa::kAny, VectorIsa::kAvx2, VectorIsa::kAvx512}) {
    if (isa >= least && isa <= cpu_vector_isa()) result.push_back(isa);
  }
  return result;
}

/// [images, channels, pixels] with channels in blocks of `lanes`, zero behind the last.
inline std::vector<float> in_blocks(const std::vector<float>& plain, std::int64_t images,
                                    std::int64_t channels, std::int64_t pixels,
                                    std::int64_t lanes = 16) {
  const std::int64_t groups = (channels + lanes - 1) / lanes;
  std::vector<float> result(static_cast<std::size_t>(images * groups * pixels * lanes), 0.0F);
  for (std::int64_t n = 0; n < images; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        const std::int64_t to = ((n * groups + c / lanes) * pixels + p) * lanes + c % lanes;
        result[static_cast<std::size_t>(to)] =
            plain[static_cast<std::size_t>((n * channels + c) * pixels + p)];
      }
    }
  }
  return result;
}

/// The way back.
inline std::vector<float> from_blocks(const std::vector<float>& blocks, std::int64_t images,
                                      std::int64_t channels, std::int64_t pixels,
                                      std::int64_t lanes = 16) {
  const std::int64_t groups = (channels + lanes - 1) / lanes;
  std::vector<float> result(static_cast<std::size_t>(images * channels * pixels));
  for (std::int64_t n = 0; n < images; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        const std::int64_t from = ((n * groups + c / lanes) * pixels + p) * lanes + c % lanes;
        result[static_cast<std::size_t>((n * channels + c) * pixels + p)] =
            blocks[static_cast<std::size_t>(from)];
      }
    }
  }
  return result;
}

/// A step without operands, by its definition.
inline double apply_exactly(const EpilogueStep& step, double x) {
  const auto alpha = static_cast<double>(step.alpha);
  const auto beta = static_cast<double>(step.beta);
  switch (step.kind) {
    case EpilogueStep::Kind::kRelu:
      return x < 0 ? (alpha == 0.0 ? 0.0 : alpha * x) : x;
    case EpilogueStep::Kind::kClip:
      return std::clamp(x, alpha, beta);
    case EpilogueStep::Kind::kLinear:
      return alpha * x + beta;
    case EpilogueStep::Kind::kSwish:
      return x / (1.0 + std::exp(-alpha * x));
    case EpilogueStep::Kind::kHardSwish:
      return x * std::clamp(x / 6.0 + 0.5, 0.0, 1.0);
    default:
      return x;
  }
}

template <typename T>
const std::byte* bytes(const std::vector<T>& values) {
  return static_cast<const std::byte*>(static_cast<const void*>(values.data()));
}
template <typename T>
std::byte* bytes(std::vector<T>& values) {
  return static_cast<std::byte*>(static_cast<void*>(values.data()));
}

/// The largest difference, relative to the largest magnitude that is expected.
inline double worst_error(const std::vector<float>& actual, const std::vector<double>& expected) {
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double largest = 1e-3;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(actual[i])) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(static_cast<double>(actual[i]) - expected[i]));
  }
  return difference / largest;
}

/// A convolution of [batch, in, h, w] by its definition, stride in both directions.
struct ExactConvolution {
  std::int64_t batch;
  std::int64_t inputs;  ///< of a group
  std::int64_t outputs;
  std::int64_t groups;
  std::int64_t extent[2];
  std::int64_t taps[2];
  std::int64_t pad[2];
  std::int64_t stride;

  std::int64_t target(int i) const { return (extent[i] + 2 * pad[i] - taps[i]) / stride + 1; }

  template <typename T>
  std::vector<double> run(const std::vector<T>& source, const std::vector<float>& weight,
                          const std::vector<float>& bias) const {
    std::vector<double> result;
    const std::int64_t per_group = outputs / groups;
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        for (std::int64_t y = 0; y < target(0); ++y) {
          for (std::int64_t x = 0; x < target(1); ++x) {
            double sum =
                bias.empty() ? 0.0 : static_cast<double>(bias[static_cast<std::size_t>(o)]);
            for (std::int64_t i = 0; i < inputs; ++i) {
              const std::int64_t channel = o / per_group * inputs + i;
              sum += at(source, weight, (n * inputs * groups + channel), o * inputs + i, y, x);
            }
            result.push_back(sum);
          }
        }
      }
    }
    return result;
  }

 private:
  template <typename T>
  double at(const std::vector<T>& source, const std::vector<float>& weight, std::int64_t plane,
            std::int64_t kernel, std::int64_t y, std::int64_t x) const {
    double sum = 0.0;
    for (std::int64_t r = 0; r < taps[0]; ++r) {
      for (std::int64_t c = 0; c < taps[1]; ++c) {
        const std::int64_t from_y = y * stride - pad[0] + r;
        const std::int64_t from_x = x * stride - pad[1] + c;
        if (from_y < 0 || from_x < 0 || from_y >= extent[0] || from_x >= extent[1]) continue;
        const auto from =
            static_cast<std::size_t>((plane * extent[0] + from_y) * extent[1] + from_x);
        const auto tap = static_cast<std::size_t>((kernel * taps[0] + r) * taps[1] + c);
        sum += static_cast<double>(source[from]) * static_cast<double>(weight[tap]);
      }
    }
    return sum;
  }
};

/// Rounds floats to the nearest float16 numbers, whose bits are returned.
inline std::vector<std::uint16_t> rounded_to(DType type, std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (float& value : values) {
    const bool is_half = type == DType::kFloat16;
    bits.push_back(is_half ? float_to_float16(value) : rounded_bits(value));
    value = is_half ? float16_to_float(bits.back()) : load(BFloat16{bits.back()});
  }
  return bits;
}

}  // namespace npu::onednn::test
