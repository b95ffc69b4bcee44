// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device/device_program.hpp"
#include "device/queue.hpp"
#include "npu/compile/compile_report.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/tensor/tensor.hpp"
#include "runtime/executor/run_devices.hpp"
#include "runtime/executor/tap_places.hpp"

namespace npu {

/// What a queue of a device is for. A device that makes several partitions of a run has one for
/// each, so that no transfer waits behind a partition that does not need it, nor an input behind
/// another device's result; every other has one for all.
enum class Lane : std::uint8_t { kRun, kUpload, kArrival, kFetch };
inline constexpr std::size_t kLanes = 4;

/// What a run has of its own, and the next one takes over. Queues go first, with their work.
struct Flight {
  std::vector<std::unique_ptr<DeviceProgram>> programs;             // by partition
  std::vector<std::vector<std::shared_ptr<DeviceBuffer>>> outputs;  // by partition, or empty
  std::vector<std::vector<std::shared_ptr<DeviceBuffer>>> taps;     // by partition
  // By slot; null if there is none: where queues write, and where the host finds what queues have
  // read.
  std::vector<std::shared_ptr<DeviceBuffer>> arrivals;
  std::vector<std::shared_ptr<DeviceBuffer>> staging;
  std::vector<std::array<std::unique_ptr<DeviceQueue>, kLanes>> queues;  // by device and lane
  bool is_busy = false;
};

/// Models of blobs with several programs, by blob; each is loaded once for all executors that have
/// them in common.
struct LoadedModels {
  std::map<std::pair<const DeviceInstance*, const std::byte*>, std::shared_ptr<DeviceModel>> list;
};

/// A compiled plan, and where it is to run.
struct PlanToLoad {
  const Graph& graph;
  const PartitionPlan& plan;
  const std::vector<CompiledPartition>& compiled;  ///< by partition
  const std::vector<Tensor>& weights;              ///< by TensorId
  const RunDevices& devices;
  const std::vector<TapPlace>& taps;
  bool is_timed = false;  ///< programs and queues are made for times
  LoadedModels& models;
};

/// The programs of a plan. Models and weights are loaded once for all runs.
struct LoadedPrograms {
  struct Partition {
    std::function<void()> check;   ///< of its blob, before a run; may be null
    std::size_t report_steps = 0;  ///< of the backend's compile report
  };

  std::vector<Partition> partitions;
  std::vector<std::unique_ptr<Flight>> flights;  ///< as many as runs that may go on at once
  std::vector<Tensor> output_weights;            ///< by graph output: those that are weights
  std::vector<std::uint64_t> scratch_bytes;      ///< by device: of programs that take turns
  Int8Share int8;
  std::int64_t weight_uploads = 0;
  std::int64_t weight_bytes = 0;
};

/// Loads models and weights, with a program of each partition for the first flight. Throws Error
/// kInvalidGraph for a weight that is missing.
LoadedPrograms load_programs(const PlanToLoad& from);

/// A program of each partition and the queues of each device for so many runs at once, with the
/// buffers that they write to.
void open_flights(LoadedPrograms& programs, const PlanToLoad& from, std::int32_t count);

}  // namespace npu
