// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "npu/runtime/executor.hpp"
#include "runtime/executor/loaded_programs.hpp"
#include "runtime/executor/result_memory.hpp"
#include "runtime/executor/run_devices.hpp"
#include "runtime/executor/schedule.hpp"
#include "runtime/executor/state_places.hpp"
#include "runtime/executor/tap_places.hpp"
#include "support/thread_pool.hpp"

namespace npu {

/// What the runs of an executor share.
struct Executor::Parts {
  Parts(const Graph& graph, const PartitionPlan& plan, const Target& target,
        const std::vector<Tensor>& weights, const ExecutorOptions& options,
        const std::vector<CompiledPartition>& compiled, const OpenDevices& open);

  const Graph& graph;
  const PartitionPlan& plan;
  RunDevices devices;
  std::vector<TapPlace> taps;  ///< by tap of the options
  std::vector<DeviceMemoryNeed> memory;
  LoadedPrograms programs;
  std::shared_ptr<DeviceStates> states;  ///< null: they are inputs and outputs
  std::vector<StatePlace> state_places;
  Schedule schedule;
  std::shared_ptr<ResultMemory> results;
  std::unique_ptr<ThreadPool> workers;  ///< null: a run is one thread
  std::shared_ptr<RunStop> stop;        ///< may be null
  bool has_times = false;               ///< programs and queues are made for them
  bool overlaps = false;
  double load_ms = 0;
};

}  // namespace npu
