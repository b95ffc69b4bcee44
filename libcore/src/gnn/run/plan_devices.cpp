// SPDX-License-Identifier: Apache-2.0
// Opens the devices of a plan: each through the backend that the options name, else through that of
// the target's device of its name. O(devices), plus what opening a backend takes.
#include "gnn/run/plan_devices.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "npu/support/json.hpp"
#include "npu/target/target.hpp"

namespace npu::gnn {
namespace {

std::set<std::string> used_devices(const Plan& plan) {
  std::set<std::string> used;
  for (const PlannedStages& stages : plan.device_plans) {
    for (const PlannedSegment& segment : stages.segments) {
      for (const PlannedShare& share : segment.shares) used.insert(share.device);
    }
  }
  return used;
}

}  // namespace

std::vector<GnnDevice> open_devices(const Plan& plan, const RunOptions& options,
                                    CompileCache& cache, ProgramCounts& counts) {
  const Target target = load_target(options.target);
  const std::set<std::string> used = used_devices(plan);
  std::vector<GnnDevice> devices;
  for (const PlanDevice& planned : plan.devices) {
    GnnDevice& device = devices.emplace_back();
    device.name = planned.name;
    device.resource = planned.resource;
    device.is_static = planned.is_static;
    device.threads = options.threads;
    device.cache = &cache;
    device.counts = &counts;
    Json backend_options = Json::object();
    const auto chosen =
        std::find_if(options.devices.rbegin(), options.devices.rend(),
                     [&](const DeviceBackend& entry) { return entry.device == planned.name; });
    if (chosen != options.devices.rend()) {
      device.backend = chosen->backend;
    } else if (const Device* description = target.find_device(planned.name)) {
      device.backend = description->backend;
      if (description->backend_options.is_object()) backend_options = description->backend_options;
    }
    if (!used.contains(planned.name)) continue;
    if (device.backend.empty()) {
      throw Error(
          ErrorCode::kUnsupported,
          "device '" + device.name + "' has no backend: give --device " + device.name + "=BACKEND");
    }
    backend_options["threads"] = options.threads;
    device.options = backend_options.dump();
    device.instance = DeviceInstance::open(Backend::load(device.backend), device.options);
  }
  return devices;
}

}  // namespace npu::gnn
