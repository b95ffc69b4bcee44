// SPDX-License-Identifier: Apache-2.0
// Loads an execution plan, and makes its schedule.
//
// The constructor turns the plan into a schedule: for every step the slots that it reads and
// writes, a slot being the only copy of a tensor on one device, and the earlier steps that it waits
// for. If a plan lists a transfer twice, the second one is free; a copy is dropped after the last
// step that reads it. executor_run.cpp makes the runs.
//
// What a run has of its own is a flight: a program of each partition, the buffers that it writes
// into, and a queue of each device that has queues. There are as many as runs that may go on at
// once; models and weights are loaded once for all of them.
#include "npu/runtime/executor.hpp"

#include <algorithm>
#include <set>

#include "compile/boundary_layouts.hpp"
#include "compile/sub_ir.hpp"
#include "npu/support/error.hpp"
#include "npu/support/log.hpp"
#include "runtime/executor_run.hpp"
#include "runtime/tap_tensors.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"
#include "support/thread_pool.hpp"

namespace npu {
std::string device_options(const Device& device, const ExecutorOptions& options) {
  return backend_options_text(device, options.threads, options.backend_options);
}

Executor::Executor(const Graph& graph, const PartitionPlan& plan, const Target& target,
                   const std::vector<Tensor>& weights, const ExecutorOptions& options,
                   const OpenDevices& devices)
    : graph_(graph), plan_(plan), stop_(options.stop) {
  const auto start = Clock::now();
  CompileOptions compile;
  compile.threads = options.threads;
  compile.backend_options = options.backend_options;
  const CompiledModel model = compile_plan(graph, plan, target, weights, compile, nullptr, devices);
  load(target, weights, options, model.partitions, model.devices);
  load_ms_ = microseconds_since(start) / 1000;
  log_loaded();
}

Executor::Executor(const Graph& graph, const PartitionPlan& plan, const Target& target,
                   const std::vector<Tensor>& weights, const ExecutorOptions& options,
                   const std::vector<CompiledPartition>& compiled, const OpenDevices& devices)
    : graph_(graph), plan_(plan), stop_(options.stop) {
  const auto start = Clock::now();
  load(target, weights, options, compiled, devices);
  load_ms_ = microseconds_since(start) / 1000;
  log_loaded();
}

Executor::~Executor() = default;

void Executor::load(const Target& target, const std::vector<Tensor>& weights,
                    const ExecutorOptions& options, const std::vector<CompiledPartition>& compiled,
                    const OpenDevices& open) {
  check_layouts(graph_, plan_, compiled);
  has_times_ = options.times;
  open_devices(target, options, open);
  place_taps(options.taps, compiled);
  load_within_memory(target, options, weights, compiled);
  open_flights(options);
  schedule(compiled);
  place_results();
  if (options.overlap) start_workers();
}

void Executor::log_loaded() const {
  if (!log_wants(LogModule::kRun, LogLevel::kInfo)) return;
  log_text(LogModule::kRun, LogLevel::kInfo,
           "loaded: partitions " + std::to_string(partitions_.size()) + ", devices " +
               std::to_string(devices_.size()) + ", weights " +
               bytes_text(static_cast<double>(weight_bytes_)),
           load_ms_);
  log(LogModule::kRun, LogLevel::kDebug, [&] {
    return overlaps_
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
    // Whoever wants one step after the other gets blocking runs.
    const bool uses_queues = options.queues && options.overlap;
    has_queue_.push_back(uses_queues && DeviceQueue::is_offered(*devices_.back()) ? 1 : 0);
  }
  check_in_flight(options.in_flight);
}

void Executor::place_taps(const std::vector<std::string>& names,
                          const std::vector<CompiledPartition>& compiled) {
  const std::vector<std::optional<TapPlace>> places = find_taps(graph_, plan_, compiled, names);
  std::vector<std::size_t> counts(plan_.partitions.size(), 0);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!places[i]) {
      throw Error(ErrorCode::kUnsupported, "no program hands out the result '" + names[i] + "'");
    }
    Tap& tap = taps_.emplace_back();
    tap.tensor = places[i]->tensor;
    tap.partition = places[i]->partition;
    if (!places[i]->is_boundary) tap.index = counts[tap.partition]++;
  }
}

ProgramSignature Executor::signature_of(std::size_t partition,
                                        const CompiledPartition& compiled) const {
  const Partition& part = plan_.partitions[partition];
  ProgramSignature signature = program_signature(graph_, part.nodes.size(), part.boundary.outputs);
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    const auto layout = compiled.layouts.find(graph_.tensor(part.boundary.outputs[i]).name);
    if (layout != compiled.layouts.end()) signature.outputs[i].layout = layout->second;
  }
  signature.is_timed = has_times_;
  for (const Tap& tap : taps_) {
    if (tap.partition != partition || !tap.index) continue;
    const TensorInfo& info = graph_.tensor(tap.tensor);
    signature.taps.push_back({info.name, {info.dtype, info.shape}});
  }
  return signature;
}

