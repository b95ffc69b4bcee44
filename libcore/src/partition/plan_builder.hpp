// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/partition/partition_plan.hpp"

namespace npu {

/// The node's device; throws Error kInvalidGraph if it has none.
const std::string& device_of(const Graph& graph, NodeId id);

/// Adds a transfer and its step and counts its bytes; does nothing if it has no tensors.
void append_transfer(const Graph& graph, PartitionPlan& plan, Transfer transfer);

/// Fills in boundaries, transfers and steps for partitions in a valid order: each tensor is copied
/// once per device that reads it, just before the first partition there that needs it, with one
/// transfer per source device.
void connect_partitions(const Graph& graph, PartitionPlan& plan);

}  // namespace npu
