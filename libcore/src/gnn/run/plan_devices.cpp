// SPDX-License-Identifier: Apache-2.0
// Opens the devices of a plan: each through the backend that the options name, else through that of
// the device of its name in the target that they name, else through the one that the plan's times
// were measured on, else through that of the plan's target. O(devices), plus
// what opening a backend takes.
#include "gnn/run/plan_devices.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "device/device_instance.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"

namespace npu::gnn {
namespace {

std::set<std::string> used_devices(const GnnPlan& plan) {
  std::set<std::string> used;
  for (const PlannedStages& stages : plan.choice.device_plans) {
    for (const PlannedSegment& segment : stages.segments) {
      for (const PlannedShare& share : segment.shares) used.insert(share.device);
    }
  }
  return used;
}

// The backend of a planned device, and the options that the target has for it.
void choose_backend(const PlanDevice& planned, const RunPlanOptions& options, const Target& target,
                    GnnDevice& device, Json& backend_options) {
  const auto chosen =
      std::find_if(options.devices.rbegin(), options.devices.rend(),
                   [&](const DeviceBackend& entry) { return entry.device == planned.name; });
  if (chosen != options.devices.rend()) {
    device.backend = chosen->backend;
    return;
  }
  const Device* description = target.find_device(planned.name);
  device.backend = planned.backend;
  if (description == nullptr) return;
  const bool asked = !options.target.empty() && !description->backend.empty();
  if (asked || device.backend.empty()) device.backend = description->backend;
  if (device.backend == description->backend && description->backend_options.is_object()) {
    backend_options = description->backend_options;
  }
}

}  // namespace

std::vector<GnnDevice> open_devices(const GnnPlan& plan, const RunPlanOptions& options,
                                    CompileCache& cache, ProgramCounts& counts) {
  const Target target = load_target(options.target.empty() ? plan.settings.target : options.target);
  const std::set<std::string> used = used_devices(plan);
  std::vector<GnnDevice> devices;
  for (const PlanDevice& planned : plan.devices) {
    GnnDevice& device = devices.emplace_back();
    device.name = planned.name;
    device.resource = planned.resource;
    device.is_static = planned.is_static;
    device.threads = options.threads;
    device.bfloat16 =
        (options.precision.empty() ? plan.files.precision : options.precision) == "bf16";
    device.cache = &cache;
    device.counts = &counts;
    Json backend_options = Json::object();
    choose_backend(planned, options, target, device, backend_options);
    if (!used.contains(planned.name)) continue;
    if (device.backend.empty()) {
      throw Error(ErrorCode::kUnsupported, "neither the plan nor target '" + target.name +
                                               "' names a backend for device '" + device.name +
                                               "': give --device " + device.name +
                                               "=BACKEND, such as " + device.name + "=aten");
    }
    backend_options["threads"] = options.threads;
    device.options = backend_options.dump();
    device.instance = DeviceInstance::open(Backend::load(device.backend), device.options);
    device.products = open_products(device);
  }
  return devices;
}

}  // namespace npu::gnn
