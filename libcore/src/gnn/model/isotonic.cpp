// SPDX-License-Identifier: Apache-2.0
// Isotonic regression over the partial order of the plane, exactly, by partition (Spouge, Wan and
// Wilbur, J. Optim. Theory Appl. 2003): of a set of points with mean a, those that the optimum puts
// above a are the upper set that gains most over a, a maximum closure, which a minimum cut finds.
// If no upper set gains anything, the whole set has the value a; else each half is solved by
// itself. O(points) cuts of O(points^2) arcs: meant for tables of a few dozen points per block.
#include "gnn/model/isotonic.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "flow/min_cut.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// Gains are cut off at this many steps, which is far below what any clock resolves.
constexpr double kSteps = 0x1p40;

bool is_below(const IsotonicPoint& a, const IsotonicPoint& b) { return a.x <= b.x && a.y <= b.y; }

class Fit {
 public:
  explicit Fit(const std::vector<IsotonicPoint>& points) : points_(points) {
    for (const IsotonicPoint& point : points) fitted_.push_back(point.value);
  }

  std::vector<double> run() {
    std::vector<std::size_t> all(points_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<std::vector<std::size_t>> open{std::move(all)};
    while (!open.empty()) {
      const std::vector<std::size_t> set = std::move(open.back());
      open.pop_back();
      if (is_monotone(set)) continue;
      const double mean = mean_of(set);
      std::vector<std::size_t> upper;
      std::vector<std::size_t> lower;
      const std::vector<char> is_upper = upper_set(set, mean);
      for (std::size_t i = 0; i < set.size(); ++i) {
        (is_upper[i] != 0 ? upper : lower).push_back(set[i]);
      }
      if (upper.empty() || lower.empty()) {
        for (const std::size_t i : set) fitted_[i] = mean;
      } else {
        open.push_back(std::move(upper));
        open.push_back(std::move(lower));
      }
    }
    return std::move(fitted_);
  }

 private:
  // What is in order stays as it is, to the last bit.
  bool is_monotone(const std::vector<std::size_t>& set) const {
    return std::all_of(set.begin(), set.end(), [&](std::size_t a) {
      return std::none_of(set.begin(), set.end(), [&](std::size_t b) {
        return is_below(points_[a], points_[b]) && points_[a].value > points_[b].value;
      });
    });
  }

  double mean_of(const std::vector<std::size_t>& set) const {
    double sum = 0;
    double weight = 0;
    for (const std::size_t i : set) {
      sum += points_[i].weight * points_[i].value;
      weight += points_[i].weight;
    }
    return sum / weight;
  }

  // Which points of the set the optimum puts above its mean.
  std::vector<char> upper_set(const std::vector<std::size_t>& set, double mean) const {
    double largest = 0;
    const auto gain = [&](std::size_t i) { return points_[i].weight * (points_[i].value - mean); };
    for (const std::size_t i : set) largest = std::max(largest, std::abs(gain(i)));
    if (!(largest > 0)) return std::vector<char>(set.size(), 0);
    CutNetwork network(set.size());
    for (std::size_t i = 0; i < set.size(); ++i) {
      const auto vertex = static_cast<CutNetwork::Vertex>(i);
      const auto steps = static_cast<std::int64_t>(std::llround(gain(set[i]) / largest * kSteps));
      if (steps > 0) network.add_source_capacity(vertex, steps);
      if (steps < 0) network.add_sink_capacity(vertex, -steps);
      for (std::size_t j = 0; j < set.size(); ++j) {
        if (i == j || !is_below(points_[set[i]], points_[set[j]])) continue;
        network.add_arc(vertex, static_cast<CutNetwork::Vertex>(j), kInfiniteCapacity);
      }
    }
    return solve_min_cut(network).source_side;
  }

  const std::vector<IsotonicPoint>& points_;
  std::vector<double> fitted_;
};

}  // namespace

std::vector<double> isotonic_fit(const std::vector<IsotonicPoint>& points) {
  return Fit(points).run();
}

}  // namespace npu::gnn
