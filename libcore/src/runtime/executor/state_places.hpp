// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "runtime/executor/device_states.hpp"
#include "runtime/executor/run_devices.hpp"

namespace npu {

/// What the runs of a plan do with a state.
struct StatePlace {
  static constexpr std::size_t kNone = SIZE_MAX;

  DeviceState* state = nullptr;
  TensorId input;                     ///< invalid: no node reads it as it was
  TensorId output;                    ///< invalid: no node writes it
  std::size_t device = kNone;         ///< that owns it, by number; kNone: one that the plan has not
  std::size_t writer = kNone;         ///< the partition that writes it,
  std::size_t writer_output = kNone;  ///< and its place among the partition's outputs
  bool is_written_there = false;      ///< on the device that owns it
  bool is_one_buffer = false;         ///< its output is the buffer of its input
  StateUse use;
};

/// Finds those of the graph among `states`, or adds them, on the device that writes, else reads
/// them. Throws Error kInvalidGraph if one differs from the state of its name.
std::vector<StatePlace> place_states(const Graph& graph, const PartitionPlan& plan,
                                     const std::vector<CompiledPartition>& compiled,
                                     const RunDevices& devices, DeviceStates& states);

}  // namespace npu
