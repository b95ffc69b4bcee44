// SPDX-License-Identifier: Apache-2.0
// Chooses the range that a tensor is cut to before it becomes integers.
//
// Zeros are left out everywhere: they are exact in every range. Percentiles are read from the
// cumulated histogram. The two searches try thresholds, in bins from 0, and cut both sides there.
//
// Entropy (Migacz, "8-bit inference with TensorRT", 2017) compares what the tensor held, with
// everything beyond a threshold counted in the outermost bins, with what is left of it in as many
// levels as the form has, and takes the threshold with the least divergence. All thresholds from
// one bin for each level on are tried, in O(levels) each: the logarithm of a level is shared by its
// bins, and sums over bins come from prefix sums.
//
// Mse takes the numbers of a bin for spread evenly and integrates the squared errors of rounding
// and cutting; it searches both sides together, then one after the other until neither moves.
#include "quant/choose_range.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/json.hpp"

namespace npu {
namespace {

using Kind = CalibrationMethod::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds{
    {{"minmax", Kind::kMinMax},
     {"average", Kind::kAverage},
     {"percentile", Kind::kPercentile},
     {"entropy", Kind::kEntropy},
     {"mse", Kind::kMse}}};

NumberRange with_zero(double low, double high) { return {std::min(low, 0.0), std::max(high, 0.0)}; }

NumberRange min_max(const Histogram& histogram) {
  return with_zero(histogram.low(), histogram.high());
}

/// The part of `range` within the extremes of the tensor.
NumberRange within(const Histogram& histogram, const NumberRange& range) {
  const NumberRange all = min_max(histogram);
  return with_zero(std::max(range.low, all.low), std::min(range.high, all.high));
}

/// The number below which `rank` of the numbers lie, which are spread evenly within a bin.
double number_at(const Histogram& histogram, double rank) {
  double below = 0;
  const double width = histogram.width();
  for (std::int32_t i = 0; i < Histogram::kBins; ++i) {
    const auto in_bin = static_cast<double>(histogram.bins()[index_of(i)]);
    const double edge = (histogram.first_bin() + i) * width;
    // The zeros stand at the lower edge of the bin that begins with 0.
    if (histogram.first_bin() + i == 0) {
      below += static_cast<double>(histogram.zeros());
      if (rank <= below) return 0;
    }
    if (in_bin > 0 && rank <= below + in_bin) return edge + (rank - below) / in_bin * width;
    below += in_bin;
  }
  return histogram.high();
}

NumberRange percentile_range(const Histogram& histogram, double percentile) {
  const double outside = (1 - percentile / 100) / 2 * static_cast<double>(histogram.count());
  const double kept = static_cast<double>(histogram.count()) - outside;
  return within(histogram, {number_at(histogram, outside), number_at(histogram, kept)});
}

/// Bins on both sides of 0.
struct Sides {
  std::int32_t below = 0;
  std::int32_t above = 0;
  std::int32_t longest() const noexcept { return std::max(below, above); }
  Sides cut(std::int32_t threshold) const noexcept {
    return {std::min(below, threshold), std::min(above, threshold)};
  }
};

Sides sides_of(const Histogram& histogram) {
  if (histogram.count() == histogram.zeros()) return {};
  return {std::max(0, -(histogram.first_bin() + histogram.used_begin())),
          std::max(0, histogram.first_bin() + histogram.used_end())};
}

NumberRange range_of(const Histogram& histogram, const Sides& sides) {
  const double width = histogram.width();
  return within(histogram, {-sides.below * width, sides.above * width});
}

/// What an outermost level counts as that holds nothing but what is folded into it, in numbers:
/// with none at all the divergence would be infinite wherever a gap is.
constexpr double kLeastMass = 0.5;

/// Divergence of a tensor cut to some bins from the tensor itself, see the head of this file.
class Divergence {
 public:
  Divergence(const Histogram& histogram, std::int64_t levels)
      : zero_(-histogram.first_bin()), levels_(levels) {
    const std::size_t bins = histogram.bins().size();
    count_.assign(bins + 1, 0);
    used_.assign(bins + 1, 0);
    plogp_.assign(bins + 1, 0);
    for (std::size_t i = 0; i < bins; ++i) {
      const auto number = static_cast<double>(histogram.bins()[i]);
      count_[i + 1] = count_[i] + number;
      used_[i + 1] = used_[i] + (number > 0 ? 1 : 0);
      plogp_[i + 1] = plogp_[i] + (number > 0 ? number * std::log(number) : 0);
    }
  }

