// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace npu {

/// The middle value; for an even number of values the mean of the two middle ones. `values` must
/// not be empty, here and below.
double median(std::vector<double> values);

/// For an even number of values the smaller middle one, since disturbances only add time.
double lower_median(std::vector<double> values);

/// The smallest value that at least a share `q` of `sorted` does not exceed (nearest rank).
double nearest_rank(const std::vector<double>& sorted, double q);

/// The smallest value that more than `percent` % of `sorted` do not exceed; the largest value if
/// there is none. Of an even number of values 50 gives the larger middle one.
double upper_percentile(const std::vector<double>& sorted, int percent);

/// The median of the distances from `center`.
double median_absolute_deviation(std::vector<double> values, double center);

}  // namespace npu
