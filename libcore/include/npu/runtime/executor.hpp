// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/compile/memory_needs.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/run_stop.hpp"
#include "npu/target/target.hpp"

namespace npu {

class DeviceStates;
struct LoadedModels;

/// What a run does with a state: overwrites part of it where it lies; writes all of it into a
/// second buffer, which takes turns with the first; copies it, because the one cannot be done on
/// its device and the other would be no less; or only reads it.
enum class StatePath : std::uint8_t { kInPlace, kInTurns, kCopied, kKept };
/// "in_place", "in_turns", "copied", "kept".
const char* state_path_name(StatePath path) noexcept;

struct StateUse {
  std::string name;
  std::string device;      ///< that owns it
  std::int64_t bytes = 0;  ///< of its value
  StatePath path = StatePath::kKept;
  std::int64_t copied_bytes = 0;    ///< within its device, in each run
  std::int64_t transfer_bytes = 0;  ///< between devices, in each run
};

struct ExecutorOptions {
  std::int32_t threads = 0;  ///< 0: all cores
  bool overlap = true;       ///< independent steps on different devices run concurrently
  /// Steps go to the queues of devices that have them, unless they are not to overlap. A device has
  /// only so many queues, and an executor keeps its own open.
  bool queues = false;
  std::int32_t in_flight = 1;  ///< runs that may go on at once; more than one needs queues
  /// Runs can be asked for times of nodes and steps. Some devices are slower for that.
  bool times = false;
  std::shared_ptr<RunStop> stop = {};  ///< what ends runs early; may be null
  /// Names of results that are no outputs, which every run gives behind these. Partitions hand them
  /// out as they are compiled.
  std::vector<std::string> taps = {};
  /// Further members of the options that each backend is opened with, on top of the target's.
  Json backend_options = Json::object();
  /// Where the states of the graph (npu.states of npu-ir(5)) lie from one run to the next; null:
  /// they are inputs and outputs like all others. Runs then go on one at a time.
  std::shared_ptr<DeviceStates> states = {};
  /// Models that other executors have loaded, too; null: it has its own.
  std::shared_ptr<LoadedModels> models = {};
};

/// The options that the backend of a device is opened with, as JSON: the
/// target's, then those of `options`.
std::string device_options(const Device& device, const ExecutorOptions& options);

/// How the tensors of a transfer, of inputs or of outputs arrived: in place, by a copy of the
/// backend, through memory of the host that queues read and write, or by other reads and writes.
enum class TransferPath : std::uint8_t { kWrapped, kDeviceCopy, kStaged, kCopied };

/// In microseconds since a run began.
struct TimeSpan {
  double begin_us = 0;
  double end_us = 0;
};

/// When one step of a run began and ended, in microseconds since the run began.
struct StepRecord {
  enum class Kind : std::uint8_t { kPartition, kTransfer, kInput, kOutput };
  Kind kind = Kind::kPartition;
  std::int32_t index = 0;  ///< partition or transfer
  std::string device;      ///< where it ran, or where the tensors arrived
  double start_us = 0;
  double end_us = 0;
  std::int64_t tensors = 0;  ///< copied, not counting those already on the device
  std::int64_t bytes = 0;
  std::int64_t copied_bytes = 0;            ///< of them: the rest was used where it was
  std::set<TransferPath> paths = {};        ///< of the tensors
  std::vector<std::uint64_t> node_ns = {};  ///< partitions: by node, if asked for
  std::vector<std::uint64_t> step_ns = {};  ///< partitions: by step of the compile report, if asked
  /// Partitions: when each node ran, by the device's clock; empty if it does not say.
  std::vector<TimeSpan> node_spans = {};
  double clock_error_us = 0;  ///< by which all of these may be off
};

/// "wrapped", "device copy", "staged" or "copied"; "partly copied" if some of it was used in place;
/// empty if all was there already.
std::string path_text(const StepRecord& step);

struct RunRecord {
  std::vector<StepRecord> steps;
  double total_us = 0;
};

/// Runs a plan. The constructor loads the partitions and uploads their weights, once; run may be
/// called any number of times. A copy of a tensor on a device stays valid until its last reader
/// there is done: it is never fetched twice and never overwritten. Steps that do not depend on each
/// other run concurrently, one thread per device, or in the queues of devices that have them; the
/// results are the same either way.
class Executor {
 public:
  class Run;

  /// `weights` by TensorId, as load_weights returns them, but for those that partitions hold in
  /// their blobs; `compiled` by partition id. Keeps references to graph and plan, which must
  /// outlive it. `devices` (any number of them) are open already, with the same options. Throws
  /// Error kUnsupported if a backend is missing; kInfeasible, before anything is loaded, if it does
  /// not fit in a device's memory, or in backend_options["memory_limit"].
  Executor(const Graph& graph, const PartitionPlan& plan, const Target& target,
           const std::vector<Tensor>& weights, const ExecutorOptions& options,
           const std::vector<CompiledPartition>& compiled, const OpenDevices& devices = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// `inputs` in the order of graph_inputs; the results follow graph_outputs, then the options'
  /// taps. `record` may be null. Times are there with ExecutorOptions::times alone. With
  /// ExecutorOptions::states those of states are not looked at, and are results without data.
  std::vector<Tensor> run(std::vector<Tensor> inputs, RunRecord* record,
                          bool with_node_times = false, bool with_step_times = false);

  /// The same in two halves, so that as many runs as ExecutorOptions::in_flight go on at once; by
  /// one thread. Where all devices have queues, start does not wait for any of them. A run that is
  /// not waited for ends when its last owner goes; every run has to go before its executor. Throws
  /// Error kUsage if no further run may go on: one counts until it is gone.
  std::shared_ptr<Run> start(std::vector<Tensor> inputs, RunRecord* record,
                             bool with_node_times = false, bool with_step_times = false);
  std::vector<Tensor> wait(const std::shared_ptr<Run>& run);

  double load_ms() const noexcept;
  /// Of a quantized model the share of multiply-adds that multiply int8 numbers.
  std::optional<double> int8_macs() const;
  /// Whether some steps of a run go on at the same time, since they are independent.
  bool overlaps() const noexcept;
  std::int64_t weight_uploads() const noexcept;
  std::int64_t weight_bytes() const noexcept;
  /// The graph's states, if they lie on devices.
  std::vector<StateUse> states() const;
  /// What its programs take, by device in the order of the target.
  const std::vector<DeviceMemoryNeed>& memory() const noexcept;
  /// The devices that it runs on, for another one.
  OpenDevices devices() const;
  /// Name and version of every backend that is in use.
  std::map<std::string, std::string> backend_versions() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Compiles every partition, without a cache, for one that only a few runs need. Throws Error
/// kUnsupported if a backend refuses a partition, and what the constructor throws.
Executor compile_and_load(const Graph& graph, const PartitionPlan& plan, const Target& target,
                          const std::vector<Tensor>& weights, const ExecutorOptions& options,
                          const OpenDevices& devices = {});

}  // namespace npu
