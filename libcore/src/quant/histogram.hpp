// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace npu {

/// What a tensor held, in memory that does not depend on how much that was. The width of the bins
/// is a power of two, and every edge a multiple of it, so that two bins become one exactly when
/// numbers come that do not fit: the result is that of the final width from the start, whatever the
/// order of the numbers.
class Histogram {
 public:
  static constexpr std::int32_t kBins = 2048;
  static constexpr std::int32_t kMinExponent = -120;
  static constexpr std::int32_t kMaxExponent = 118;

  Histogram() : bins_(kBins) {}
  /// One that was written: `bins` are those from `first_bin` on, which cover 0, `low` and `high`.
  /// Nothing if that describes no histogram.
  static std::optional<Histogram> make(std::int32_t exponent, std::int32_t first_bin,
                                       std::vector<std::uint64_t> bins, std::uint64_t zeros,
                                       std::uint64_t non_finite, float low, float high);

  /// Returns the least and the greatest finite number among these and 0.
  std::pair<float, float> add(std::span<const float> values);

  /// Of finite numbers, zeros included.
  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t zeros() const noexcept { return zeros_; }
  std::uint64_t non_finite() const noexcept { return non_finite_; }
  /// Of finite numbers; 0 if there are none.
  float low() const noexcept { return count_ > 0 ? low_ : 0; }
  float high() const noexcept { return count_ > 0 ? high_ : 0; }
  /// The width of a bin is 2^exponent.
  std::int32_t exponent() const noexcept { return exponent_; }
  double width() const noexcept;
  /// bins()[i] counts numbers other than 0 in [first_bin + i, first_bin + i + 1) * width; they
  /// cover 0 and all numbers, and the others are 0.
  std::int32_t first_bin() const noexcept { return first_; }
  const std::vector<std::uint64_t>& bins() const noexcept { return bins_; }
  /// The range of bins with a number: [begin, end), relative to first_bin.
  std::int32_t used_begin() const noexcept;
  std::int32_t used_end() const noexcept;

 private:
  std::pair<float, float> add_block(std::span<const float> block);
  void cover(float low, float high);
  void move_bins(std::int32_t exponent, std::int32_t first);
  void count_block(std::span<const float> block);

  std::vector<std::uint64_t> bins_;
  std::uint64_t count_ = 0;
  std::uint64_t zeros_ = 0;
  std::uint64_t non_finite_ = 0;
  std::int32_t exponent_ = kMinExponent;
  std::int32_t first_ = 0;
  float low_ = 0;
  float high_ = 0;
};

}  // namespace npu
