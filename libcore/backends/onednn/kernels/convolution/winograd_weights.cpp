// SPDX-License-Identifier: Apache-2.0
// Weights of a Winograd convolution: transformed, in the order in which products read them; behind
// them those of the definition, for tiles that a transform would spoil; and what is to be known
// about them before they are used. Computed in float64 and rounded once.
// O(weights * products / taps).
#include "kernels/convolution/winograd_weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/convolution/winograd.hpp"
#include "kernels/convolution/winograd_block.hpp"
#include "kernels/convolution/winograd_transforms.hpp"

namespace npu::onednn {

namespace {

using winograd::Axis;
using winograd::columns_at_once;
using winograd::columns_of;
using winograd::kMatrices;
using winograd::limit_place;
using winograd::transformed_floats;

constexpr std::size_t kMostWeights = 10;  // along a dimension
constexpr std::size_t kMostTaps = 7;

/// The matrix G of a filter along one dimension, [weights, taps].
struct WeightMatrix {
  std::int64_t tile;
  std::int64_t taps;
  std::int64_t stride;
  const double* rows;
};

template <typename Axis>
constexpr WeightMatrix matrix() {
  static_assert(Axis::kWeights <= kMostWeights && Axis::kTaps <= kMostTaps);
  return {Axis::kTile, Axis::kTaps, Axis::kStride, &kMatrices<Axis>.weight[0][0]};
}
constexpr WeightMatrix kWeightMatrices[] = {
    matrix<Axis<1, 1>>(), matrix<Axis<2, 3>>(), matrix<Axis<4, 3>>(), matrix<Axis<2, 5>>(),
    matrix<Axis<4, 5>>(), matrix<Axis<2, 7>>(), matrix<Axis<4, 7>>(), matrix<Axis<2, 3, 2>>(),
};

const double* weight_matrix(const Winograd::Filter& filter, int dimension) {
  return std::find_if(std::begin(kWeightMatrices), std::end(kWeightMatrices),
                      [&](const WeightMatrix& each) {
                        return each.tile == filter.tile[dimension] &&
                               each.taps == filter.taps[dimension] &&
                               (each.stride == filter.stride || each.taps == 1);
                      })
      ->rows;
}

/// [columns, transformed weights, source channels, up to columns_at_once].
void transform(const Winograd& call, const float* weight, float* transformed) {
  const Winograd::Filter& filter = call.filter;
  const double* by_row = weight_matrix(filter, 0);
  const double* by_column = weight_matrix(filter, 1);
  const std::int64_t taps_y = filter.taps[0];
  const std::int64_t taps_x = filter.taps[1];
  const std::int64_t weights_x = filter.weights(1);
  const std::int64_t inputs = call.source_channels;
  const std::int64_t most = columns_at_once(call);
  share_pieces(call.target_channels, call.threads, [&](std::int64_t o, int) {
    const std::int64_t column = o / most;
    const std::int64_t width = std::min(most, call.target_channels - column * most);
    float* to = transformed + column * most * filter.all_weights() * inputs + o % most;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const float* taps = weight + (o * inputs + i) * filter.all_taps();
      for (std::int64_t r = 0; r < filter.weights(0); ++r) {
        std::array<double, kMostTaps> line{};
        for (std::int64_t k = 0; k < taps_y; ++k) {
          for (std::int64_t c = 0; c < taps_x; ++c) {
            line[static_cast<std::size_t>(c)] +=
                by_row[r * taps_y + k] * static_cast<double>(taps[k * taps_x + c]);
          }
        }
        for (std::int64_t c = 0; c < weights_x; ++c) {
          double sum = 0.0;
          for (std::int64_t k = 0; k < taps_x; ++k) {
            sum += by_column[c * taps_x + k] * line[static_cast<std::size_t>(k)];
          }
          to[((r * weights_x + c) * inputs + i) * width] = static_cast<float>(sum);
        }
      }
    }
  });
}

/// [columns, taps, source channels, up to columns_at_once].
void order_by_definition(const Winograd& call, const float* weight, float* ordered) {
  const std::int64_t taps = call.filter.all_taps();
  const std::int64_t inputs = call.source_channels;
  const std::int64_t most = columns_at_once(call);
  share_pieces(call.target_channels, call.threads, [&](std::int64_t o, int) {
    const std::int64_t column = o / most;
    const std::int64_t width = std::min(most, call.target_channels - column * most);
    float* to = ordered + column * most * taps * inputs + o % most;
    for (std::int64_t i = 0; i < inputs; ++i) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        to[(tap * inputs + i) * width] = weight[(o * inputs + i) * taps + tap];
      }
    }
  });
}

