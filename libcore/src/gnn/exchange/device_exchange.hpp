// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/exchange/rank_plan.hpp"

namespace npu::gnn {

/// What crosses from the other parts of a graph to one of them, where a device that is not the host
/// computes it: features of nodes, or sums over all edges from other parts into a node. As between
/// two ranks, as many edges of a matching prove that no fewer rows can.
struct PartCover {
  std::int32_t part = 0;
  std::int64_t edges = 0;    ///< from other parts; parallel ones once
  std::int64_t sources = 0;  ///< nodes that they come from: the halo
  std::int64_t targets = 0;  ///< nodes that they lead to
  std::int64_t rows = 0;     ///< that cross
  std::vector<CrossingRow> cover = {};
  bool operator==(const PartCover&) const = default;

  /// By how many rows the part becomes smaller. Where rows are added up, one row of zeros stands
  /// for the further edges of all sums; where the largest is taken, they read the sum once more.
  std::int64_t saved_rows(bool is_max) const noexcept;
};

/// What crosses in one layer, to all parts that read it on a device other than the host.
struct LayerCrossing {
  std::int32_t layer = 1;
  std::int64_t rows = 0;   ///< with the rows of zeros
  std::int64_t halo = 0;   ///< rows if only features crossed
  std::int64_t bytes = 0;  ///< of `rows`
  bool operator==(const LayerCrossing&) const = default;
};

/// What crosses between the host's memory and the other devices of a plan for one process.
struct DeviceExchange {
  std::string host;              ///< the device in whose memory rows lie between layers
  std::vector<PartCover> parts;  ///< by part; those that sums make no smaller are left out
  std::vector<LayerCrossing> layers;
  bool operator==(const DeviceExchange&) const = default;
};

}  // namespace npu::gnn