  double of(const Sides& sides) const {
    const std::size_t begin = index_of(zero_ - sides.below);
    const std::size_t end = index_of(zero_ + sides.above);
    const double all = count_.back();
    const double inside = count_[end] - count_[begin];
    if (inside <= 0) return std::numeric_limits<double>::infinity();
    const double before = count_[begin];
    const double behind = all - count_[end];
    double sum = plogp_[end] - plogp_[begin] + folded(begin, before) + folded(end - 1, behind);
    const auto bins = static_cast<std::int64_t>(end - begin);
    std::size_t from = begin;
    for (std::int64_t level = 0; level < levels_; ++level) {
      const std::size_t to = begin + index_of(bins * (level + 1) / levels_);
      if (to == from) continue;
      const double mass = count_[to] - count_[from];
      double used = used_[to] - used_[from];
      double whole = mass;
      if (from == begin) add_folded(begin, before, whole, used);
      if (to == end) add_folded(end - 1, behind, whole, used);
      if (whole > 0) sum -= whole * std::log(std::max(mass, kLeastMass) / used);
      from = to;
    }
    return sum / all - std::log(all) + std::log(inside);
  }

 private:
  double at(std::size_t bin) const { return count_[bin + 1] - count_[bin]; }

  /// By how much p log p of a bin grows with what is cut off beyond it.
  double folded(std::size_t bin, double more) const {
    if (more <= 0) return 0;
    const double before = at(bin);
    const double after = before + more;
    return after * std::log(after) - (before > 0 ? before * std::log(before) : 0);
  }
  void add_folded(std::size_t bin, double more, double& whole, double& used) const {
    if (more <= 0) return;
    whole += more;
    if (at(bin) <= 0) used += 1;
  }

  std::int32_t zero_;
  std::int64_t levels_;
  std::vector<double> count_;
  std::vector<double> used_;
  std::vector<double> plogp_;
};

NumberRange entropy_range(const Histogram& histogram, std::int64_t levels) {
  const Sides all = sides_of(histogram);
  const Divergence divergence(histogram, levels);
  double least = std::numeric_limits<double>::infinity();
  Sides best = all;
  for (std::int32_t threshold = 1; threshold <= all.longest(); ++threshold) {
    const Sides sides = all.cut(threshold);
    if (sides.below + sides.above < levels) continue;
    const double found = divergence.of(sides);
    if (found > least) continue;
    least = found;
    best = sides;
  }
  return range_of(histogram, best);
}

/// Finds bins on both sides that give the least error.
class ErrorSearch {
 public:
  ErrorSearch(const Histogram& histogram, const QuantForm& form)
      : histogram_(histogram), form_(form), best_(sides_of(histogram)) {
    least_ = error_of(best_);
  }

  NumberRange run() {
    const Sides all = best_;
    const std::int32_t step = std::max(1, all.longest() / 128);
    for (std::int32_t t = step; t < all.longest(); t += step) try_sides(all.cut(t));
    for (std::int32_t width = step; width >= 1; width /= 2) refine(all, width);
    return range_of(histogram_, best_);
  }

 private:
  void refine(const Sides& all, std::int32_t step) {
    for (int round = 0; round < 64; ++round) {
      const Sides before = best_;
      for (const std::int32_t move : {-step, step}) {
        try_sides({std::clamp(before.below + move, 0, all.below), best_.above});
        try_sides({best_.below, std::clamp(before.above + move, 0, all.above)});
      }
      if (best_.below == before.below && best_.above == before.above) return;
    }
  }

  void try_sides(const Sides& sides) {
    const double error = error_of(sides);
    if (error >= least_) return;
    least_ = error;
    best_ = sides;
  }

  double error_of(const Sides& sides) const {
    return quantization_error(histogram_, quant_params(range_of(histogram_, sides), form_), form_);
  }

