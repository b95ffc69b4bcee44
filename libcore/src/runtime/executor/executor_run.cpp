// SPDX-License-Identifier: Apache-2.0
// Makes one run of an execution plan, as its schedule says.
//
// Every device without queues has one thread: the caller's for the device of the first step, a
// worker's for each other one. A thread runs its device's steps in the order of the plan and waits
// before each for the steps of other devices that it reads from, so what a step sees does not
// depend on timing. All calls on a device come from its thread, freeing buffers included: a copy
// whose last reader was another device's thread is handed back to be freed. A transfer reads host
// memory that the source's thread described, or fetched, when it produced the tensor. If every step
// waits for the one before it, nothing could overlap and no thread is created.
//
// A step of a device that has queues is submitted with the events of what it waits for; "done" then
// means submitted. A thread waits for an event only where the backends of source and destination
// differ and do not pass events to each other. Where the one exports its memory and the other takes
// it, a transfer is none; what goes through the host goes in pieces, each written while the next
// one is read. What the queues work on stays until the run ends. Work is looked at in the order of
// the plan, and what waits for a failure fails with the same error, so the earliest step says what
// went wrong, whatever the timing.
//
// A run is O(steps + tensors) besides the work of the backends.
#include "runtime/executor/executor_run.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "runtime/executor/result_memory.hpp"

