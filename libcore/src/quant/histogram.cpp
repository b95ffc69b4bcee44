// SPDX-License-Identifier: Apache-2.0
// Histograms of streams: 2,048 bins, whatever the number of values and their range.
//
// Values are taken in blocks that stay in the cache: one pass for the extremes, one for the bins.
// The bins are counted in four tables in turn, since activations repeat values and an increment has
// to wait for the one before it. O(values), and O(bins) for each doubling of the width.
#include "quant/histogram.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "npu/support/ids.hpp"

namespace npu {
namespace {

constexpr std::size_t kBlock = 65536;

/// 2^-exponent as a float, exact for every exponent of a histogram.
float inverse_width(std::int32_t exponent) { return std::ldexp(1.0F, -exponent); }

/// floor(value / width), without a call to floor.
std::int32_t bin_of(float value, float inverse) {
  const float scaled = value * inverse;
  const auto whole = static_cast<std::int32_t>(scaled);
  return whole - static_cast<std::int32_t>(scaled < static_cast<float>(whole));
}

/// Whether the bins of a width cover a range that contains 0.
bool covers(std::int32_t exponent, float low, float high) {
  const double width = std::ldexp(1.0, exponent);
  return std::floor(double{high} / width) - std::floor(double{low} / width) < Histogram::kBins;
}

std::int32_t fitting_exponent(std::int32_t exponent, float low, float high) {
  while (!covers(exponent, low, high)) ++exponent;
  return exponent;
}

struct Extremes {
  float low = std::numeric_limits<float>::infinity();
  float high = -std::numeric_limits<float>::infinity();
  std::uint32_t zeros = 0;
  std::uint32_t nans = 0;
};

/// Extremes of every 16th number, so that the compiler need not reorder comparisons to use vectors.
struct Lanes {
  static constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> low;
  std::array<float, kLanes> high;
  std::array<std::uint32_t, kLanes> zeros{};
  std::array<std::uint32_t, kLanes> nans{};

  Lanes() {
    low.fill(std::numeric_limits<float>::infinity());
    high.fill(-std::numeric_limits<float>::infinity());
  }
  void add(std::size_t lane, float value) {
    low[lane] = value < low[lane] ? value : low[lane];
    high[lane] = value > high[lane] ? value : high[lane];
    zeros[lane] += static_cast<std::uint32_t>(value == 0);
    nans[lane] += static_cast<std::uint32_t>(value != value);
  }
};

Extremes extremes_of(std::span<const float> block) {
  Lanes lanes;
  std::size_t i = 0;
  for (; i + Lanes::kLanes <= block.size(); i += Lanes::kLanes) {
    for (std::size_t lane = 0; lane < Lanes::kLanes; ++lane) lanes.add(lane, block[i + lane]);
  }
  for (; i < block.size(); ++i) lanes.add(0, block[i]);
  Extremes found;
  for (std::size_t lane = 0; lane < Lanes::kLanes; ++lane) {
    found.low = std::min(found.low, lanes.low[lane]);
    found.high = std::max(found.high, lanes.high[lane]);
    found.zeros += lanes.zeros[lane];
    found.nans += lanes.nans[lane];
  }
  return found;
}

}  // namespace

double Histogram::width() const noexcept { return std::ldexp(1.0, exponent_); }

std::int32_t Histogram::used_begin() const noexcept {
  const auto first =
      std::find_if(bins_.begin(), bins_.end(), [](std::uint64_t count) { return count > 0; });
  return static_cast<std::int32_t>(first - bins_.begin());
}

std::int32_t Histogram::used_end() const noexcept {
  const auto last =
      std::find_if(bins_.rbegin(), bins_.rend(), [](std::uint64_t count) { return count > 0; });
  return static_cast<std::int32_t>(bins_.rend() - last);
}

std::pair<float, float> Histogram::add(std::span<const float> values) {
  std::pair<float, float> extremes{0, 0};
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto [low, high] =
        add_block(values.subspan(begin, std::min(kBlock, values.size() - begin)));
    extremes = {std::min(extremes.first, low), std::max(extremes.second, high)};
  }
  return extremes;
}

