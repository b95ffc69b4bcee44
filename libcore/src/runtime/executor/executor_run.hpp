// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "device/device_instance.hpp"
#include "npu/support/log.hpp"
#include "runtime/executor/executor_parts.hpp"
#include "support/elapsed.hpp"

namespace npu {

/// The state of one run: where each tensor's copies are, which steps are done, and what the queues
/// still have to do.
class Executor::Run {
 public:
  Run(Parts& parts, Flight& flight, std::vector<Tensor> inputs, RunRecord* record,
      bool with_node_times, bool with_step_times);
  /// Waits for what is left.
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Makes the steps of devices without queues, and submits the others.
  void begin();
  /// Waits for them, and gives the outputs. Throws what the earliest step failed with.
  std::vector<Tensor> finish();

 private:
  using Event = DeviceQueue::Event;
  using Step = Schedule::Step;

  /// The content of a slot. Written by the thread of the slot's device before the step that fills
  /// it is done or submitted, read by other threads after that; `readers` is guarded by the mutex.
  struct Copy {
    std::shared_ptr<DeviceBuffer> buffer;
    Event ready;                        ///< of the work that fills the buffer; null: it is filled
    const std::byte* memory = nullptr;  ///< of the buffer or of `host`, if another device reads it
    Tensor host;                        ///< fetched, if the device's memory is not the host's
    Tensor given;                       ///< what the buffer lies in, if the slot is given
    Event fetched;                      ///< of the work that fills `memory`; null: it is filled
    std::vector<Event> pieces;          ///< of the same, kSlice bytes each; empty if it is one
    std::int32_t readers = 0;
  };
  /// Work of a queue.
  struct Work {
    Event event;
    std::vector<Event> after;
    std::size_t queue = 0;  ///< by device and lane
    double submitted_us = 0;
    std::size_t record = 0;  ///< of its step, if there are records
    bool is_first = false;   ///< of those of its record
    bool is_fetch = false;   ///< belongs to no record
    std::unique_ptr<RunProfile> profile;
  };

  void run_in_order();
  void run_device(std::size_t device);
  void run_step(std::size_t s);
  void keep_error(std::size_t s);

  // States, between runs on devices.
  void read_states();
  void put_states(std::size_t partition, std::vector<std::shared_ptr<DeviceBuffer>>& outputs) const;
  void keep_states(std::vector<Tensor>& outputs) const;

  // Steps of devices without queues, which block.
  void transfer(std::size_t s);
  TransferPath arrive(const Step& step, const Schedule::Copy& copy);
  std::shared_ptr<DeviceBuffer> wrap_source(const Step& step, std::size_t from);
  void upload_inputs(std::size_t s);
  TransferPath upload(std::size_t s, const Schedule::Copy& upload);
  std::vector<std::shared_ptr<DeviceBuffer>> own_outputs(const Step& step) const;
  std::vector<std::shared_ptr<DeviceBuffer>> output_buffers(const Step& step);
  void run_partition(std::size_t s);
  void keep_result(const Step& step, std::size_t index, std::shared_ptr<DeviceBuffer> buffer);

  // Steps of devices with queues.
  TransferPath submit_arrival(std::size_t s, const Schedule::Copy& copy);
  void submit_pieces(std::size_t s, const Schedule::Copy& copy);
  std::byte* staging(std::size_t slot);
  void submit_partition(std::size_t s);
  void submit_fetch(std::size_t s, std::size_t slot, const Event& done, const std::byte* mapped);
  /// `since`: before it was, since a queue may begin before the call returns.
  Event submitted(std::size_t s, Lane lane, double since, Event event, std::vector<Event> after);
  double now_us() const { return microseconds_since(start_); }
  void flush(std::size_t device);
  DeviceBuffer& arrival(std::size_t slot);

  void settle() noexcept;
  void finish_work();
  void finish_work(std::size_t s, Work& work);
  void keep_times(std::size_t s, StepRecord& record, RunTimes times);
  std::vector<std::optional<ClockSample>> read_clocks() const;
  void place_times();
  std::vector<Tensor> fetch_outputs(std::vector<StepRecord>& records);
  std::pair<Tensor, TransferPath> fetch(std::size_t slot) const;
  void count(StepRecord& record, std::int64_t bytes, TransferPath path) const;

  bool is_timed() const {
    return parts_.has_times && record_ != nullptr && (with_node_times_ || with_step_times_);
  }
  bool has_queue(std::size_t device) const { return parts_.devices.has_queue(device); }
  DeviceInstance& device(std::size_t number) { return parts_.devices[number]; }
  /// Of a device that has queues.
  DeviceQueue& queue(std::size_t device, Lane lane) {
    const auto& queues = flight_.queues[device];
    const auto& own = queues[static_cast<std::size_t>(lane)];
    return own != nullptr ? *own : *queues.front();
  }
  const TensorInfo& tensor_of(std::size_t slot) const {
    return parts_.graph.tensor(parts_.schedule.slots[slot].tensor);
  }
  TensorType type_of(std::size_t slot) const {
    return {tensor_of(slot).dtype, tensor_of(slot).shape, parts_.schedule.slots[slot].layout};
  }
  const Tensor& input(TensorId id) const;
  static std::vector<const DeviceProgram*> programs_of(const Flight& flight);
  std::uint64_t deadline_ns() const {
    return parts_.stop != nullptr ? parts_.stop->deadline_ns() : 0;
  }
  void note(std::vector<StepRecord>& records, StepRecord record, double started);
  [[noreturn]] void tell_partition(const Step& step, const BackendError& error) const;
  void release(const Step& step);
  void take_garbage(std::size_t device, std::vector<std::shared_ptr<DeviceBuffer>>& free);

  Parts& parts_;
  Flight& flight_;
  std::vector<Tensor> inputs_;
  RunRecord* record_;
  bool with_node_times_;
  bool with_step_times_;
  std::vector<Copy> copies_;                      // by slot
  std::vector<std::vector<StepRecord>> records_;  // by step, so that their order is the plan's
  std::vector<std::vector<Work>> work_;           // by step
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<char> done_;
  std::vector<std::vector<std::shared_ptr<DeviceBuffer>>> garbage_;  // by device
  std::exception_ptr error_;
  std::size_t error_step_ = 0;
  std::vector<std::optional<ClockSample>> clocks_;  // by device, before the run, if it is timed
  std::vector<std::vector<npu_span>> placed_;       // by step: its nodes on the device's clock
  std::map<const DeviceEvent*, double> ended_us_;   // of work, if there are records
  std::vector<double> last_end_us_;                 // by device and lane
  std::thread thread_;
  RunStop::Scope stop_scope_;
  LogTimer timer_{LogModule::kRun, LogLevel::kDebug};
  Clock::time_point start_;
};

}  // namespace npu
