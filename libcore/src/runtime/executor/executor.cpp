// SPDX-License-Identifier: Apache-2.0
// Loads an execution plan, in the order of the parts that a run needs: the devices, the programs on
// them, and the schedule. executor_run.cpp makes the runs.
//
// What a run has of its own is a flight: a program of each partition, the buffers that it writes
// into, and a queue of each device that has queues. There are as many as runs that may go on at
// once; models and weights are loaded once for all of them.
#include "npu/runtime/executor.hpp"

#include <algorithm>
#include <utility>

#include "compile/boundary_layouts.hpp"
#include "device/device_instance.hpp"
#include "npu/support/error.hpp"
#include "npu/support/log.hpp"
#include "runtime/executor/executor_parts.hpp"
#include "runtime/executor/executor_run.hpp"
#include "runtime/executor/program_memory.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

std::vector<TapPlace> place_taps(const Graph& graph, const PartitionPlan& plan,
                                 const std::vector<CompiledPartition>& compiled,
                                 const std::vector<std::string>& names) {
  const auto found = find_taps(graph, plan, compiled, names);
  std::vector<TapPlace> places;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!found[i]) {
      throw Error(ErrorCode::kUnsupported, "no program hands out the result '" + names[i] + "'");
    }
    places.push_back(*found[i]);
  }
  return places;
}

/// Outputs that are states lie in the buffers of these, so that flights need none for them.
void drop_state_outputs(const std::vector<StatePlace>& places, LoadedPrograms& programs) {
  for (const StatePlace& place : places) {
    if (!place.is_written_there) continue;
    if (!place.is_one_buffer) place.state->next_buffer();
    auto& outputs = programs.flights.front()->outputs[place.writer];
    if (!outputs.empty()) outputs[place.writer_output] = nullptr;
  }
}

/// Results of the graph lie in memory of the host that a caller gets, where a device that blocks
/// writes it in place; the buffers that flights have for them are then not needed.
std::shared_ptr<ResultMemory> place_results(const Graph& graph, const RunDevices& devices,
                                            LoadedPrograms& programs, Schedule& schedule) {
  auto results = std::make_shared<ResultMemory>(programs.flights.size() + 1);
  const auto place = [&](std::size_t index) {
    if (index == Schedule::kNoSlot) return;
    Schedule::Slot& slot = schedule.slots[index];
    const TensorInfo& tensor = graph.tensor(slot.tensor);
    const bool may_lie_there = !devices.has_queue(slot.device) &&
                               devices[slot.device].keeps_outputs() && slot.layout.empty() &&
                               tensor.bytes() > 0;
    if (slot.is_given || !may_lie_there) return;
    const Tensor memory = results->take(index, tensor.dtype, tensor.shape);
    slot.is_given = results->buffer_in(memory, devices[slot.device]) != nullptr;
    if (!slot.is_given) return;
    for (const auto& flight : programs.flights) {
      flight->outputs[slot.partition][slot.output] = nullptr;
    }
  };
  for (const std::size_t index : schedule.outputs) place(index);
  for (const std::size_t index : schedule.taps) place(index);
  return results;
}

}  // namespace

std::string device_options(const Device& device, const ExecutorOptions& options) {
  return backend_options_text(device, options.threads, options.backend_options);
}

Executor::Parts::Parts(const Graph& of, const PartitionPlan& by, const Target& target,
                       const std::vector<Tensor>& weights, const ExecutorOptions& options,
                       const std::vector<CompiledPartition>& compiled, const OpenDevices& open)
    : graph(of),
      plan(by),
      devices(plan, target, options, open),
      taps(place_taps(graph, plan, compiled, options.taps)),
      memory(memory_there(devices, target, options.backend_options)),
      states(options.states),
      stop(options.stop),
      has_times(options.times) {
  if (states != nullptr && options.in_flight > 1) {
    throw Error(ErrorCode::kUsage,
                "a model with states makes one run after the other: each reads what the one before "
                "it has left");
  }
  LoadedModels own;
  const PlanToLoad from{
      graph,   plan, compiled,  weights,
      devices, taps, has_times, options.models != nullptr ? *options.models : own};
  check_program_memory(from, target, memory, options.in_flight);
  programs = load_programs(from);
  memory = loaded_memory(from, target, programs, memory);
  open_flights(programs, from, options.in_flight);
  if (states != nullptr) state_places = place_states(graph, plan, compiled, devices, *states);
  if (state_places.empty()) states = nullptr;
  drop_state_outputs(state_places, programs);
  schedule = make_schedule(graph, plan, compiled, devices, taps, state_places);
  results = place_results(graph, devices, programs, schedule);
  // If every step has to wait for the one before it, threads would only take turns.
  overlaps = options.overlap && schedule.has_independent_steps();
  // Queues work beside the thread that submits, and runs in flight have no threads of devices.
  if (overlaps && !devices.submits_all() && programs.flights.size() == 1) {
    workers = std::make_unique<ThreadPool>();
  }
}

