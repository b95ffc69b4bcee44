// SPDX-License-Identifier: Apache-2.0
// Runs an execution plan.
//
// The constructor turns the plan into a schedule: for every step the slots that it reads and
// writes, a slot being the only copy of a tensor on one device, and the earlier steps that it waits
// for. If a plan lists a transfer twice, the second one is free; a copy is dropped after the last
// step that reads it.
//
// Every device has one thread: the caller's for the device of the first step, a worker's for each
// other one. A thread runs its device's steps in the order of the plan and waits before each for
// the steps of other devices that it reads from, so what a step sees does not depend on timing. All
// calls on a device come from its thread, freeing buffers included: a copy whose last reader was
// another device's thread is handed back to be freed. A transfer reads host memory that the
// source's thread described, or fetched, when it produced the tensor. If every step waits for the
// one before it, nothing could overlap and no thread is created. A run is O(steps + tensors)
// besides the work of the backends.
#include "npu/runtime/executor.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>

#include "npu/support/elapsed.hpp"
#include "npu/support/error.hpp"
#include "npu/support/log.hpp"
#include "npu/support/text.hpp"
#include "support/thread_pool.hpp"

namespace npu {
/// The copy of a tensor on a device, as the schedule sees it.
struct Executor::Slot {
  TensorId tensor;
  std::int32_t device = 0;
  std::int32_t readers = 0;    ///< steps, and the graph's outputs
  bool read_by_other = false;  ///< by a transfer or the graph's outputs: needs host memory
};

struct Executor::Step {
  struct Copy {
    std::size_t from = 0;  ///< slot; for uploads, the graph input
    std::size_t to = 0;    ///< slot
  };
  PlanStep::Kind kind = PlanStep::Kind::kPartition;
  std::int32_t index = 0;
  std::int32_t device = 0;
  std::vector<std::size_t> after;   ///< steps of other devices that must be done
  std::vector<Copy> uploads;        ///< of a partition: graph inputs that are not on the device yet
  std::vector<Copy> copies;         ///< of a transfer
  std::vector<std::size_t> inputs;  ///< slots, of a partition
  std::vector<std::size_t> outputs;  ///< slots, of a partition
  std::vector<std::size_t> reads;    ///< slots whose reader count drops after the step
};

std::string device_options(const Device& device, const ExecutorOptions& options) {
  return backend_options_text(device, options.threads, options.backend_options);
}

Executor::Executor(const Graph& graph, const PartitionPlan& plan, const Target& target,
                   const std::vector<Tensor>& weights, const ExecutorOptions& options,
                   const OpenDevices& devices)
    : graph_(graph), plan_(plan) {
  const auto start = Clock::now();
  CompileOptions compile;
  compile.threads = options.threads;
  compile.backend_options = options.backend_options;
  const CompiledModel model = compile_plan(graph, plan, target, weights, compile, nullptr, devices);
  open_devices(target, options, model.devices);
  load_within_memory(target, options, weights, model.partitions);
  schedule();
  if (options.overlap) start_workers();
  load_ms_ = microseconds_since(start) / 1000;
  log_loaded();
}

Executor::Executor(const Graph& graph, const PartitionPlan& plan, const Target& target,
                   const std::vector<Tensor>& weights, const ExecutorOptions& options,
                   const std::vector<CompiledPartition>& compiled, const OpenDevices& devices)
    : graph_(graph), plan_(plan) {
  const auto start = Clock::now();
  open_devices(target, options, devices);
  load_within_memory(target, options, weights, compiled);
  schedule();
  if (options.overlap) start_workers();
  load_ms_ = microseconds_since(start) / 1000;
  log_loaded();
}

Executor::~Executor() = default;

void Executor::log_loaded() const {
  if (!log_wants(LogModule::kRun, LogLevel::kInfo)) return;
  log_text(LogModule::kRun, LogLevel::kInfo,
           "loaded: partitions " + std::to_string(partitions_.size()) + ", devices " +
               std::to_string(devices_.size()) + ", weights " +
               bytes_text(static_cast<double>(weight_bytes_)),
           load_ms_);
  log(LogModule::kRun, LogLevel::kDebug, [&] {
    return workers_ != nullptr
               ? "steps overlap: at least one does not wait for the step before it"
               : "steps run one after another: overlap is off, or each waits for the one before it";
  });
}

void Executor::open_devices(const Target& target, const ExecutorOptions& options,
                            const OpenDevices& open) {
  for (const Partition& partition : plan_.partitions) {
    if (device_index_.contains(partition.device)) continue;
    const Device* device = target.find_device(partition.device);
    if (device == nullptr) {
      throw Error(ErrorCode::kInvalidGraph,
                  "device '" + partition.device + "' is not in target '" + target.name + "'");
    }
    if (device->backend.empty()) {
      throw Error(ErrorCode::kUnsupported, "device '" + device->name + "' of target '" +
                                               target.name +
                                               "' has no backend: it is for planning only");
    }
    device_index_.emplace(partition.device, static_cast<std::int32_t>(devices_.size()));
    device_names_.push_back(partition.device);
    const auto found = open.find(partition.device);
    devices_.push_back(found != open.end() && found->second != nullptr
                           ? found->second
                           : DeviceInstance::open(Backend::load(device->backend),
                                                  device_options(*device, options)));
  }
}

ProgramSignature Executor::signature_of(const Partition& partition) const {
  ProgramSignature signature;
  for (const TensorId id : partition.boundary.outputs) {
    signature.outputs.push_back({graph_.tensor(id).dtype, graph_.tensor(id).shape});
  }
  signature.nodes = partition.nodes.size();
  return signature;
}

const Tensor& Executor::weight_of(TensorId id, std::size_t partition,
                                  const std::vector<Tensor>& weights) const {
  const TensorInfo& info = graph_.tensor(id);
  const Tensor& weight = weights[index_of(id)];
  if (weight.dtype() != info.dtype || weight.shape() != info.shape) {
    throw Error(ErrorCode::kInvalidGraph, "weight '" + info.name + "' of partition " +
                                              std::to_string(partition) + " is missing");
  }
  return weight;
}

/// Uploads what several partitions of a device read once for all of them.
void Executor::share_weights(const std::vector<Tensor>& weights,
                             const std::vector<CompiledPartition>& compiled) {
  std::vector<std::map<TensorId, std::vector<std::size_t>>> readers(devices_.size());
  for (std::size_t p = 0; p < plan_.partitions.size(); ++p) {
    const Partition& partition = plan_.partitions[p];
    if (compiled[p].holds_weights) continue;
    auto& of_device = readers[static_cast<std::size_t>(device_index_.at(partition.device))];
    for (const TensorId id : partition.boundary.weights) of_device[id].push_back(p);
  }
  shared_.resize(devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    std::vector<NamedTensor> tensors;
    std::set<TensorId> ids;
    for (const auto& [id, partitions] : readers[d]) {
      if (partitions.size() < 2) continue;
      tensors.push_back({graph_.tensor(id).name, weight_of(id, partitions.front(), weights)});
      ids.insert(id);
    }
    if (tensors.empty()) continue;
    shared_[d].weights = devices_[d]->load_weights(std::move(tensors));
    if (shared_[d].weights == nullptr) continue;  // this backend takes them with each model
    weight_uploads_ += static_cast<std::int64_t>(ids.size());
    for (const TensorId id : ids) weight_bytes_ += graph_.tensor(id).bytes();
    shared_[d].tensors = std::move(ids);
  }
}

void Executor::load_partitions(const std::vector<Tensor>& weights,
                               const std::vector<CompiledPartition>& compiled) {
  share_weights(weights, compiled);
  for (std::size_t p = 0; p < plan_.partitions.size(); ++p) {
    const Partition& partition = plan_.partitions[p];
    const std::int32_t device = device_index_.at(partition.device);
    DeviceInstance& instance = *devices_[static_cast<std::size_t>(device)];
    std::vector<NamedTensor> used;
    const SharedWeights& shared = shared_[static_cast<std::size_t>(device)];
    std::vector<std::shared_ptr<DeviceWeights>> objects;
    for (const TensorId id : partition.boundary.weights) {
      if (shared.tensors.contains(id)) {
        if (objects.empty()) objects.push_back(shared.weights);
        continue;
      }
      ++weight_uploads_;
      weight_bytes_ += graph_.tensor(id).bytes();
      if (compiled[p].holds_weights) continue;
      used.push_back({graph_.tensor(id).name, weight_of(id, p, weights)});
    }
    LoadedPartition loaded;
    loaded.device = device;
    loaded.check = compiled[p].check_blob;
    try {
      loaded.program = instance.load(compiled[p].blob, std::move(used), signature_of(partition),
                                     std::move(objects));
    } catch (const Error&) {
      if (loaded.check) loaded.check();  // that the file is damaged says more
      throw;
    }
    const Json* steps = find_member(compiled[p].report, "steps");
    if (steps != nullptr && steps->is_array()) loaded.report_steps = steps->size();
    if (instance.keeps_outputs()) loaded.outputs = loaded.program->make_outputs();
    partitions_.push_back(std::move(loaded));
  }
  output_weights_.resize(graph_.graph_outputs().size());
  for (std::size_t i = 0; i < output_weights_.size(); ++i) {
    const TensorId id = graph_.graph_outputs()[i];
    if (graph_.tensor(id).kind == TensorKind::kWeight) {
      output_weights_[i] = weights[index_of(id)];
    }
  }
}

std::size_t Executor::slot(TensorId tensor, std::int32_t device) {
  const auto [found, is_new] = slot_index_.try_emplace({tensor, device}, slots_.size());
  if (is_new) slots_.push_back({.tensor = tensor, .device = device});
  return found->second;
}

void Executor::schedule() {
  std::map<std::int32_t, std::size_t> input_of;
  for (std::size_t i = 0; i < graph_.graph_inputs().size(); ++i) {
    input_of[graph_.graph_inputs()[i].value] = i;
  }
  std::vector<std::size_t> written_by;       // slot -> step
  std::map<std::int32_t, std::size_t> home;  // tensor -> slot of its producer
  const auto write = [&](std::size_t index, std::size_t step) {
    written_by.resize(slots_.size(), SIZE_MAX);
    written_by[index] = step;
  };
  const auto is_written = [&](std::size_t index) {
    return index < written_by.size() && written_by[index] != SIZE_MAX;
  };
  for (const PlanStep& planned : plan_.steps) {
    const std::size_t number = steps_.size();
    const auto index = static_cast<std::size_t>(planned.index);
    Step step;
    step.kind = planned.kind;
    step.index = planned.index;
    std::set<std::size_t> after;
    if (planned.kind == PlanStep::Kind::kTransfer) {
      const Transfer& transfer = plan_.transfers[index];
      step.device = device_index_.at(transfer.to_device);
      for (const TensorId id : transfer.tensors) {
        const std::size_t to = slot(id, step.device);
        if (is_written(to)) continue;  // an earlier step has copied it
        const std::size_t from = home.at(id.value);
        slots_[from].read_by_other = true;
        step.copies.push_back({from, to});
        step.reads.push_back(from);
        after.insert(written_by[from]);
        write(to, number);
      }
    } else {
      const Partition& partition = plan_.partitions[index];
      step.device = device_index_.at(partition.device);
      for (const TensorId id : partition.boundary.inputs) {
        const std::size_t input = slot(id, step.device);
        if (!is_written(input)) {
          // The plan has been checked: only a graph input can arrive without a transfer.
          step.uploads.push_back({input_of.at(id.value), input});
          write(input, number);
        }
        step.inputs.push_back(input);
        step.reads.push_back(input);
      }
      for (const TensorId id : partition.boundary.outputs) {
        const std::size_t output = slot(id, step.device);
        step.outputs.push_back(output);
        home[id.value] = output;
        write(output, number);
      }
    }
    for (const std::size_t earlier : after) {
      if (steps_[earlier].device != step.device) step.after.push_back(earlier);
    }
    for (const std::size_t read : step.reads) ++slots_[read].readers;
    steps_.push_back(std::move(step));
  }
  output_slots_.resize(graph_.graph_outputs().size(), SIZE_MAX);
  for (std::size_t i = 0; i < output_slots_.size(); ++i) {
    const auto found = home.find(graph_.graph_outputs()[i].value);
    if (found == home.end()) continue;
    output_slots_[i] = found->second;
    ++slots_[found->second].readers;
  }
}

void Executor::start_workers() {
  // If every step has to wait for the one before it, threads would only take turns.
  bool independent = false;
  for (std::size_t s = 1; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const bool waits = step.device == steps_[s - 1].device ||
                       std::find(step.after.begin(), step.after.end(), s - 1) != step.after.end();
    independent = independent || !waits;
  }
  if (independent) workers_ = std::make_unique<ThreadPool>();
}

OpenDevices Executor::devices() const {
  OpenDevices open;
  for (std::size_t i = 0; i < devices_.size(); ++i) open[device_names_[i]] = devices_[i];
  return open;
}

std::map<std::string, std::string> Executor::backend_versions() const {
  std::map<std::string, std::string> versions;
  for (const auto& device : devices_)
    versions[device->backend().name()] = device->backend().version();
  return versions;
}

/// The state of one run: where each tensor's copies are, and which steps are done.
class Executor::Run {
 public:
  Run(Executor& executor, const std::vector<Tensor>& inputs, RunRecord* record,
      bool with_node_times, bool with_step_times)
      : executor_(executor),
        inputs_(inputs),
        record_(record),
        with_node_times_(with_node_times),
        with_step_times_(with_step_times),
        copies_(executor.slots_.size()),
        records_(executor.steps_.size()),
        done_(executor.steps_.size(), 0),
        garbage_(executor.devices_.size()),
        start_(Clock::now()) {
    for (std::size_t i = 0; i < copies_.size(); ++i)
      copies_[i].readers = executor.slots_[i].readers;
  }

