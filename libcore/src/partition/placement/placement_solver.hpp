// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partition/device_runs.hpp"
#include "partition/placement/bounds.hpp"
#include "partition/placement/placement_problem.hpp"

namespace npu {

enum class BoundProof : std::uint8_t { kCut, kPrices, kExhaustive };

struct Placement {
  Assignment assignment;
  std::vector<DeviceRun> runs;    ///< the partitions
  std::int64_t placed_ticks = 0;  ///< computing and copying
  std::int64_t launch_ticks = 0;  ///< partitions
  std::int64_t bound_ticks = 0;   ///< no placement takes less
  BoundProof proof = BoundProof::kCut;
  Assignment cut_assignment;         ///< two devices: the minimum of computing and copying alone
  CutCertificate cut;                ///< and its proof
  CutCertificate bound;              ///< proof of bound_ticks if `proof` is kCut
  std::vector<std::int64_t> prices;  ///< by item, if `proof` is kPrices
  std::int64_t work = 0;             ///< items, readers and arcs visited, over all cuts and tries

  std::int64_t total() const noexcept { return placed_ticks + launch_ticks; }
};

/// Also sets problem.fused.device to the placement's devices.
Placement solve_placement(PlacementProblem& problem);

}  // namespace npu