  const Histogram& histogram_;
  const QuantForm& form_;
  Sides best_;
  double least_ = 0;
};

}  // namespace

CalibrationMethod CalibrationMethod::parse(const std::string& text) {
  CalibrationMethod method;
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const auto row = std::find_if(kKinds.begin(), kKinds.end(),
                                [&](const auto& entry) { return entry.first == name; });
  const bool has_number = equals != std::string::npos;
  if (row == kKinds.end() || (has_number && row->second != Kind::kPercentile)) {
    throw Error(ErrorCode::kUsage, "--calibration '" + text +
                                       "': expected minmax, average, percentile[=P], entropy or "
                                       "mse");
  }
  method.kind = row->second;
  if (!has_number) return method;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, method.percentile);
  if (error != std::errc() || stop != end || !(method.percentile > 50) ||
      !(method.percentile <= 100)) {
    throw Error(ErrorCode::kUsage,
                "--calibration '" + text + "': expected a percentage above 50 and up to 100");
  }
  return method;
}

std::string CalibrationMethod::text() const {
  for (const auto& [name, value] : kKinds) {
    if (value != kind) continue;
    if (kind != Kind::kPercentile) return std::string(name);
    return std::string(name) + "=" + Json(percentile).dump();
  }
  return {};
}

NumberRange choose_range(const TensorRange& tensor, const CalibrationMethod& method,
                         const QuantForm& form) {
  const Histogram& histogram = tensor.histogram;
  switch (method.kind) {
    case Kind::kMinMax:
      break;
    case Kind::kAverage:
      return within(histogram, with_zero(tensor.average_low, tensor.average_high));
    case Kind::kPercentile:
      return percentile_range(histogram, method.percentile);
    case Kind::kEntropy:
      return entropy_range(histogram, form.high - form.low + 1);
    case Kind::kMse:
      return ErrorSearch(histogram, form).run();
  }
  return min_max(histogram);
}

QuantParams quant_params(const NumberRange& range, const QuantForm& form) {
  const auto levels = static_cast<double>(form.high - form.low);
  double scale = (range.high - range.low) / levels;
  if (form.symmetric) {
    scale = std::max(range.high / static_cast<double>(form.high - form.middle()),
                     -range.low / static_cast<double>(form.middle() - form.low));
  }
  QuantParams params;
  // A scale that float32 holds, not so small that its reciprocal overflows.
  params.scale = double{static_cast<float>(std::clamp(scale, 1e-30, 3e38))};
  if (!(scale > 0)) params.scale = 1;
  params.zero_point = form.middle();
  if (!form.symmetric) {
    const double zero = static_cast<double>(form.low) - range.low / params.scale;
    params.zero_point =
        std::clamp(std::llrint(std::min(zero, 1e6)), static_cast<long long>(form.low),
                   static_cast<long long>(form.high));
  }
  return params;
}

double quantization_error(const Histogram& histogram, const QuantParams& params,
                          const QuantForm& form) {
  if (histogram.count() == 0) return 0;
  const double width = histogram.width();
  const auto least = static_cast<double>(form.low - params.zero_point);
  const auto most = static_cast<double>(form.high - params.zero_point);
  // The integral of the squared error up to u steps from 0. The distance d from the nearest level k
  // gives d^3 / 3, and every whole step 1/12; beyond the last level d just grows.
  const auto integral = [&](double u) {
    const double level = std::clamp(std::nearbyint(u), least, most);
    const double distance = u - level;
    return level / 12 + distance * distance * distance / 3;
  };
  const double step = width / params.scale;
  const std::int32_t begin = histogram.used_begin();
  const std::int32_t end = histogram.used_end();
  const double first = (histogram.first_bin() + begin) * step;
  double before = integral(first);
  double sum = 0;
  for (std::int32_t i = begin; i < end; ++i) {
    const double after = integral((histogram.first_bin() + i + 1) * step);
    sum += (after - before) * static_cast<double>(histogram.bins()[index_of(i)]);
    before = after;
  }
  return sum / step * params.scale * params.scale / static_cast<double>(histogram.count());
}

}  // namespace npu
