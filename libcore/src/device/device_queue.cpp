// SPDX-License-Identifier: Apache-2.0
// Owners of queues and events, and the calls that enqueue work. A call costs the arrays of handles
// besides the backend's own.
#include <algorithm>

#include "device/device_instance.hpp"
#include "device/queue.hpp"
#include "device/tap_views.hpp"

namespace npu {
namespace {

std::vector<npu_event*> handles_of(std::span<const DeviceQueue::Event> events) {
  std::vector<npu_event*> handles;
  handles.reserve(events.size());
  for (const DeviceQueue::Event& event : events) {
    if (event != nullptr) handles.push_back(event->get());
  }
  return handles;
}

}  // namespace

// ---- Events ----

DeviceEvent::DeviceEvent(std::shared_ptr<DeviceInstance> device, npu_event* event)
    : device_(std::move(device)), event_(event) {}

DeviceEvent::~DeviceEvent() { device_->backend().api().event_free(event_); }

void DeviceEvent::wait() const {
  npu_error error = empty_error();
  const npu_status status = device_->backend().api().event_wait(event_, NPU_FOREVER, &error);
  check_status(status, error, device_->backend());
}

void DeviceEvent::settle() const noexcept {
  device_->backend().api().event_wait(event_, NPU_FOREVER, nullptr);
}

void DeviceEvent::note_time() {
  const npu_backend& api = device_->backend().api();
  if (api.event_on_done == nullptr || time_ != nullptr) return;
  time_ = std::make_shared<Time>(0);
  auto shared = std::make_unique<std::shared_ptr<Time>>(time_);
  const npu_done note = [](void* context, npu_status) {
    const std::unique_ptr<std::shared_ptr<Time>> mine(static_cast<std::shared_ptr<Time>*>(context));
    (*mine)->store(std::chrono::steady_clock::now().time_since_epoch().count());
  };
  if (api.event_on_done(event_, note, shared.get(), nullptr) == NPU_OK) {
    // The call that comes once frees it.
    [[maybe_unused]] const auto* given = shared.release();
  }
}

std::optional<std::chrono::steady_clock::time_point> DeviceEvent::done_at() const {
  const auto ticks = time_ != nullptr ? time_->load() : 0;
  if (ticks == 0) return std::nullopt;
  return std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(ticks));
}

// ---- Queues ----

bool DeviceQueue::is_offered(const DeviceInstance& device) {
  return device.backend().has_feature("queue");
}

bool DeviceQueue::copies(const DeviceInstance& device) {
  return device.backend().has_feature("copy");
}

DeviceQueue::DeviceQueue(std::shared_ptr<DeviceInstance> device, bool is_timed)
    : device_(std::move(device)) {
  const Backend& backend = device_->backend();
  npu_queue_args args = sized<npu_queue_args>();
  args.priority = NPU_PRIORITY_NORMAL;
  args.flags = is_timed ? NPU_QUEUE_PROFILE : 0U;
  call_patiently(backend, [&](npu_error& error) {
    return backend.api().queue_open(device_->get(), &args, &queue_, &error);
  });
  if (queue_ == nullptr)
    break_contract(backend, "queue_open", "it says that it opened a queue, but gave none");
}

DeviceQueue::~DeviceQueue() { device_->backend().api().queue_close(queue_); }

/// `call` gets where the work goes, the place of its event and an error.
template <typename Call>
DeviceQueue::Event DeviceQueue::enqueue(std::span<const Event> waits, const Call& call) {
  const std::vector<npu_event*> handles = handles_of(waits);
  npu_enqueue where = sized<npu_enqueue>();
  where.queue = queue_;
  where.wait = handles.data();
  where.wait_count = handles.size();
  npu_event* event = nullptr;
  npu_error error = empty_error();
  const Backend& backend = device_->backend();
  check_status(call(backend.api(), where, event, error), error, backend);
  if (event == nullptr)
    break_contract(backend, "submit", "it says that it enqueued work, but gave no event");
  return std::make_shared<DeviceEvent>(device_, event);
}

DeviceQueue::Event DeviceQueue::run(const DeviceProgram& program,
                                    std::span<npu_buffer* const> inputs,
                                    std::span<npu_buffer* const> outputs,
                                    std::span<const Event> waits, RunProfile* profile,
                                    std::uint64_t deadline_ns,
                                    std::span<const std::shared_ptr<DeviceBuffer>> taps) {
  npu_run_args args = sized<npu_run_args>();
  args.inputs = inputs.data();
  args.input_count = inputs.size();
  args.outputs = outputs.data();
  args.output_count = outputs.size();
  args.deadline_ns = deadline_ns;
  args.profile = profile != nullptr ? profile->get() : nullptr;
  const TapViews views(program.signature().taps, taps);
  views.put(args);
  return enqueue(waits, [&](const npu_backend& api, const npu_enqueue& where, npu_event*& event,
                            npu_error& error) {
    return api.submit(program.get(), &args, &where, &event, &error);
  });
}

namespace {

npu_transfer transfer_of(const DeviceBuffer& buffer, void* data, BufferPart part) {
  npu_transfer transfer = sized<npu_transfer>();
  transfer.offset = part.offset;
  transfer.bytes = std::min(part.bytes, buffer.bytes() - part.offset);
  transfer.data = data;
  return transfer;
}

}  // namespace

DeviceQueue::Event DeviceQueue::write(const DeviceBuffer& buffer, const void* data,
                                      std::span<const Event> waits, BufferPart part) {
  // The backend only reads it.
  const npu_transfer transfer = transfer_of(buffer, const_cast<void*>(data), part);
  return enqueue(waits, [&](const npu_backend& api, const npu_enqueue& where, npu_event*& event,
                            npu_error& error) {
    return api.submit_write(buffer.get(), &transfer, &where, &event, &error);
  });
}

DeviceQueue::Event DeviceQueue::read(const DeviceBuffer& buffer, void* data,
                                     std::span<const Event> waits, BufferPart part) {
  const npu_transfer transfer = transfer_of(buffer, data, part);
  return enqueue(waits, [&](const npu_backend& api, const npu_enqueue& where, npu_event*& event,
                            npu_error& error) {
    return api.submit_read(buffer.get(), &transfer, &where, &event, &error);
  });
}

DeviceQueue::Event DeviceQueue::copy(const DeviceBuffer& source, const DeviceBuffer& destination,
                                     std::span<const Event> waits) {
  return enqueue(waits, [&](const npu_backend& api, const npu_enqueue& where, npu_event*& event,
                            npu_error& error) {
    return api.buffer_copy(source.get(), destination.get(), &where, &event, &error);
  });
}

void DeviceQueue::flush() {
  npu_error error = empty_error();
  const Backend& backend = device_->backend();
  check_status(backend.api().queue_flush(queue_, &error), error, backend);
}

}  // namespace npu
