// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device_instance.hpp"

namespace npu {

/// The completion of one piece of work of a queue. Keeps its device open.
class DeviceEvent {
 public:
  DeviceEvent(std::shared_ptr<DeviceInstance> device, npu_event* event);
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  npu_event* get() const noexcept { return event_; }
  /// Blocks until the work is done. Throws BackendError with what it failed with.
  void wait() const;
  /// Blocks until it is done or has failed.
  void settle() const noexcept;
  /// Has the time noted at which it is done, where the backend tells. Once, by the thread that
  /// submitted it.
  void note_time();
  /// Nothing if it was not noted, or not yet.
  std::optional<std::chrono::steady_clock::time_point> done_at() const;
  const DeviceInstance& device() const noexcept { return *device_; }

 private:
  /// Shared with a call that may still come when the event is freed.
  using Time = std::atomic<std::chrono::steady_clock::rep>;

  std::shared_ptr<DeviceInstance> device_;
  npu_event* event_;
  std::shared_ptr<Time> time_;
};

/// Bytes of a buffer from an offset on, up to its end.
struct BufferPart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = UINT64_MAX;
};

/// A queue of a device: work done in order, beside the caller. Buffers, programs and memory of the
/// host stay as they are until its event is done, which the caller sees to. Waits are events of the
/// same backend. Every function throws BackendError.
class DeviceQueue {
 public:
  using Event = std::shared_ptr<DeviceEvent>;

  /// Whether a device has queues, and copies between buffers.
  static bool is_offered(const DeviceInstance& device);
  static bool copies(const DeviceInstance& device);

  /// Runs of a queue that is timed may be asked for times.
  explicit DeviceQueue(std::shared_ptr<DeviceInstance> device, bool is_timed = false);
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  /// `profile` may be null; it stays until the event is done. `deadline_ns` and `taps` as for
  /// DeviceProgram::run.
  Event run(const DeviceProgram& program, std::span<npu_buffer* const> inputs,
            std::span<npu_buffer* const> outputs, std::span<const Event> waits, RunProfile* profile,
            std::uint64_t deadline_ns = 0,
            std::span<const std::shared_ptr<DeviceBuffer>> taps = {});
  /// `data` is what the part begins with.
  Event write(const DeviceBuffer& buffer, const void* data, std::span<const Event> waits,
              BufferPart part = {});
  Event read(const DeviceBuffer& buffer, void* data, std::span<const Event> waits,
             BufferPart part = {});
  /// `source` may lie on another device of the backend.
  Event copy(const DeviceBuffer& source, const DeviceBuffer& destination,
             std::span<const Event> waits);
  /// Starts what has been submitted.
  void flush();

 private:
  template <typename Call>
  Event enqueue(std::span<const Event> waits, const Call& call);

  std::shared_ptr<DeviceInstance> device_;
  npu_queue* queue_ = nullptr;
};

}  // namespace npu