namespace npu {
std::string path_text(const StepRecord& step) {
  if (step.tensors == 0) return "";
  if (step.copied_bytes == 0) return "wrapped";
  if (step.copied_bytes != step.bytes) return "partly copied";
  std::set<TransferPath> paths = step.paths;
  paths.erase(TransferPath::kWrapped);  // of nothing, then
  if (paths == std::set{TransferPath::kDeviceCopy}) return "device copy";
  return paths == std::set{TransferPath::kStaged} ? "staged" : "copied";
}

std::vector<const DeviceProgram*> Executor::Run::programs_of(const Flight& flight) {
  std::vector<const DeviceProgram*> programs;
  for (const auto& program : flight.programs) programs.push_back(program.get());
  return programs;
}

Executor::Run::Run(Parts& parts, Flight& flight, std::vector<Tensor> inputs, RunRecord* record,
                   bool with_node_times, bool with_step_times)
    : parts_(parts),
      flight_(flight),
      inputs_(std::move(inputs)),
      record_(record),
      with_node_times_(with_node_times),
      with_step_times_(with_step_times),
      copies_(parts.schedule.slots.size()),
      records_(parts.schedule.steps.size()),
      work_(parts.schedule.steps.size()),
      done_(parts.schedule.steps.size(), 0),
      garbage_(parts.devices.size()),
      placed_(parts.schedule.steps.size()),
      last_end_us_(parts.devices.size() * kLanes, 0),
      stop_scope_(parts.stop.get(), programs_of(flight)),
      start_(Clock::now()) {
  for (std::size_t i = 0; i < copies_.size(); ++i)
    copies_[i].readers = parts.schedule.slots[i].readers;
  flight_.arrivals.resize(copies_.size());
  flight_.staging.resize(copies_.size());
  flight_.is_busy = true;
  // A device may take a while to say what time it is, which is none of the run's.
  if (is_timed()) {
    clocks_ = read_clocks();
    start_ = Clock::now();
  }
}

Executor::Run::~Run() {
  settle();
  flight_.is_busy = false;
}

void Executor::Run::begin() {
  if (parts_.states != nullptr) read_states();
  if (parts_.workers != nullptr) {
    parts_.workers->run(parts_.devices.size(), [this](std::size_t device) { run_device(device); });
  } else if (parts_.programs.flights.size() > 1 && !parts_.devices.submits_all()) {
    thread_ = std::thread([this] { run_in_order(); });
  } else {
    run_in_order();
  }
}

std::vector<Tensor> Executor::Run::finish() {
  if (thread_.joinable()) thread_.join();
  finish_work();
  std::vector<StepRecord> outputs_record;
  std::vector<Tensor> outputs = fetch_outputs(outputs_record);
  if (parts_.states != nullptr) keep_states(outputs);
  if (record_ != nullptr) {
    record_->total_us = microseconds_since(start_);
    place_times();
    records_.push_back(std::move(outputs_record));
    for (std::vector<StepRecord>& records : records_) {
      for (StepRecord& step : records) record_->steps.push_back(std::move(step));
    }
  }
  timer_.done([&] { return "ran " + std::to_string(parts_.schedule.steps.size()) + " steps"; });
  return outputs;
}

// ---- States ----

/// Their values are in place before the first step. What another device than the owner reads is
/// copied now, since a step of the owner may overwrite it.
void Executor::Run::read_states() {
  parts_.states->begin_run();
  for (const Schedule::StateInput& input : parts_.schedule.state_inputs) {
    const StatePlace& place = parts_.state_places[input.place];
    if (parts_.schedule.slots[input.slot].device == place.device) {
      copies_[input.slot].buffer = place.state->buffer();
    } else {
      arrival(input.slot).write(place.state->value().data());
    }
  }
}

/// A partition writes states into their own buffers.
void Executor::Run::put_states(std::size_t partition,
                               std::vector<std::shared_ptr<DeviceBuffer>>& outputs) const {
  for (const StatePlace& place : parts_.state_places) {
    if (place.writer != partition || !place.is_written_there) continue;
    outputs[place.writer_output] =
        place.is_one_buffer ? place.state->buffer() : place.state->next_buffer();
  }
}

/// All is done: what was written is what the next run reads.
void Executor::Run::keep_states(std::vector<Tensor>& outputs) const {
  for (const StatePlace& place : parts_.state_places) {
    if (place.writer == StatePlace::kNone) continue;
    if (!place.is_written_there) {
      const auto& all = parts_.graph.graph_outputs();
      Tensor& value = outputs[static_cast<std::size_t>(
          std::find(all.begin(), all.end(), place.output) - all.begin())];
      place.state->set_value(value);
      value = {};
    } else if (!place.is_one_buffer) {
      place.state->advance();
    }
  }
  parts_.states->end_run();
}

// ---- Order ----

void Executor::Run::run_in_order() {
  for (std::size_t s = 0; s < parts_.schedule.steps.size(); ++s) {
    try {
      run_step(s);
    } catch (...) {
      keep_error(s);
      return;
    }
  }
}

/// All steps of one device, in order, on the thread of that device.
void Executor::Run::run_device(std::size_t device) {
  for (std::size_t s = 0; s < parts_.schedule.steps.size(); ++s) {
    const Step& step = parts_.schedule.steps[s];
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
      keep_error(s);
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

void Executor::Run::run_step(std::size_t s) {
  const Step& step = parts_.schedule.steps[s];
  if (parts_.stop != nullptr) parts_.stop->check();
  {
    std::vector<std::shared_ptr<DeviceBuffer>> free;
    take_garbage(step.device, free);
  }
  if (step.kind == PlanStep::Kind::kTransfer) {
    transfer(s);
  } else {
    const auto& check = parts_.programs.partitions[index_of(step.index)].check;
    if (check) check();
    upload_inputs(s);
    has_queue(step.device) ? submit_partition(s) : run_partition(s);
  }
  release(step);
}

/// The earliest step wins, so that one fault gives one message.
void Executor::Run::keep_error(std::size_t s) {
  const std::lock_guard lock(mutex_);
  if (error_ == nullptr || s < error_step_) {
    error_ = std::current_exception();
    error_step_ = s;
  }
  changed_.notify_all();
}

// ---- Steps ----

void Executor::Run::note(std::vector<StepRecord>& records, StepRecord record, double started) {
  if (record_ == nullptr) return;
  record.start_us = started;
  record.end_us = microseconds_since(start_);
  records.push_back(std::move(record));
}

void Executor::Run::run_partition(std::size_t s) {
  const Step& step = parts_.schedule.steps[s];
  const auto partition = index_of(step.index);
  const double started = microseconds_since(start_);
  std::vector<npu_buffer*> arguments;
  arguments.reserve(step.inputs.size());
  for (const std::size_t slot : step.inputs) arguments.push_back(copies_[slot].buffer->get());
  RunTimes times;
  try {
    auto results = flight_.programs[partition]->run(
        arguments, output_buffers(step), is_timed() ? &times : nullptr,
        parts_.programs.partitions[partition].report_steps, deadline_ns(), flight_.taps[partition]);
    for (std::size_t i = 0; i < results.size(); ++i) keep_result(step, i, std::move(results[i]));
  } catch (const BackendError& error) {
    tell_partition(step, error);
  }
  StepRecord record{.kind = StepRecord::Kind::kPartition,
                    .index = step.index,
                    .device = parts_.plan.partitions[partition].device};
  note(records_[s], std::move(record), started);
  if (record_ != nullptr) keep_times(s, records_[s].back(), std::move(times));
}

/// The flight's buffers, those of states, and null where memory of results serves; empty: the
/// backend makes them all.
std::vector<std::shared_ptr<DeviceBuffer>> Executor::Run::own_outputs(const Step& step) const {
  const auto partition = index_of(step.index);
  auto buffers = flight_.outputs[partition];
  const bool has_states = std::ranges::any_of(parts_.state_places, [&](const StatePlace& place) {
    return place.writer == partition && place.is_written_there;
  });
  if (!has_states) return buffers;
  if (buffers.empty()) buffers = flight_.programs[partition]->make_outputs();
  put_states(partition, buffers);
  return buffers;
}

/// What a partition writes into: its own buffers, and memory of results that the caller gets.
std::vector<std::shared_ptr<DeviceBuffer>> Executor::Run::output_buffers(const Step& step) {
  auto buffers = own_outputs(step);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] != nullptr) continue;
    const std::size_t slot = step.outputs[i];
    const TensorInfo& tensor = tensor_of(slot);
    Tensor memory = parts_.results->take(slot, tensor.dtype, tensor.shape);
    buffers[i] = parts_.results->buffer_in(memory, device(step.device));
    if (buffers[i] == nullptr) {  // it took such memory before
      buffers[i] = device(step.device).allocate(type_of(slot), NPU_USAGE_OUTPUT);
    } else {
      copies_[slot].given = std::move(memory);
    }
  }
  return buffers;
}