  std::vector<Tensor> execute() {
    if (executor_.workers_ != nullptr) {
      executor_.workers_->run(executor_.devices_.size(), [this](std::size_t device) {
        run_device(static_cast<std::int32_t>(device));
      });
      if (error_ != nullptr) std::rethrow_exception(error_);
    } else {
      for (std::size_t s = 0; s < executor_.steps_.size(); ++s) run_step(s);
    }
    std::vector<StepRecord> outputs_record;
    std::vector<Tensor> outputs = fetch_outputs(outputs_record);
    if (record_ != nullptr) {
      records_.push_back(std::move(outputs_record));
      for (std::vector<StepRecord>& records : records_) {
        for (StepRecord& step : records) record_->steps.push_back(std::move(step));
      }
      record_->total_us = microseconds_since(start_);
    }
    return outputs;
  }

  /// All steps of one device, in order, on the thread of that device.
  void run_device(std::int32_t device) {
    for (std::size_t s = 0; s < executor_.steps_.size(); ++s) {
      const Step& step = executor_.steps_[s];
      if (step.device != device) continue;
      if (!step.after.empty()) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
          return error_ != nullptr || std::all_of(step.after.begin(), step.after.end(),
                                                  [&](std::size_t i) { return done_[i] != 0; });
        });
        if (error_ != nullptr) return;
      }
      try {
        run_step(s);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        // The earliest step wins, so that one fault gives one message.
        if (error_ == nullptr || s < error_step_) {
          error_ = std::current_exception();
          error_step_ = s;
        }
        changed_.notify_all();
        return;
      }
      {
        const std::lock_guard lock(mutex_);
        done_[s] = 1;
      }
      changed_.notify_all();
    }
    std::vector<std::shared_ptr<DeviceBuffer>> free;
    take_garbage(device, free);
  }

 private:
  /// The content of a slot. Written by the thread of the slot's device before the step that fills
  /// it is done, read by other threads after that; `readers` is guarded by the mutex.
  struct Copy {
    std::shared_ptr<DeviceBuffer> buffer;
    const std::byte* memory = nullptr;  ///< of the buffer or of `host`, if another device reads it
    Tensor host;                        ///< fetched, if the device's memory is not the host's
    std::int32_t readers = 0;
  };

  void run_step(std::size_t s) {
    const Step& step = executor_.steps_[s];
    {
      std::vector<std::shared_ptr<DeviceBuffer>> free;
      take_garbage(step.device, free);
    }
    if (step.kind == PlanStep::Kind::kTransfer) {
      transfer(step, records_[s]);
    } else {
      run_partition(step, records_[s]);
    }
    release(step);
  }

  void note(std::vector<StepRecord>& records, StepRecord record, double started) {
    if (record_ == nullptr) return;
    record.start_us = started;
    record.end_us = microseconds_since(start_);
    records.push_back(std::move(record));
  }

  DeviceInstance& device(std::int32_t index) {
    return *executor_.devices_[static_cast<std::size_t>(index)];
  }

  void transfer(const Step& step, std::vector<StepRecord>& records) {
    const double started = microseconds_since(start_);
    const Transfer& transfer = executor_.plan_.transfers[static_cast<std::size_t>(step.index)];
    StepRecord record{
        .kind = StepRecord::Kind::kTransfer, .index = step.index, .device = transfer.to_device};
    for (const Step::Copy& copy : step.copies) {
      const Copy& source = copies_[copy.from];
      const TensorInfo& tensor = executor_.graph_.tensor(executor_.slots_[copy.from].tensor);
      Copy& arrived = copies_[copy.to];
      arrived.buffer = wrap_source(step, copy.from, tensor);
      if (arrived.buffer == nullptr) {
        arrived.buffer =
            device(step.device).import_tensor(tensor.dtype, tensor.shape, source.memory);
        record.copied_bytes += tensor.bytes();
      }
      ++record.tensors;
      record.bytes += tensor.bytes();
    }
    note(records, std::move(record), started);
  }

  /// A buffer in the memory of another device's, which it keeps; null if that cannot be. Buffers of
  /// older backends are freed by their device's thread alone, not by the last owner.
  std::shared_ptr<DeviceBuffer> wrap_source(const Step& step, std::size_t from,
                                            const TensorInfo& tensor) {
    const Copy& source = copies_[from];
    const bool is_its_own = source.host.data() == nullptr && source.memory != nullptr;
    if (!is_its_own || device(executor_.slots_[from].device).backend().is_older()) return nullptr;
    return device(step.device).wrap(tensor.dtype, tensor.shape, source.memory, source.buffer);
  }

  void upload_inputs(const Step& step, const Partition& partition,
                     std::vector<StepRecord>& records) {
    if (step.uploads.empty()) return;
    const double started = microseconds_since(start_);
    StepRecord record{.kind = StepRecord::Kind::kInput, .device = partition.device};
    for (const Step::Copy& upload : step.uploads) {
      const Tensor& input = inputs_[upload.from];
      copies_[upload.to].buffer = device(step.device).import_tensor(input);
      ++record.tensors;
      record.bytes += static_cast<std::int64_t>(input.bytes());
    }
    note(records, std::move(record), started);
  }

  void run_partition(const Step& step, std::vector<StepRecord>& records) {
    const Partition& partition = executor_.plan_.partitions[static_cast<std::size_t>(step.index)];
    const LoadedPartition& loaded = executor_.partitions_[static_cast<std::size_t>(step.index)];
    if (loaded.check) loaded.check();
    upload_inputs(step, partition, records);
    const double started = microseconds_since(start_);
    std::vector<npu4_buffer*> arguments;
    arguments.reserve(step.inputs.size());
    for (const std::size_t input : step.inputs) arguments.push_back(copies_[input].buffer->get());
    RunTimes times;
    const bool with_times = record_ != nullptr && (with_node_times_ || with_step_times_);
    auto results = run_program(step, arguments, with_times ? &times : nullptr);
    for (std::size_t i = 0; i < results.size(); ++i) keep_result(step, i, std::move(results[i]));
    StepRecord record{
        .kind = StepRecord::Kind::kPartition, .index = step.index, .device = partition.device};
    note(records, std::move(record), started);
    if (record_ == nullptr) return;
    if (with_node_times_) records.back().node_ns = std::move(times.node_ns);
    if (with_step_times_) records.back().step_ns = std::move(times.step_ns);
  }

  /// What concerns no node is told with the partition.
  std::vector<std::shared_ptr<DeviceBuffer>> run_program(const Step& step,
                                                         const std::vector<npu4_buffer*>& arguments,
                                                         RunTimes* times) {
    const LoadedPartition& loaded = executor_.partitions_[static_cast<std::size_t>(step.index)];
    try {
      return loaded.program->run(arguments, loaded.outputs, times, loaded.report_steps);
    } catch (const BackendError& error) {
      if (error.status() < NPU4_CANCELLED) throw;
      const Partition& partition = executor_.plan_.partitions[static_cast<std::size_t>(step.index)];
      throw BackendError(error.status(), error.message() + " (running partition " +
                                             std::to_string(step.index) + " on device '" +
                                             partition.device + "')");
    }
  }

  /// Makes a result known to its readers. It is what the graph says, since its buffer was made so.
  void keep_result(const Step& step, std::size_t index, std::shared_ptr<DeviceBuffer> buffer) {
    const std::size_t slot = step.outputs[index];
    Copy& copy = copies_[slot];
    if (executor_.slots_[slot].read_by_other) {
      copy.memory = buffer->host_memory();
      if (copy.memory == nullptr && buffer->bytes() != 0) {
        copy.host = buffer->to_host();
        copy.memory = copy.host.data();
      }
    }
    copy.buffer = std::move(buffer);
  }

  /// Drops copies whose last reader was this step; other devices' buffers go back to their threads.
  void release(const Step& step) {
    std::vector<std::shared_ptr<DeviceBuffer>> own;
    const std::lock_guard lock(mutex_);
    for (const std::size_t slot : step.reads) {
      Copy& copy = copies_[slot];
      if (--copy.readers > 0) continue;
      const std::int32_t home = executor_.slots_[slot].device;
      auto& place = home == step.device ? own : garbage_[static_cast<std::size_t>(home)];
      place.push_back(std::move(copy.buffer));
      copy.host = {};
    }
  }

  void take_garbage(std::int32_t device, std::vector<std::shared_ptr<DeviceBuffer>>& free) {
    const std::lock_guard lock(mutex_);
    free.swap(garbage_[static_cast<std::size_t>(device)]);
  }

  std::vector<Tensor> fetch_outputs(std::vector<StepRecord>& records) {
    const double started = microseconds_since(start_);
    StepRecord record{.kind = StepRecord::Kind::kOutput, .device = "host"};
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < executor_.graph_.graph_outputs().size(); ++i) {
      const TensorInfo& tensor = executor_.graph_.tensor(executor_.graph_.graph_outputs()[i]);
      if (tensor.kind == TensorKind::kGraphInput) {
        outputs.push_back(input(executor_.graph_.graph_outputs()[i]));
      } else if (tensor.kind == TensorKind::kWeight) {
        outputs.push_back(executor_.output_weights_[i]);
      } else {
        outputs.push_back(copies_[executor_.output_slots_[i]].buffer->to_host());
        ++record.tensors;
        record.bytes += static_cast<std::int64_t>(outputs.back().bytes());
      }
    }
    note(records, std::move(record), started);
    return outputs;
  }

  const Tensor& input(TensorId id) const {
    const auto& all = executor_.graph_.graph_inputs();
    return inputs_[static_cast<std::size_t>(std::find(all.begin(), all.end(), id) - all.begin())];
  }

  Executor& executor_;
  const std::vector<Tensor>& inputs_;
  RunRecord* record_;
  bool with_node_times_;
  bool with_step_times_;
  std::vector<Copy> copies_;                      // by slot
  std::vector<std::vector<StepRecord>> records_;  // by step, so that their order is the plan's
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<char> done_;
  std::vector<std::vector<std::shared_ptr<DeviceBuffer>>> garbage_;  // by device
  std::exception_ptr error_;
  std::size_t error_step_ = 0;
  Clock::time_point start_;
};

std::vector<Tensor> Executor::run(const std::vector<Tensor>& inputs, RunRecord* record,
                                  bool with_node_times, bool with_step_times) {
  if (record != nullptr) *record = {};
  const LogTimer timer(LogModule::kRun, LogLevel::kDebug);
  std::vector<Tensor> outputs =
      Run(*this, inputs, record, with_node_times, with_step_times).execute();
  timer.done([&] { return "ran " + std::to_string(steps_.size()) + " steps"; });
  return outputs;
}

}  // namespace npu
