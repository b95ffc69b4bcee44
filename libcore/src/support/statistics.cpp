// SPDX-License-Identifier: Apache-2.0
// Medians and quantiles of measured times.
//
// There are several kinds of each, since reports promise different ones; their names tell them
// apart. O(values) for medians, O(1) for quantiles of sorted values.
#include "support/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace npu {
namespace {

// The value at `place` in sorted order; leaves the smaller ones before it.
double select(std::vector<double>& values, std::size_t place) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

double median(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  const double upper = select(values, middle);
  if (values.size() % 2 == 1) return upper;
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(middle);
  return (upper + *std::max_element(values.begin(), end)) / 2;
}

double lower_median(std::vector<double> values) { return select(values, (values.size() - 1) / 2); }

double nearest_rank(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

double upper_percentile(const std::vector<double>& sorted, int percent) {
  const std::size_t rank = sorted.size() * static_cast<std::size_t>(percent) / 100;
  return sorted[std::min(rank, sorted.size() - 1)];
}

double median_absolute_deviation(std::vector<double> values, double center) {
  for (double& value : values) value = std::abs(value - center);
  return median(std::move(values));
}

}  // namespace npu
