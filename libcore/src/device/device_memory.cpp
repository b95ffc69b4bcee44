// SPDX-License-Identifier: Apache-2.0
// Asks backends what models take and what memories have. Numbers come from outside: a report whose
// sum does not fit in 63 bits breaks the contract. O(memories).
#include <limits>

#include "device/device_call.hpp"
#include "npu/device/backend.hpp"

namespace npu {
namespace {

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

/// The host's structs of a report, one for each memory of a device.
class ReportRoom {
 public:
  explicit ReportRoom(std::size_t memories)
      : bytes_(memories, sized<npu4_memory_bytes>()), report_(sized<npu4_memory_report>()) {
    for (npu4_memory_bytes& each : bytes_) pointers_.push_back(&each);
    report_.memories = pointers_.data();
    report_.memory_count = pointers_.size();
  }
  ReportRoom(const ReportRoom&) = delete;
  ReportRoom& operator=(const ReportRoom&) = delete;

  npu4_memory_report* get() noexcept { return &report_; }

  MemoryReport read(const Backend& backend) const {
    MemoryReport read;
    read.is_exact = (report_.flags & NPU4_MEMORY_EXACT) != 0;
    read.is_bound = read.is_exact || (report_.flags & NPU4_MEMORY_BOUND) != 0;
    read.host = report_.host_bytes;
    std::uint64_t left = kMostBytes;
    const auto take = [&](std::uint64_t bytes) {
      if (bytes > left) break_contract(backend, "its report of memory has impossible numbers");
      left -= bytes;
    };
    take(report_.host_bytes);
    for (const npu4_memory_bytes& each : bytes_) {
      for (const std::uint64_t bytes :
           {each.weights_bytes, each.scratch_bytes, each.boundary_bytes, each.other_bytes}) {
        take(bytes);
      }
      read.memories.push_back(
          {each.weights_bytes, each.scratch_bytes, each.boundary_bytes, each.other_bytes});
    }
    return read;
  }

 private:
  std::vector<npu4_memory_bytes> bytes_;
  std::vector<npu4_memory_bytes*> pointers_;
  npu4_memory_report report_;
};

}  // namespace

std::optional<MemoryReport> DeviceInstance::blob_memory(const Blob& blob) const {
  const auto ask = backend_->api().blob_memory;
  if (ask == nullptr) return std::nullopt;
  ReportRoom room(facts_.memories.size());
  npu4_error error = empty_error();
  check_status(ask(device_, blob.data.get(), blob.size, room.get(), &error), error, *backend_);
  return room.read(*backend_);
}

std::optional<MemoryReport> DeviceModel::memory() const {
  const Backend& backend = device_->backend();
  if (backend.api().model_memory == nullptr) return std::nullopt;
  ReportRoom room(device_->facts().memories.size());
  npu4_error error = empty_error();
  check_status(backend.api().model_memory(model_, room.get(), &error), error, backend);
  return room.read(backend);
}

std::optional<MemoryState> DeviceInstance::memory_state(std::uint32_t memory) const {
  const auto ask = backend_->api().device_memory;
  if (ask == nullptr || memory >= facts_.memories.size()) return std::nullopt;
  npu4_memory_state state = sized<npu4_memory_state>();
  npu4_error error = empty_error();
  check_status(ask(device_, memory, &state, &error), error, *backend_);
  const auto known = [&](std::uint64_t bit, std::uint64_t bytes) {
    return (state.known & bit) != 0 ? std::optional(bytes) : std::nullopt;
  };
  return MemoryState{.in_use = known(NPU4_KNOWN_IN_USE, state.in_use_bytes),
                     .peak = known(NPU4_KNOWN_PEAK_USE, state.peak_bytes),
                     .limit = known(NPU4_KNOWN_LIMIT, state.limit_bytes),
                     .largest_free = known(NPU4_KNOWN_LARGEST_FREE, state.largest_free_bytes)};
}

}  // namespace npu