Executor::Executor(const Graph& graph, const PartitionPlan& plan, const Target& target,
                   const std::vector<Tensor>& weights, const ExecutorOptions& options,
                   const std::vector<CompiledPartition>& compiled, const OpenDevices& devices) {
  const auto start = Clock::now();
  check_layouts(graph, plan, compiled);
  parts_ = std::make_unique<Parts>(graph, plan, target, weights, options, compiled, devices);
  parts_->load_ms = milliseconds_since(start);
  if (!log_wants(LogModule::kRun, LogLevel::kInfo)) return;
  log_text(LogModule::kRun, LogLevel::kInfo,
           "loaded: partitions " + std::to_string(plan.partitions.size()) + ", devices " +
               std::to_string(parts_->devices.size()) + ", weights " +
               bytes_text(static_cast<double>(weight_bytes())),
           load_ms());
  log(LogModule::kRun, LogLevel::kDebug, [&] {
    return overlaps()
               ? "steps overlap: at least one does not wait for the step before it"
               : "steps run one after another: overlap is off, or each waits for the one before it";
  });
}

Executor::~Executor() = default;

Executor compile_and_load(const Graph& graph, const PartitionPlan& plan, const Target& target,
                          const std::vector<Tensor>& weights, const ExecutorOptions& options,
                          const OpenDevices& devices) {
  CompileOptions compile;
  compile.threads = options.threads;
  compile.backend_options = options.backend_options;
  const CompiledModel model = compile_plan(graph, plan, target, weights, compile, nullptr, devices);
  return Executor(graph, plan, target, weights, options, model.partitions, model.devices);
}

double Executor::load_ms() const noexcept { return parts_->load_ms; }

std::optional<double> Executor::int8_macs() const { return parts_->programs.int8.value(); }

bool Executor::overlaps() const noexcept { return parts_->overlaps; }

std::int64_t Executor::weight_uploads() const noexcept { return parts_->programs.weight_uploads; }

std::int64_t Executor::weight_bytes() const noexcept { return parts_->programs.weight_bytes; }

const char* state_path_name(StatePath path) noexcept {
  static constexpr const char* kNames[] = {"in_place", "in_turns", "copied", "kept"};
  return kNames[static_cast<std::size_t>(path)];
}

std::vector<StateUse> Executor::states() const {
  std::vector<StateUse> uses;
  for (const StatePlace& place : parts_->state_places) uses.push_back(place.use);
  return uses;
}

const std::vector<DeviceMemoryNeed>& Executor::memory() const noexcept { return parts_->memory; }

OpenDevices Executor::devices() const { return parts_->devices.by_name(); }

std::map<std::string, std::string> Executor::backend_versions() const {
  std::map<std::string, std::string> versions;
  for (std::size_t d = 0; d < parts_->devices.size(); ++d) {
    const DeviceInstance& device = parts_->devices[d];
    // A driver's text that goes on where the version ends says more.
    const std::string& version = device.backend().version();
    const std::string& driver = device.facts().driver;
    versions[device.backend().name()] = driver.starts_with(version) ? driver : version;
  }
  return versions;
}

std::shared_ptr<Executor::Run> Executor::start(std::vector<Tensor> inputs, RunRecord* record,
                                               bool with_node_times, bool with_step_times) {
  if (record != nullptr) *record = {};
  const auto& flights = parts_->programs.flights;
  const auto free =
      std::ranges::find_if(flights, [](const auto& flight) { return !flight->is_busy; });
  if (free == flights.end()) {
    throw Error(ErrorCode::kUsage, "all " + std::to_string(flights.size()) +
                                       " runs that may go on at once are going on; wait for one");
  }
  auto run = std::make_shared<Run>(*parts_, **free, std::move(inputs), record, with_node_times,
                                   with_step_times);
  run->begin();
  return run;
}

std::vector<Tensor> Executor::wait(const std::shared_ptr<Run>& run) { return run->finish(); }

std::vector<Tensor> Executor::run(std::vector<Tensor> inputs, RunRecord* record,
                                  bool with_node_times, bool with_step_times) {
  return wait(start(std::move(inputs), record, with_node_times, with_step_times));
}

}  // namespace npu