/// Every device has to take so many runs at once.
void Executor::check_in_flight(std::int32_t wanted) const {
  if (wanted <= 1) return;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const DeviceFacts& facts = devices_[d]->facts();
    const std::string device = "--in-flight " + std::to_string(wanted) + ": device '" +
                               device_names_[d] + "' (backend '" + devices_[d]->backend().name() +
                               "') ";
    if (has_queue_[d] == 0) {
      throw Error(ErrorCode::kUnsupported, device + "has no queues: it makes one run at a time");
    }
    const auto most = std::min(facts.programs_in_flight, facts.queues);
    if (static_cast<std::uint32_t>(wanted) > most) {
      throw Error(ErrorCode::kUnsupported,
                  device + "takes at most " + std::to_string(most) + " runs at once");
    }
  }
}

/// A program of each partition and the queues of each device for every run that may go on at once.
void Executor::open_flights(const ExecutorOptions& options) {
  for (std::int32_t i = 1; i < options.in_flight; ++i) {
    auto flight = std::make_unique<Flight>();
    const auto scratch = make_scratch();
    for (std::size_t p = 0; p < plan_.partitions.size(); ++p) {
      const DeviceProgram& first = *flights_.front()->programs[p];
      const auto d = static_cast<std::size_t>(device_index_.at(plan_.partitions[p].device));
      flight->programs.push_back(std::make_unique<DeviceProgram>(first.model(), first.signature(),
                                                                 std::string(), scratch[d]));
    }
    flights_.push_back(std::move(flight));
  }
  for (const auto& flight : flights_) {
    for (const auto& program : flight->programs) {
      const bool keeps = program->model()->device()->keeps_outputs();
      flight->outputs.push_back(keeps ? program->make_outputs()
                                      : std::vector<std::shared_ptr<DeviceBuffer>>());
      flight->taps.push_back(program->make_taps());
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      auto& queues = flight->queues.emplace_back();
      if (has_queue_[d] == 0) continue;
      const std::size_t all = flights_.size() * kLanes;
      const bool has_room = devices_[d]->facts().queues >= all;
      const std::size_t lanes = has_room && has_several_partitions(d) ? kLanes : 1;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        queues[lane] = std::make_unique<DeviceQueue>(devices_[d], has_times_);
      }
    }
  }
}

/// Whether a run has work of a device that need not wait for other work of it.
bool Executor::has_several_partitions(std::size_t d) const {
  return std::ranges::count(plan_.partitions, device_names_[d], &Partition::device) > 1;
}

/// Whether the content of a buffer can go from one device to another without the host.
bool Executor::copies_directly(std::int32_t from, std::int32_t to) const {
  return shares_events(from, to) && DeviceQueue::copies(*devices_[static_cast<std::size_t>(to)]);
}

/// Whether work of one device can wait for work of the other.
bool Executor::shares_events(std::int32_t a, std::int32_t b) const {
  const auto first = static_cast<std::size_t>(a);
  const auto second = static_cast<std::size_t>(b);
  return has_queue_[first] != 0 && has_queue_[second] != 0 &&
         &devices_[first]->backend() == &devices_[second]->backend();
}

/// Whether a thread that submits never has to wait.
bool Executor::submits_all() const {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (!shares_events(0, static_cast<std::int32_t>(d))) return false;
  }
  return true;
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

/// The scratch memory that the programs of each device need, which run one after another, where the
/// backend takes it from the host; otherwise 0.
void Executor::find_scratch(const std::vector<CompiledPartition>& compiled) {
  scratch_bytes_.assign(devices_.size(), 0);
  for (std::size_t p = 0; p < plan_.partitions.size(); ++p) {
    const auto d = static_cast<std::size_t>(device_index_.at(plan_.partitions[p].device));
    if (!devices_[d]->backend().has_feature("scratch")) continue;
    const auto report = devices_[d]->blob_memory(compiled[p].blob);
    if (!report || report->memories.empty()) continue;
    scratch_bytes_[d] = std::max(scratch_bytes_[d], report->memories.front().scratch);
  }
}

/// One for each device of a flight; null if its programs have their own.
std::vector<std::shared_ptr<DeviceBuffer>> Executor::make_scratch() const {
  std::vector<std::shared_ptr<DeviceBuffer>> scratch(devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (scratch_bytes_[d] != 0) scratch[d] = devices_[d]->make_scratch(scratch_bytes_[d]);
  }
  return scratch;
}

