// SPDX-License-Identifier: Apache-2.0
// A document says twice which partition a node is in: in the node and in npu.partition.
#pragma once

#include <cstdint>
#include <string>

#include "npu/ir/graph.hpp"

namespace npu {

/// What is wrong with a node's `partition` where npu.partition lists the node in `listed`; empty if
/// the two agree.
inline std::string stated_partition_fault(const Node& node, std::int64_t listed) {
  if (node.partition == listed) return {};
  return "node '" + node.name + "' has the partition " +
         (node.partition ? std::to_string(*node.partition) : std::string("null")) +
         ", but npu.partition lists it in partition " + std::to_string(listed);
}

}  // namespace npu