void Executor::Run::keep_times(std::size_t s, StepRecord& record, RunTimes times) {
  if (with_step_times_) record.step_ns = std::move(times.step_ns);
  if (!with_node_times_) return;
  record.node_ns = std::move(times.node_ns);
  placed_[s] = std::move(times.placed);
}

std::vector<std::optional<ClockSample>> Executor::Run::read_clocks() const {
  std::vector<std::optional<ClockSample>> clocks;
  for (std::size_t d = 0; d < parts_.devices.size(); ++d) {
    clocks.push_back(parts_.devices[d].clock());
  }
  return clocks;
}

/// Brings what was measured on clocks of devices to the run's own, by what they show before and
/// after it.
void Executor::Run::place_times() {
  if (std::all_of(placed_.begin(), placed_.end(),
                  [](const auto& of_step) { return of_step.empty(); })) {
    return;
  }
  const std::vector<std::optional<ClockSample>> after = read_clocks();
  const auto start_ns = static_cast<double>(
      std::chrono::nanoseconds(start_.time_since_epoch()).count());  // of CLOCK_MONOTONIC
  for (std::size_t s = 0; s < placed_.size(); ++s) {
    const std::size_t d = parts_.schedule.steps[s].device;
    if (placed_[s].empty() || !clocks_[d] || !after[d]) continue;
    const auto found = std::find_if(
        records_[s].begin(), records_[s].end(),
        [](const StepRecord& record) { return record.kind == StepRecord::Kind::kPartition; });
    if (found == records_[s].end()) continue;
    const auto on_host = [&](std::uint64_t device_ns) {
      return (host_time_ns(*clocks_[d], *after[d], device_ns) - start_ns) / 1000;
    };
    for (const npu_span& span : placed_[s]) {
      found->node_spans.push_back({on_host(span.begin), on_host(span.end)});
    }
    found->clock_error_us =
        static_cast<double>(std::max(clocks_[d]->uncertainty_ns, after[d]->uncertainty_ns)) / 1000;
  }
}

/// What concerns no node is told with the partition; what was asked for, as that.
void Executor::Run::tell_partition(const Step& step, const BackendError& error) const {
  const bool is_ended = error.status() == NPU_CANCELLED || error.status() == NPU_DEADLINE;
  if (is_ended && parts_.stop != nullptr) parts_.stop->check();
  if (error.status() < NPU_CANCELLED || step.kind != PlanStep::Kind::kPartition) throw error;
  const Partition& partition = parts_.plan.partitions[index_of(step.index)];
  throw BackendError(error.status(), error.message() + " (running partition " +
                                         std::to_string(step.index) + " on device '" +
                                         partition.device + "')");
}

/// Makes a result known to its readers. It is what the graph says, since its buffer was made so.
void Executor::Run::keep_result(const Step& step, std::size_t index,
                                std::shared_ptr<DeviceBuffer> buffer) {
  const std::size_t slot = step.outputs[index];
  Copy& copy = copies_[slot];
  if (parts_.schedule.slots[slot].read_by_other) {
    copy.memory = buffer->host_memory();
    if (copy.memory == nullptr && buffer->bytes() != 0) {
      copy.host = buffer->to_host();
      copy.memory = copy.host.data();
    }
  }
  copy.buffer = std::move(buffer);
}

