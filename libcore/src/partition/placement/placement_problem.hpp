// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flow/min_cut.hpp"
#include "npu/cost/cost_model.hpp"
#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"
#include "partition/fused_graph.hpp"

namespace npu {

/// The price of the impossible.
inline constexpr std::int64_t kNever = kInfiniteCapacity;

/// A device for every item, as an index into the target's devices.
using Assignment = std::vector<std::int32_t>;

/// The items to place and their costs, in whole ticks, so that sums are exact and do not depend on
/// their order. An item moves as a whole: fusion groups or single nodes that share a state, with
/// the getitem nodes that select their results.
struct PlacementProblem {
  struct Tensor {
    TensorId id;
    std::int32_t producer = 0;  ///< item
    std::int32_t begin = 0;     ///< its readers in other items are readers[begin .. end), each once
    std::int32_t end = 0;
  };

  FusedGraph fused;                   ///< `device` by the target's indices
  std::vector<std::int32_t> item_of;  ///< by fused node
  std::vector<NodeId> first_node;     ///< by item
  std::size_t items = 0;
  std::size_t devices = 0;
  double ticks_per_us = 1;           ///< a power of ten
  std::vector<std::int64_t> cost;    ///< by item and device; kNever if it cannot run there
  std::vector<std::int64_t> launch;  ///< by device, for each partition
  std::vector<Tensor> tensors;       ///< that another item reads
  std::vector<std::int32_t> readers;
  std::vector<std::int64_t> transfer;       ///< by tensor, source and destination
  Assignment tagged;                        ///< the devices that the document states
  std::vector<std::uint64_t> node_devices;  ///< by node: bits of the devices that may run it

  std::int64_t cost_of(std::int32_t item, std::int32_t device) const {
    return cost[static_cast<std::size_t>(item) * devices + static_cast<std::size_t>(device)];
  }
  std::int64_t transfer_of(std::size_t tensor, std::int32_t from, std::int32_t to) const {
    return transfer[(tensor * devices + static_cast<std::size_t>(from)) * devices +
                    static_cast<std::size_t>(to)];
  }
  std::span<const std::int32_t> readers_of(const Tensor& tensor) const {
    return {readers.data() + tensor.begin, readers.data() + tensor.end};
  }
  double microseconds(std::int64_t ticks) const {
    return static_cast<double>(ticks) / ticks_per_us;
  }
};

/// Throws Error kInvalidGraph as build_fused_graph does, kUnsupported for more than 64 devices and
/// for times that are not finite.
PlacementProblem build_placement_problem(const Graph& graph, const Target& target,
                                         const CostModel& cost);

/// The cost of copying tensor `t`: once per device that reads it other than its producer's.
std::int64_t tensor_cost(const PlacementProblem& problem, const Assignment& assignment,
                         std::size_t t);

/// The cost of computing, and of copying each tensor once per destination; kNever if an item cannot
/// run on its device. O(items + readers).
std::int64_t placement_cost(const PlacementProblem& problem, const Assignment& assignment);

}  // namespace npu
