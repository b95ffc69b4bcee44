// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "npu/compile/compile_report.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/compile/memory_needs.hpp"
#include "npu/device/backend.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/run_stop.hpp"
#include "npu/target/target.hpp"

namespace npu {

class ResultMemory;
class ThreadPool;

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

  /// `weights` by TensorId, as load_weights returns them. Keeps references to graph and plan, which
  /// must outlive it. Compiles every partition first, without a cache. Throws Error kUnsupported if
  /// a backend is missing or refuses a partition. `devices` are open already, with the same
  /// options. Throws Error kInfeasible, before anything is loaded, if it does not fit in a device's
  /// memory, or in backend_options["memory_limit"].
  Executor(const Graph& graph, const PartitionPlan& plan, const Target& target,
           const std::vector<Tensor>& weights, const ExecutorOptions& options,
           const OpenDevices& devices = {});
  /// The same with compiled partitions, by partition id, and with devices that are already open and
  /// were opened with the same options (any number of them). Weights that partitions hold in their
  /// blobs may be missing.
  Executor(const Graph& graph, const PartitionPlan& plan, const Target& target,
           const std::vector<Tensor>& weights, const ExecutorOptions& options,
           const std::vector<CompiledPartition>& compiled, const OpenDevices& devices);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// `inputs` in the order of graph_inputs; the results follow graph_outputs, then the options'
  /// taps. `record` may be null. Times are there with ExecutorOptions::times alone.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, RunRecord* record,
                          bool with_node_times = false, bool with_step_times = false);

  /// The same in two halves, so that as many runs as ExecutorOptions::in_flight go on at once; by
  /// one thread. Where all devices have queues, start does not wait for any of them. A run that is
  /// not waited for ends when its last owner goes; every run has to go before its executor. Throws
  /// Error kUsage if no further run may go on: one counts until it is gone.
  std::shared_ptr<Run> start(std::vector<Tensor> inputs, RunRecord* record,
                             bool with_node_times = false, bool with_step_times = false);
  std::vector<Tensor> wait(const std::shared_ptr<Run>& run);

  double load_ms() const noexcept { return load_ms_; }
  /// Of a quantized model the share of multiply-adds that multiply int8 numbers.
  std::optional<double> int8_macs() const { return int8_share_.value(); }
  /// Whether some steps of a run go on at the same time, since they are independent.
  bool overlaps() const noexcept { return overlaps_; }
  std::int64_t weight_uploads() const noexcept { return weight_uploads_; }
  std::int64_t weight_bytes() const noexcept { return weight_bytes_; }
  /// What its programs take, by device in the order of the target.
  const std::vector<DeviceMemoryNeed>& memory() const noexcept { return memory_; }
  /// The devices that it runs on, for another one.
  OpenDevices devices() const;
  /// Name and version of every backend that is in use.
  std::map<std::string, std::string> backend_versions() const;

 private:
  struct LoadedPartition {
    std::function<void()> check;   // of its blob, before a run
    std::size_t report_steps = 0;  // of the backend's compile report
  };
  /// A result that is no output of the graph.
  struct Tap {
    TensorId tensor;
    std::size_t partition = 0;
    std::optional<std::size_t> index;  // among the taps of its program; none: a boundary tensor
  };
  struct SharedWeights {
    std::set<TensorId> tensors;
    std::shared_ptr<DeviceWeights> weights;  // null: there are none
  };
  struct Slot;
  struct Step;
  struct Flight;

  void load(const Target& target, const std::vector<Tensor>& weights,
            const ExecutorOptions& options, const std::vector<CompiledPartition>& compiled,
            const OpenDevices& open);
  void open_devices(const Target& target, const ExecutorOptions& options, const OpenDevices& open);
  const Tensor& weight_of(TensorId id, std::size_t partition,
                          const std::vector<Tensor>& weights) const;
  void share_weights(const std::vector<Tensor>& weights,
                     const std::vector<CompiledPartition>& compiled);
  void load_partitions(const std::vector<Tensor>& weights,
                       const std::vector<CompiledPartition>& compiled);
  void find_scratch(const std::vector<CompiledPartition>& compiled);
  std::vector<std::shared_ptr<DeviceBuffer>> make_scratch() const;
  void place_taps(const std::vector<std::string>& names,
                  const std::vector<CompiledPartition>& compiled);
  ProgramSignature signature_of(std::size_t partition, const CompiledPartition& compiled) const;
  void check_in_flight(std::int32_t wanted) const;
  void open_flights(const ExecutorOptions& options);
  bool shares_events(std::int32_t a, std::int32_t b) const;
  bool copies_directly(std::int32_t from, std::int32_t to) const;
  bool has_several_partitions(std::size_t d) const;
  bool submits_all() const;
  std::vector<DeviceMemoryNeed> sum_memory(
      const Target& target, const std::vector<CompiledPartition>& compiled,
      const std::function<std::optional<MemoryReport>(std::size_t)>& ask) const;
  void check_memory_limits(const Target& target, const ExecutorOptions& options,
                           const std::vector<CompiledPartition>& compiled);
  void take_limits(std::vector<DeviceMemoryNeed>& needs) const;
  void measure_memory(const Target& target, const std::vector<CompiledPartition>& compiled);
  void load_within_memory(const Target& target, const ExecutorOptions& options,
                          const std::vector<Tensor>& weights,
                          const std::vector<CompiledPartition>& compiled);
  void schedule(const std::vector<CompiledPartition>& compiled);
  void add_copy(Step& step, std::size_t from, std::size_t to);
  void place_results();
  void start_workers();
  void log_loaded() const;
  std::size_t slot(TensorId tensor, std::int32_t device);

  const Graph& graph_;
  const PartitionPlan& plan_;
  std::vector<Tensor> output_weights_;  // graph outputs that are weights, by output
  std::vector<std::string> device_names_;
  std::vector<std::shared_ptr<DeviceInstance>> devices_;
  std::vector<char> has_queue_;               // by device: work is submitted to it
  bool has_times_ = false;                    // programs and queues are made for them
  std::vector<std::uint64_t> scratch_bytes_;  // by device: of programs that take turns
  std::map<std::string, std::int32_t> device_index_;
  std::vector<SharedWeights> shared_;  // by device
  std::vector<LoadedPartition> partitions_;
  std::vector<std::unique_ptr<Flight>> flights_;
  Int8Share int8_share_;
  std::vector<Slot> slots_;
  std::map<std::pair<TensorId, std::int32_t>, std::size_t> slot_index_;
  std::vector<Step> steps_;
  std::vector<std::size_t> output_slots_;  // by graph output; unused if no node produces it
  std::vector<Tap> taps_;                  // by tap of the options
  std::vector<std::size_t> tap_slots_;     // by tap; unused if its program hands it out
  std::shared_ptr<ResultMemory> results_;
  std::unique_ptr<ThreadPool> workers_;
  std::shared_ptr<RunStop> stop_;
  bool overlaps_ = false;
  double load_ms_ = 0;
  std::int64_t weight_uploads_ = 0;
  std::int64_t weight_bytes_ = 0;
  std::vector<DeviceMemoryNeed> memory_;
};

}  // namespace npu
