// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partition/placement_problem.hpp"
#include "partition/waves.hpp"

namespace npu {

/// A set of paths through the graph of units, given as how many of them begin at each unit and use
/// each arc. A plan launches a partition at least whenever a path changes device, so the mean of
/// the paths' changes bounds the launches of every plan from below.
struct LaunchPaths {
  std::int64_t count = 0;
  std::vector<std::int64_t> starts;  ///< by unit
  std::vector<std::int64_t> arcs;    ///< by arc of the unit graph (index into its targets)
};

/// Why no placement on two devices costs less than `value`. Every reader's flow moves a part of its
/// tensor's price from one end to the other: with f > 0 the producer costs f more on `far` and the
/// reader f less there, and the tensor's way from far to near f less; with f < 0 the other way
/// round. Whatever is left of a price is not negative, so that the cheaper device of each item,
/// summed up, is a lower bound.
struct CutCertificate {
  std::int32_t near = 0;
  std::int32_t far = 1;
  std::int64_t value = 0;
  std::vector<std::int64_t> flow;         ///< by PlacementProblem::readers
  LaunchPaths paths;                      ///< empty where launches are not counted
  std::vector<std::int64_t> launch_flow;  ///< by arc of the unit graph, where paths.count > 0
};

/// The bound that a certificate proves, by its definition; kNever where it proves nothing, with the
/// reason in `fault`. O(units + arcs + readers).
std::int64_t certified_bound(const PlacementProblem& problem, const CutCertificate& certificate,
                             std::string& fault);

/// A lower bound for any number of devices: each item's price is given out once, and each device
/// takes what is worth it by a minimum cut of its own. O(devices) cuts.
std::int64_t priced_bound(const PlacementProblem& problem, const std::vector<std::int64_t>& prices,
                          std::vector<std::vector<char>>* taken = nullptr);

enum class BoundProof : std::uint8_t { kCut, kPrices, kExhaustive };

struct Placement {
  Assignment assignment;
  std::vector<Wave> waves;        ///< the partitions
  std::int64_t placed_ticks = 0;  ///< computing and copying
  std::int64_t launch_ticks = 0;  ///< partitions
  std::int64_t bound_ticks = 0;   ///< no placement takes less
  BoundProof proof = BoundProof::kCut;
  Assignment cut_assignment;         ///< two devices: the minimum of computing and copying alone
  CutCertificate cut;                ///< and its proof
  CutCertificate bound;              ///< proof of bound_ticks where `proof` is kCut
  std::vector<std::int64_t> prices;  ///< by item, where `proof` is kPrices
  std::int64_t work = 0;  ///< items, readers and arcs that were looked at, over all cuts and tries

  std::int64_t total() const noexcept { return placed_ticks + launch_ticks; }
};

/// Sets problem.units.device to the placement's devices, too.
Placement solve_placement(PlacementProblem& problem);

}  // namespace npu
