// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// The graph with every fusion group contracted to one unit: what a strategy places as a whole.
struct UnitGraph {
  std::vector<std::vector<NodeId>> members;     ///< by unit, in list order
  std::vector<std::int32_t> device;             ///< by unit, index into device_names
  std::vector<std::string> device_names;        ///< in order of first use
  std::vector<std::int32_t> predecessor_count;  ///< distinct predecessors
  std::vector<std::int32_t> order;              ///< a topological order of the units
  std::vector<std::int32_t> unit_of;            ///< by node

  std::size_t size() const noexcept { return members.size(); }
  std::span<const std::int32_t> successors(std::int32_t unit) const {
    const auto begin = static_cast<std::size_t>(offsets[static_cast<std::size_t>(unit)]);
    const auto end = static_cast<std::size_t>(offsets[static_cast<std::size_t>(unit) + 1]);
    return {targets.data() + begin, end - begin};
  }

  std::vector<std::int64_t> offsets;  ///< CSR of distinct successors
  std::vector<std::int32_t> targets;
};

/// Throws Error kInvalidGraph if a node has no device, a group has two, or a group is not convex.
UnitGraph build_unit_graph(const Graph& graph);

}  // namespace npu