// ---- Work of queues ----

/// Keeps an event, and says what it waited for.
Executor::Run::Event Executor::Run::submitted(std::size_t s, Lane lane, double since, Event event,
                                              std::vector<Event> after) {
  Work work;
  work.event = std::move(event);
  work.after = std::move(after);
  const std::size_t device = parts_.schedule.steps[s].device;
  const bool is_own = flight_.queues[device][static_cast<std::size_t>(lane)] != nullptr;
  work.queue = device * kLanes + (is_own ? static_cast<std::size_t>(lane) : 0);
  work.submitted_us = since;
  work.record = records_[s].size();  // which is noted after its work
  work.is_first = work_[s].empty() || work_[s].back().record != work.record;
  if (record_ != nullptr) work.event->note_time();
  work_[s].push_back(std::move(work));
  return work_[s].back().event;
}

void Executor::Run::submit_partition(std::size_t s) {
  const Step& step = parts_.schedule.steps[s];
  const auto partition = index_of(step.index);
  const double started = microseconds_since(start_);
  const DeviceProgram& program = *flight_.programs[partition];
  std::vector<npu_buffer*> arguments;
  std::vector<Event> after;
  for (const std::size_t slot : step.inputs) {
    arguments.push_back(copies_[slot].buffer->get());
    after.push_back(copies_[slot].ready);
  }
  const auto kept = own_outputs(step);
  const auto results = kept.empty() ? program.make_outputs() : kept;
  std::vector<npu_buffer*> handles;
  std::vector<const std::byte*> mapped;
  for (std::size_t i = 0; i < results.size(); ++i) {
    // Memory that stays where it is can be mapped before the run; afterwards it may be too late.
    const bool is_fixed =
        !flight_.outputs[partition].empty() && parts_.schedule.slots[step.outputs[i]].needs_host;
    mapped.push_back(is_fixed ? results[i]->host_memory() : nullptr);
    handles.push_back(results[i]->get());
  }
  std::unique_ptr<RunProfile> profile;
  if (is_timed()) {
    profile = std::make_unique<RunProfile>(program.signature().nodes,
                                           parts_.programs.partitions[partition].report_steps);
  }
  const double since = now_us();
  Event event = queue(step.device, Lane::kRun)
                    .run(program, arguments, handles, after, profile.get(), deadline_ns(),
                         flight_.taps[partition]);
  const Event done = submitted(s, Lane::kRun, since, std::move(event), std::move(after));
  work_[s].back().profile = std::move(profile);
  StepRecord record{.kind = StepRecord::Kind::kPartition,
                    .index = step.index,
                    .device = parts_.plan.partitions[partition].device};
  note(records_[s], std::move(record), started);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t slot = step.outputs[i];
    copies_[slot].buffer = results[i];
    copies_[slot].ready = done;
    if (parts_.schedule.slots[slot].needs_host) submit_fetch(s, slot, done, mapped[i]);
  }
  flush(step.device);
}

void Executor::Run::flush(std::size_t device) {
  for (const auto& each : flight_.queues[device]) {
    if (each != nullptr) each->flush();
  }
}

/// Nothing that a queue still uses may go before its work is done.
void Executor::Run::settle() noexcept {
  if (thread_.joinable()) thread_.join();
  for (const std::vector<Work>& of_step : work_) {
    for (const Work& work : of_step) work.event->settle();
  }
}

/// Waits for all work in the order of the plan. Throws the error of the earliest step.
void Executor::Run::finish_work() {
  for (std::size_t s = 0; s < work_.size(); ++s) {
    if (error_ != nullptr && s >= error_step_) break;
    for (Work& work : work_[s]) finish_work(s, work);
  }
  if (error_ != nullptr) std::rethrow_exception(error_);
  work_.clear();  // nothing is left to settle
}

void Executor::Run::finish_work(std::size_t s, Work& work) {
  try {
    work.event->wait();
  } catch (const BackendError& error) {
    tell_partition(parts_.schedule.steps[s], error);
  }
  if (record_ == nullptr) return;
  // It could begin once it was submitted, what it waited for was done, and so was the queue's work
  // before it.
  double& last = last_end_us_[work.queue];
  double begin = std::max(work.submitted_us, last);
  for (const Event& event : work.after) {
    if (const auto found = ended_us_.find(event.get()); found != ended_us_.end()) {
      begin = std::max(begin, found->second);
    }
  }
  const auto noted = work.event->done_at();
  const double now = noted ? std::chrono::duration<double, std::micro>(*noted - start_).count()
                           : microseconds_since(start_);
  const double end = std::max(now, begin);
  ended_us_[work.event.get()] = last = end;
  if (work.is_fetch || work.record >= records_[s].size()) return;
  StepRecord& record = records_[s][work.record];
  if (work.is_first) record.start_us = begin;
  record.end_us = end;
  if (work.profile == nullptr) return;
  keep_times(s, record, work.profile->times());
}

