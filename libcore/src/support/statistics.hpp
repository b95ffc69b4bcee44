// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace npu {

/// The middle value; of an even number of values the mean of the two in the middle. `values` is not
/// empty, here and below.
double median(std::vector<double> values);

/// Of an even number of values the smaller one of the middle: what disturbs a run only adds time.
double lower_median(std::vector<double> values);

/// Of an even number of values the larger one of the middle.
double upper_median(std::vector<double> values);

/// The smallest value that at least a share `q` of `sorted` does not exceed (nearest rank).
double nearest_rank(const std::vector<double>& sorted, double q);

/// The smallest value that more than `percent` of a hundred of `sorted` do not exceed; the largest
/// one if there is none such. upper_percentile(values, 50) is their upper median.
double upper_percentile(const std::vector<double>& sorted, int percent);

/// The median of the distances from `center`.
double median_absolute_deviation(std::vector<double> values, double center);

}  // namespace npu