void Executor::load_partitions(const std::vector<Tensor>& weights,
                               const std::vector<CompiledPartition>& compiled) {
  share_weights(weights, compiled);
  find_scratch(compiled);
  const auto scratch = make_scratch();
  flights_.push_back(std::make_unique<Flight>());
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
    loaded.check = compiled[p].check_blob;
    try {
      flights_.front()->programs.push_back(
          instance.load(compiled[p].blob, std::move(used), signature_of(p, compiled[p]),
                        std::move(objects), scratch[static_cast<std::size_t>(device)]));
    } catch (const Error&) {
      if (loaded.check) loaded.check();  // that the file is damaged says more
      throw;
    }
    const Json* steps = find_member(*compiled[p].report, "steps");
    if (steps != nullptr && steps->is_array()) loaded.report_steps = steps->size();
    int8_share_.add(read_compile_numbers(*compiled[p].report));
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

/// Which way the content of a slot goes to that of the step's device, and what it needs for it.
void Executor::add_copy(Step& step, std::size_t from, std::size_t to) {
  Slot& source = slots_[from];
  const auto destination = static_cast<std::size_t>(step.device);
  const bool has_queue = has_queue_[destination] != 0;
  const bool is_direct = copies_directly(source.device, step.device);
  source.read_by_other = true;
  source.needs_host |= !is_direct;
  source.is_kept |= has_queue;
  const bool is_staged =
      !is_direct && has_queue && devices_[destination]->facts().pinned_memory.has_value();
  if (is_staged && source.staged_on < 0) source.staged_on = step.device;
  step.copies.push_back({from, to, is_direct});
}

void Executor::schedule(const std::vector<CompiledPartition>& compiled) {
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
        add_copy(step, from, to);
        step.reads.push_back(from);
        after.insert(written_by[from]);
        write(to, number);
      }
    } else {
      const Partition& partition = plan_.partitions[index];
      step.device = device_index_.at(partition.device);
      const LayoutNames& layouts = compiled[index].layouts;
      for (const TensorId id : partition.boundary.inputs) {
        const std::size_t input = slot(id, step.device);
        const auto layout = layouts.find(graph_.tensor(id).name);
        if (layout != layouts.end()) slots_[input].layout = layout->second;
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
        slots_[output].partition = index;
        slots_[output].output = step.outputs.size();
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
  const auto result_slot = [&](TensorId id) {
    const auto found = home.find(id.value);
    if (found == home.end()) return SIZE_MAX;
    slots_[found->second].needs_host = true;
    ++slots_[found->second].readers;
    return found->second;
  };
  for (const TensorId id : graph_.graph_outputs()) output_slots_.push_back(result_slot(id));
  for (const Tap& tap : taps_) tap_slots_.push_back(tap.index ? SIZE_MAX : result_slot(tap.tensor));
  for (Slot& slot : slots_) {
    slot.is_kept |= has_queue_[static_cast<std::size_t>(slot.device)] != 0;
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
  overlaps_ = independent;
  // Queues work beside the thread that submits, and runs in flight have no threads of devices.
  if (independent && !submits_all() && flights_.size() == 1) {
    workers_ = std::make_unique<ThreadPool>();
  }
}

OpenDevices Executor::devices() const {
  OpenDevices open;
  for (std::size_t i = 0; i < devices_.size(); ++i) open[device_names_[i]] = devices_[i];
  return open;
}

std::map<std::string, std::string> Executor::backend_versions() const {
  std::map<std::string, std::string> versions;
  for (const auto& device : devices_) {
    // A driver's text that goes on where the version ends says more.
    const std::string& version = device->backend().version();
    const std::string& driver = device->facts().driver;
    versions[device->backend().name()] = driver.starts_with(version) ? driver : version;
  }
  return versions;
}

std::shared_ptr<Executor::Run> Executor::start(std::vector<Tensor> inputs, RunRecord* record,
                                               bool with_node_times, bool with_step_times) {
  if (record != nullptr) *record = {};
  const auto free = std::find_if(flights_.begin(), flights_.end(),
                                 [](const auto& flight) { return !flight->is_busy; });
  if (free == flights_.end()) {
    throw Error(ErrorCode::kUsage, "all " + std::to_string(flights_.size()) +
                                       " runs that may go on at once are going on; wait for one");
  }
  auto run = std::make_shared<Run>(*this, **free, std::move(inputs), record, with_node_times,
                                   with_step_times);
  run->begin();
  return run;
}

std::vector<Tensor> Executor::wait(const std::shared_ptr<Run>& run) { return run->finish(); }

std::vector<Tensor> Executor::run(const std::vector<Tensor>& inputs, RunRecord* record,
                                  bool with_node_times, bool with_step_times) {
  return wait(start(inputs, record, with_node_times, with_step_times));
}

}  // namespace npu
