// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partition/placement/placement_problem.hpp"

namespace npu {

/// A set of paths through the fused graph, given as the number of them that begin at each fused
/// node and that use each arc. A plan needs at least one launch whenever a path changes device, so
/// the mean of the paths' changes is a lower bound on the launches of every plan.
struct LaunchPaths {
  std::int64_t count = 0;
  std::vector<std::int64_t> starts;  ///< by fused node
  std::vector<std::int64_t> arcs;    ///< by arc of the fused graph (index into its targets)
};

/// Proof that no placement on two devices costs less than `value`. Every reader's flow moves a part
/// of its tensor's price from one end to the other: with f > 0 the producer costs f more on
/// `device_b`, the reader f less there, and copying the tensor from device_b to device_a f less;
/// with f < 0 the other way round. No price becomes negative, so the sum over items of the cheaper
/// device's reduced cost is a lower bound.
struct CutCertificate {
  std::int32_t device_a = 0;
  std::int32_t device_b = 1;
  std::int64_t value = 0;
  std::vector<std::int64_t> flow;         ///< by PlacementProblem::readers
  LaunchPaths paths;                      ///< empty if launches are not counted
  std::vector<std::int64_t> launch_flow;  ///< by arc of the fused graph, if paths.count > 0
};

/// The bound that a certificate proves, by definition; kNever if it proves nothing, with the reason
/// in `fault`. O(fused nodes + arcs + readers).
std::int64_t certified_bound(const PlacementProblem& problem, const CutCertificate& certificate,
                             std::string& fault);

/// A lower bound for any number of devices: each item's price is paid once, and for each device a
/// separate minimum cut selects the items that are worth taking. O(devices) cuts.
std::int64_t priced_bound(const PlacementProblem& problem, const std::vector<std::int64_t>& prices,
                          std::vector<std::vector<char>>* taken = nullptr);

/// The part of a launch's price that `times` of `count` paths pay.
std::int64_t launch_share(std::int64_t times, std::int64_t price, std::int64_t count);

}  // namespace npu