// ---- Ends ----

/// Drops copies whose last reader was this step; other devices' buffers go back to their threads.
void Executor::Run::release(const Step& step) {
  std::vector<std::shared_ptr<DeviceBuffer>> own;
  own.reserve(step.reads.size());
  const std::lock_guard lock(mutex_);
  for (const std::size_t slot : step.reads) {
    Copy& copy = copies_[slot];
    if (--copy.readers > 0 || parts_.schedule.slots[slot].is_kept) continue;
    const std::size_t home = parts_.schedule.slots[slot].device;
    auto& place = home == step.device ? own : garbage_[home];
    place.push_back(std::move(copy.buffer));
    copy.host = {};
  }
}

void Executor::Run::take_garbage(std::size_t device,
                                 std::vector<std::shared_ptr<DeviceBuffer>>& free) {
  const std::lock_guard lock(mutex_);
  free.swap(garbage_[device]);
}

/// The content of a slot, once all work is done, and whether it had to be copied.
std::pair<Tensor, TransferPath> Executor::Run::fetch(std::size_t slot) const {
  const Copy& copy = copies_[slot];
  if (copy.given.data() != nullptr) return {copy.given, TransferPath::kWrapped};
  // What a queue has fetched is read-only from now on, so others may hold it, too.
  if (copy.fetched != nullptr && copy.host.data() != nullptr) {
    return {copy.host, TransferPath::kCopied};
  }
  // A buffer that is this run's alone is the caller's now; but not if it counts against a limit.
  const DeviceInstance& home = *copy.buffer->device();
  const bool is_lent = !home.keeps_outputs() && !home.has_memory_limit() &&
                       copy.buffer->bytes() != 0 && !parts_.schedule.slots[slot].is_state;
  if (is_lent && copy.buffer->host_memory() != nullptr) {
    return {DeviceBuffer::view(copy.buffer), TransferPath::kWrapped};
  }
  const TensorInfo& tensor = tensor_of(slot);
  Tensor result = parts_.results->take(slot, tensor.dtype, tensor.shape);
  copy.buffer->read(result.mutable_data());
  return {std::move(result), TransferPath::kCopied};
}

std::vector<Tensor> Executor::Run::fetch_outputs(std::vector<StepRecord>& records) {
  const double started = microseconds_since(start_);
  StepRecord record{.kind = StepRecord::Kind::kOutput, .device = "host"};
  std::vector<Tensor> outputs;
  outputs.reserve(parts_.graph.graph_outputs().size() + parts_.taps.size());
  const auto add = [&](std::pair<Tensor, TransferPath> fetched) {
    count(record, static_cast<std::int64_t>(fetched.first.bytes()), fetched.second);
    outputs.push_back(std::move(fetched.first));
  };
  for (std::size_t i = 0; i < parts_.graph.graph_outputs().size(); ++i) {
    const TensorInfo& tensor = parts_.graph.tensor(parts_.graph.graph_outputs()[i]);
    if (tensor.kind == TensorKind::kGraphInput) {
      outputs.push_back(input(parts_.graph.graph_outputs()[i]));
    } else if (tensor.kind == TensorKind::kWeight) {
      outputs.push_back(parts_.programs.output_weights[i]);
    } else if (parts_.schedule.outputs[i] == Schedule::kNoSlot) {
      outputs.emplace_back();  // a state's, which stays where it is
    } else {
      add(fetch(parts_.schedule.outputs[i]));
    }
  }
  for (std::size_t i = 0; i < parts_.taps.size(); ++i) {
    const TapPlace& tap = parts_.taps[i];
    if (tap.index) {
      add({flight_.taps[tap.partition][*tap.index]->to_host(), TransferPath::kCopied});
    } else {
      add(fetch(parts_.schedule.taps[i]));
    }
  }
  note(records, std::move(record), started);
  return outputs;
}

const Tensor& Executor::Run::input(TensorId id) const {
  const auto& all = parts_.graph.graph_inputs();
  return inputs_[static_cast<std::size_t>(std::find(all.begin(), all.end(), id) - all.begin())];
}

}  // namespace npu
