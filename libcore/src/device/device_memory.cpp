// SPDX-License-Identifier: Apache-2.0
// Asks backends what models take and what memories have. Numbers come from outside: a report whose
// sum does not fit in 63 bits breaks the contract. O(memories).
#include <limits>

#include "device/device_instance.hpp"
#include "device/report_room.hpp"

namespace npu {
namespace {

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

MemoryReport report_of(const ReportRoom& room, const Backend& backend) {
  MemoryReport read;
  read.is_exact = room.has_flag(NPU_MEMORY_EXACT);
  read.is_bound = read.is_exact || room.has_flag(NPU_MEMORY_BOUND);
  read.host = room.host_bytes();
  std::uint64_t left = kMostBytes;
  const auto take = [&](std::uint64_t bytes) {
    if (bytes > left)
      break_contract(backend, "npu_memory_report", "its report of memory has impossible numbers");
    left -= bytes;
  };
  take(read.host);
  for (const npu_memory_bytes& each : room.memories()) {
    for (const std::uint64_t bytes :
         {each.weights_bytes, each.scratch_bytes, each.boundary_bytes, each.other_bytes}) {
      take(bytes);
    }
    read.memories.push_back(
        {each.weights_bytes, each.scratch_bytes, each.boundary_bytes, each.other_bytes});
  }
  return read;
}

}  // namespace

std::optional<MemoryReport> DeviceInstance::blob_memory(const Blob& blob) const {
  const auto ask = backend_->api().blob_memory;
  if (ask == nullptr) return std::nullopt;
  ReportRoom room(facts_.memories.size());
  npu_error error = empty_error();
  check_status(ask(device_, blob.data.get(), blob.size, room.get(), &error), error, *backend_);
  return report_of(room, *backend_);
}

std::optional<MemoryReport> DeviceModel::memory() const {
  const Backend& backend = device_->backend();
  if (backend.api().model_memory == nullptr) return std::nullopt;
  ReportRoom room(device_->facts().memories.size());
  npu_error error = empty_error();
  check_status(backend.api().model_memory(model_, room.get(), &error), error, backend);
  return report_of(room, backend);
}

std::optional<MemoryState> DeviceInstance::memory_state() const {
  const auto ask = backend_->api().device_memory;
  if (ask == nullptr || facts_.memories.empty() || facts_.is_absent) return std::nullopt;
  npu_memory_state state = sized<npu_memory_state>();
  npu_error error = empty_error();
  check_status(ask(device_, 0, &state, &error), error, *backend_);
  const auto known = [&](std::uint64_t bit, std::uint64_t bytes) {
    return (state.known & bit) != 0 ? std::optional(bytes) : std::nullopt;
  };
  return MemoryState{.in_use = known(NPU_KNOWN_IN_USE, state.in_use_bytes),
                     .limit = known(NPU_KNOWN_LIMIT, state.limit_bytes)};
}

}  // namespace npu