std::pair<float, float> Histogram::add_block(std::span<const float> block) {
  Extremes found = extremes_of(block);
  std::vector<float> finite;
  if (found.nans > 0 || std::isinf(found.low) || std::isinf(found.high)) {
    std::copy_if(block.begin(), block.end(), std::back_inserter(finite),
                 [](float value) { return std::isfinite(value); });
    non_finite_ += block.size() - finite.size();
    if (finite.empty()) return {0, 0};
    block = finite;
    found = extremes_of(block);
  }
  low_ = count_ > 0 ? std::min(low_, found.low) : found.low;
  high_ = count_ > 0 ? std::max(high_, found.high) : found.high;
  cover(std::min(low_, 0.0F), std::max(high_, 0.0F));
  count_block(block);
  bins_[index_of(-first_)] -= found.zeros;
  zeros_ += found.zeros;
  count_ += block.size();
  return {std::min(found.low, 0.0F), std::max(found.high, 0.0F)};
}

void Histogram::cover(float low, float high) {
  const std::int32_t exponent = fitting_exponent(exponent_, low, high);
  const std::int32_t first = bin_of(low, inverse_width(exponent));
  if (exponent != exponent_ || first != first_) move_bins(exponent, first);
}

void Histogram::move_bins(std::int32_t exponent, std::int32_t first) {
  const std::int32_t doublings = std::min(exponent - exponent_, 31);
  std::vector<std::uint64_t> moved(kBins);
  for (std::int32_t i = 0; i < kBins; ++i) {
    if (bins_[index_of(i)] == 0) continue;
    // A shift to the right rounds down, as the edges do.
    moved[index_of(((first_ + i) >> doublings) - first)] += bins_[index_of(i)];
  }
  bins_ = std::move(moved);
  exponent_ = exponent;
  first_ = first;
}

void Histogram::count_block(std::span<const float> block) {
  // Not a multiple of 4096 bytes apart: counts of one bin would then wait for each other.
  std::array<std::array<std::uint32_t, kBins + 80>, 4> tables{};
  const float inverse = inverse_width(exponent_);
  std::size_t i = 0;
  for (; i + 4 <= block.size(); i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      ++tables[lane][index_of(bin_of(block[i + lane], inverse) - first_)];
    }
  }
  for (; i < block.size(); ++i) ++tables[0][index_of(bin_of(block[i], inverse) - first_)];
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    bins_[bin] += std::uint64_t{tables[0][bin]} + tables[1][bin] + tables[2][bin] + tables[3][bin];
  }
}

std::optional<Histogram> Histogram::make(std::int32_t exponent, std::int32_t first_bin,
                                         std::vector<std::uint64_t> bins, std::uint64_t zeros,
                                         std::uint64_t non_finite, float low, float high) {
  const bool in_range = exponent >= kMinExponent && exponent <= kMaxExponent &&
                        first_bin >= -kBins && first_bin <= 0 && bins.size() <= index_of(kBins);
  if (!in_range || !std::isfinite(low) || !std::isfinite(high) || low > high) return std::nullopt;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  std::uint64_t total = zeros;
  for (const std::uint64_t count : bins) {
    if (count > kMost || total > kMost) return std::nullopt;
    total += count;
  }
  const float least = std::min(low, 0.0F);
  const float most = std::max(high, 0.0F);
  if (total > kMost || !covers(exponent, least, most)) return std::nullopt;
  const float inverse = inverse_width(exponent);
  if (total > 0 && bin_of(least, inverse) != first_bin) return std::nullopt;
  Histogram result;
  result.exponent_ = exponent;
  result.first_ = first_bin;
  result.bins_ = std::move(bins);
  result.bins_.resize(index_of(kBins));
  result.zeros_ = zeros;
  result.non_finite_ = non_finite;
  result.count_ = total;
  result.low_ = low;
  result.high_ = high;
  const std::int32_t last = bin_of(most, inverse) - first_bin;
  if (total > zeros && result.used_end() - 1 > last) return std::nullopt;
  return result;
}

}  // namespace npu
