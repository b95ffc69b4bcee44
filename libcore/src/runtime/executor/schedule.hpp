// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "runtime/executor/run_devices.hpp"
#include "runtime/executor/state_places.hpp"
#include "runtime/executor/tap_places.hpp"

namespace npu {

/// What every run of a plan does: its steps, and the slots that they read and write.
struct Schedule {
  static constexpr std::size_t kNoSlot = SIZE_MAX;

  /// The only copy of a tensor on a device.
  struct Slot {
    TensorId tensor;
    std::size_t device = 0;
    std::size_t partition = 0;   ///< of a result: what fills it, and the
    std::size_t output = 0;      ///< place among its outputs
    std::int32_t readers = 0;    ///< steps, and the graph's outputs
    bool read_by_other = false;  ///< by a transfer; on devices without queues: may need host memory
    bool needs_host = false;     ///< by more than copies of the backend; on devices with queues:
                                 ///< one fetches it
    /// The device in whose pinned memory it is fetched, if it is one's.
    std::optional<std::size_t> staged_on = {};
    bool is_kept = false;     ///< until the run ends, since work of a queue may use it
    bool is_given = false;    ///< a result, in memory of the host that the caller gets
    bool is_state = false;    ///< in the buffer of a state, which the next run changes
    std::string layout = {};  ///< of the backend's own, for one that is read; empty: row-major
  };

  struct Copy {
    std::size_t from = 0;    ///< slot; for uploads, the graph input
    std::size_t to = 0;      ///< slot
    bool is_direct = false;  ///< of a transfer: by a copy of the backend
  };

  /// The input of a state on a device that reads it.
  struct StateInput {
    std::size_t place = 0;  ///< of the state
    std::size_t slot = 0;
  };

  struct Step {
    PlanStep::Kind kind = PlanStep::Kind::kPartition;
    std::int32_t index = 0;
    std::size_t device = 0;
    std::vector<std::size_t> after;    ///< steps of other devices that must be done
    std::vector<Copy> uploads;         ///< of a partition: graph inputs that are not on the device
    std::vector<Copy> copies;          ///< of a transfer
    std::vector<std::size_t> inputs;   ///< slots, of a partition
    std::vector<std::size_t> outputs;  ///< slots, of a partition
    std::vector<std::size_t> reads;    ///< slots whose reader count drops after the step
  };

  std::vector<Slot> slots;
  std::vector<Step> steps;
  std::vector<StateInput> state_inputs;
  /// Slots, by graph output; kNoSlot if no node produces it, or its state's device has it.
  std::vector<std::size_t> outputs;
  std::vector<std::size_t> taps;  ///< slots, by tap; kNoSlot if its program hands it out

  /// Whether some step waits for no step right before it.
  bool has_independent_steps() const;
};

/// If a plan lists a transfer twice, the second one is free; a copy is dropped after the last step
/// that reads it. `compiled`, taps and states are those of the plan.
Schedule make_schedule(const Graph& graph, const PartitionPlan& plan,
                       const std::vector<CompiledPartition>& compiled, const RunDevices& devices,
                       const std::vector<TapPlace>& taps, const std::vector<StatePlace>& states);

}  // namespace npu
