// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace npu::gnn {

/// A value at a place of the plane.
struct IsotonicPoint {
  double x = 0;
  double y = 0;
  double value = 0;
  double weight = 1;  ///< above 0
};

/// Isotonic regression: the values that never fall where neither x nor y does, and whose weighted
/// squared distance from the given ones is least. By point, in the order given.
std::vector<double> isotonic_fit(const std::vector<IsotonicPoint>& points);

}  // namespace npu::gnn