/// The largest energy of a tile for which nothing overflows, then for each columns_at_once target
/// channels whether their weights are uneven: one of them not finite, or far above the mean
/// magnitude, beside which the error that it brings to results that do not need it would be large.
void judge_weights(const Winograd& call, const float* weight, float* judgement) {
  constexpr double kMaxPeak = 256.0;
  constexpr double kMaxGrowth = 1e5;  // of numbers on their way through transforms
  constexpr double kMost = std::numeric_limits<float>::max();
  const std::int64_t count = call.filter.all_taps() * call.source_channels;
  std::fill_n(judgement, 1 + columns_of(call), 0.0F);
  double largest = 0.0;
  for (std::int64_t o = 0; o < call.target_channels; ++o) {
    double sum = 0.0;
    double peak = 0.0;
    for (std::int64_t i = o * count; i < (o + 1) * count; ++i) {
      const double magnitude = std::abs(static_cast<double>(weight[i]));
      sum += magnitude;
      peak = std::max(peak, magnitude);
    }
    const bool is_even = sum <= kMost && peak * static_cast<double>(count) <= kMaxPeak * sum;
    if (is_even) {
      largest = std::max(largest, sum);
    } else {
      judgement[1 + o / columns_at_once(call)] = 1.0F;
    }
  }
  const double limit = kMost / (kMaxGrowth * std::max(largest, 1.0));
  judgement[0] = static_cast<float>(std::min(kMost, limit * limit));
}

}  // namespace

WinogradWeights::Operands WinogradWeights::bind(Addresses addresses) {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<float>()};
}

void WinogradWeights::run(const Operands& operands) const {
  transform(winograd, operands.source, operands.target);
  order_by_definition(winograd, operands.source, operands.target + transformed_floats(winograd));
  judge_weights(winograd, operands.source, operands.target + limit_place(winograd));
}

Count winograd::checked_weights(const Winograd& kernel) {
  const Winograd::Filter& filter = kernel.filter;
  const auto filters = winograd_filters(filter.taps[0], filter.taps[1], filter.stride);
  require(std::any_of(filters.begin(), filters.end(),
                      [&](const Winograd::Filter& each) {
                        return std::equal(each.tile, each.tile + 2, filter.tile);
                      }),
          "there is no such 'filter'");
  require(kernel.source_channels > 0 && kernel.source_channels % 16 == 0 &&
              kernel.target_channels > 0 && kernel.target_channels % 16 == 0,
          "channels are no multiple of 16");
  const Count channels = Count{kernel.source_channels} * kernel.target_channels;
  return channels * filter.all_weights() + channels * filter.all_taps() + 1 +
         ceil_div(kernel.target_channels, 2 * lanes_of(kernel.isa));
}

Footprint footprint(const WinogradWeights& kernel) {
  const Winograd& call = kernel.winograd;
  const Count weights = winograd::checked_weights(call);
  require(call.threads >= 1, "'threads' is below 1");
  return FootprintBuilder()
      .read(Count{call.source_channels} * call.target_channels * call.filter.all_taps())
      .write(weights)
      .done();
}

}  // namespace npu::onednn
