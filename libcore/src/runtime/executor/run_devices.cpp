// SPDX-License-Identifier: Apache-2.0
// Opens devices once each. O(partitions) besides the backends.
#include "runtime/executor/run_devices.hpp"

#include <algorithm>

#include "device/queue.hpp"
#include "npu/support/error.hpp"

namespace npu {

RunDevices::RunDevices(const PartitionPlan& plan, const Target& target,
                       const ExecutorOptions& options, const OpenDevices& open) {
  for (const Partition& partition : plan.partitions) {
    if (contains(partition.device)) continue;
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
    numbers_.emplace(partition.device, instances_.size());
    names_.push_back(partition.device);
    const auto found = open.find(partition.device);
    instances_.push_back(found != open.end() && found->second != nullptr
                             ? found->second
                             : DeviceInstance::open(Backend::load(device->backend),
                                                    device_options(*device, options)));
    // Whoever wants one step after the other gets blocking runs.
    const bool uses_queues = options.queues && options.overlap;
    has_queue_.push_back(uses_queues && DeviceQueue::is_offered(*instances_.back()) ? 1 : 0);
  }
  check_in_flight(options.in_flight);
}

/// Every device has to take so many runs at once.
void RunDevices::check_in_flight(std::int32_t wanted) const {
  if (wanted <= 1) return;
  for (std::size_t d = 0; d < size(); ++d) {
    const DeviceFacts& facts = instances_[d]->facts();
    const std::string device = "--in-flight " + std::to_string(wanted) + ": device '" + names_[d] +
                               "' (backend '" + instances_[d]->backend().name() + "') ";
    if (!has_queue(d)) {
      throw Error(ErrorCode::kUnsupported, device + "has no queues: it makes one run at a time");
    }
    const auto most = std::min(facts.programs_in_flight, facts.queues);
    if (static_cast<std::uint32_t>(wanted) > most) {
      throw Error(ErrorCode::kUnsupported,
                  device + "takes at most " + std::to_string(most) + " runs at once");
    }
  }
}

OpenDevices RunDevices::by_name() const {
  OpenDevices open;
  for (std::size_t d = 0; d < size(); ++d) open[names_[d]] = instances_[d];
  return open;
}

bool RunDevices::shares_events(std::size_t a, std::size_t b) const {
  return has_queue(a) && has_queue(b) && &instances_[a]->backend() == &instances_[b]->backend();
}

bool RunDevices::copies_directly(std::size_t from, std::size_t to) const {
  return shares_events(from, to) && DeviceQueue::copies(*instances_[to]);
}

bool RunDevices::submits_all() const {
  for (std::size_t d = 0; d < size(); ++d) {
    if (!shares_events(0, d)) return false;
  }
  return true;
}

}  // namespace npu
