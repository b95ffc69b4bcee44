// SPDX-License-Identifier: Apache-2.0
// How tensors get from one device to another, and to the host, in a run: in place where a device
// can use the other one's memory, by a copy of the backend, or through memory of the host, in
// pieces where both sides have queues. Which of these it is was found with the schedule, but for
// memory of the host that a device may refuse. O(tensors) besides the work of the backends.
#include <optional>
#include <utility>

#include "device/backend.hpp"
#include "device/device_buffer.hpp"
#include "npu/support/ids.hpp"
#include "runtime/executor/executor_run.hpp"
#include "runtime/executor/result_memory.hpp"

namespace npu {
namespace {

/// Of what goes through the host: small enough that reading and writing overlap, large enough that
/// calls do not count.
constexpr std::uint64_t kSlice = std::uint64_t{4} << 20;

}  // namespace

/// Tells a record of one more tensor.
void Executor::Run::count(StepRecord& record, std::int64_t bytes, TransferPath path) const {
  ++record.tensors;
  record.bytes += bytes;
  if (path != TransferPath::kWrapped) record.copied_bytes += bytes;
  if (record_ != nullptr) record.paths.insert(path);
}

void Executor::Run::upload_inputs(std::size_t s) {
  const Step& step = parts_.schedule.steps[s];
  if (step.uploads.empty()) return;
  const double started = microseconds_since(start_);
  StepRecord record{.kind = StepRecord::Kind::kInput, .device = parts_.devices.name(step.device)};
  for (const Schedule::Copy& each : step.uploads) {
    count(record, static_cast<std::int64_t>(inputs_[each.from].bytes()), upload(s, each));
  }
  note(records_[s], std::move(record), started);
}

/// Brings an input to a device: in place, or into a buffer that later runs use, too.
TransferPath Executor::Run::upload(std::size_t s, const Schedule::Copy& upload) {
  const std::size_t to = parts_.schedule.steps[s].device;
  const Tensor& given = inputs_[upload.from];
  Copy& copy = copies_[upload.to];
  const TensorType type = type_of(upload.to);
  if (type.layout.empty() && given.bytes() != 0) {
    copy.buffer = device(to).wrap(type.dtype, type.shape, given.data(),
                                  std::make_shared<const Tensor>(given));
    if (copy.buffer != nullptr) return TransferPath::kWrapped;
  }
  DeviceBuffer& buffer = arrival(upload.to);
  if (has_queue(to)) {
    const double since = now_us();
    Event event = queue(to, Lane::kUpload).write(buffer, given.data(), {});
    copy.ready = submitted(s, Lane::kUpload, since, std::move(event), {});
  } else {
    buffer.write(given.data());
  }
  return TransferPath::kCopied;
}

void Executor::Run::transfer(std::size_t s) {
  const double started = microseconds_since(start_);
  const Step& step = parts_.schedule.steps[s];
  const Transfer& transfer = parts_.plan.transfers[index_of(step.index)];
  StepRecord record{
      .kind = StepRecord::Kind::kTransfer, .index = step.index, .device = transfer.to_device};
  for (const Schedule::Copy& copy : step.copies) {
    const TransferPath path = has_queue(step.device) ? submit_arrival(s, copy) : arrive(step, copy);
    count(record, tensor_of(copy.from).bytes(), path);
  }
  note(records_[s], std::move(record), started);
}

TransferPath Executor::Run::arrive(const Step& step, const Schedule::Copy& copy) {
  const Copy& source = copies_[copy.from];
  Copy& arrived = copies_[copy.to];
  if (source.fetched != nullptr) source.fetched->wait();
  arrived.buffer = wrap_source(step, copy.from);
  if (arrived.buffer != nullptr) return TransferPath::kWrapped;
  arrived.buffer = device(step.device).import_tensor(type_of(copy.to), source.memory);
  return TransferPath::kCopied;
}

/// A buffer in the memory of another device's, which it keeps; null if that cannot be.
std::shared_ptr<DeviceBuffer> Executor::Run::wrap_source(const Step& step, std::size_t from) {
  const Copy& source = copies_[from];
  // Staging memory is another buffer's, which does not outlive the flight.
  const bool is_its_own =
      source.host.data() == nullptr && source.memory != nullptr && flight_.staging[from] == nullptr;
  if (!is_its_own) return nullptr;
  const TensorInfo& tensor = tensor_of(from);
  return device(step.device).wrap(tensor.dtype, tensor.shape, source.memory, source.buffer);
}

/// The buffer of a slot that queues write to; run after run the same.
DeviceBuffer& Executor::Run::arrival(std::size_t slot) {
  std::shared_ptr<DeviceBuffer>& buffer = flight_.arrivals[slot];
  if (buffer == nullptr) {
    buffer = device(parts_.schedule.slots[slot].device).allocate(type_of(slot), 0);
  }
  copies_[slot].buffer = buffer;
  return *buffer;
}

TransferPath Executor::Run::submit_arrival(std::size_t s, const Schedule::Copy& copy) {
  const Step& step = parts_.schedule.steps[s];
  const Copy& source = copies_[copy.from];
  Copy& arrived = copies_[copy.to];
  const std::size_t home = parts_.schedule.slots[copy.from].device;
  if (copy.is_direct) {
    std::vector<Event> after{source.ready};
    const double since = now_us();
    Event event = queue(step.device, Lane::kArrival).copy(*source.buffer, arrival(copy.to), after);
    arrived.ready = submitted(s, Lane::kArrival, since, std::move(event), std::move(after));
    return TransferPath::kDeviceCopy;
  }
  if (!source.pieces.empty()) {
    submit_pieces(s, copy);
    return TransferPath::kStaged;
  }
  std::vector<Event> after;
  if (parts_.devices.shares_events(home, step.device)) {
    after.push_back(source.fetched);
  } else if (source.fetched != nullptr) {
    source.fetched->wait();
  }
  arrived.buffer = wrap_source(step, copy.from);
  if (arrived.buffer != nullptr) {
    if (!after.empty()) arrived.ready = after.front();
    return TransferPath::kWrapped;
  }
  const double since = now_us();
  Event event = queue(step.device, Lane::kArrival).write(arrival(copy.to), source.memory, after);
  arrived.ready = submitted(s, Lane::kArrival, since, std::move(event), std::move(after));
  return has_queue(home) ? TransferPath::kStaged : TransferPath::kCopied;
}

/// Each piece is written while the next one is read.
void Executor::Run::submit_pieces(std::size_t s, const Schedule::Copy& copy) {
  const Step& step = parts_.schedule.steps[s];
  const Copy& source = copies_[copy.from];
  const bool shares =
      parts_.devices.shares_events(parts_.schedule.slots[copy.from].device, step.device);
  DeviceBuffer& to = arrival(copy.to);
  std::uint64_t offset = 0;
  for (const Event& piece : source.pieces) {
    std::vector<Event> after;
    if (shares) {
      after.push_back(piece);
    } else {
      piece->wait();
    }
    const double since = now_us();
    Event event = queue(step.device, Lane::kArrival)
                      .write(to, source.memory + offset, after, {offset, kSlice});
    copies_[copy.to].ready =
        submitted(s, Lane::kArrival, since, std::move(event), std::move(after));
    offset += kSlice;
  }
}

/// Content that the host needs: it is mapped, or a queue reads it.
void Executor::Run::submit_fetch(std::size_t s, std::size_t slot, const Event& done,
                                 const std::byte* mapped) {
  Copy& copy = copies_[slot];
  copy.memory = mapped;
  copy.fetched = done;
  const std::uint64_t bytes = copy.buffer->bytes();
  if (mapped != nullptr || bytes == 0) return;
  std::byte* memory = staging(slot);
  if (memory == nullptr) {
    const TensorInfo& tensor = tensor_of(slot);
    copy.host = parts_.results->take(slot, tensor.dtype, tensor.shape);
    memory = copy.host.mutable_data();
  }
  copy.memory = memory;
  for (std::uint64_t offset = 0; offset < bytes; offset += kSlice) {
    std::vector<Event> after{done};
    const double since = now_us();
    Event event = queue(parts_.schedule.steps[s].device, Lane::kFetch)
                      .read(*copy.buffer, memory + offset, after, {offset, kSlice});
    copy.fetched = submitted(s, Lane::kFetch, since, std::move(event), std::move(after));
    work_[s].back().is_fetch = true;
    if (bytes > kSlice) copy.pieces.push_back(copy.fetched);
  }
}

/// Where a slot's content is fetched that another device is to write from its pinned memory; null
/// if none has any.
std::byte* Executor::Run::staging(std::size_t slot) {
  const std::optional<std::size_t> on = parts_.schedule.slots[slot].staged_on;
  if (!on) return nullptr;
  std::shared_ptr<DeviceBuffer>& kept = flight_.staging[slot];
  if (kept == nullptr) {
    const TensorInfo& tensor = tensor_of(slot);
    try {
      kept = device(*on).allocate(tensor.dtype, tensor.shape, NPU_USAGE_STAGING,
                                  device(*on).facts().pinned_memory.value_or(0));
    } catch (const BackendError&) {
      return nullptr;  // pinned memory is scarce, and the host's own serves as well
    }
  }
  return kept->host_memory();
}

}  // namespace npu
