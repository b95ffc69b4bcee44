// SPDX-License-Identifier: Apache-2.0
// What a plan's programs take of memory: asked of the blobs before the first one is loaded, if
// anything limits it, and of the loaded models afterwards. Asking costs what reading a blob costs,
// and with onednn what restoring its plan costs.
#include "runtime/executor/program_memory.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "device/device_model.hpp"

namespace npu {
namespace {

/// `there` was there before anything was loaded, which says more than what is left.
std::vector<DeviceMemoryNeed> sum_memory(
    const PlanToLoad& from, const Target& target, const std::vector<DeviceMemoryNeed>& there,
    const std::function<std::optional<MemoryReport>(std::size_t)>& ask) {
  std::vector<MemoryReport> reports;
  for (std::size_t p = 0; p < from.plan.partitions.size(); ++p) {
    auto report = ask(p);
    reports.push_back(
        report ? *std::move(report)
               : reported_memory(from.graph, from.plan.partitions[p], *from.compiled[p].report));
  }
  auto needs = memory_needs(from.graph, from.plan, target, from.compiled, reports);
  for (std::size_t i = 0; i < needs.size(); ++i) {
    needs[i].there = there[i].there;
    needs[i].limit = there[i].limit;
  }
  return needs;
}

}  // namespace

std::vector<DeviceMemoryNeed> memory_there(const RunDevices& devices, const Target& target,
                                           const Json& backend_options) {
  std::vector<DeviceMemoryNeed> there;
  for (const Device& device : target.devices) {
    if (devices.contains(device.name)) there.emplace_back().device = device.name;
  }
  add_memory_limits(there, target, memory_limit_of(backend_options), devices.by_name());
  return there;
}

void check_program_memory(const PlanToLoad& from, const Target& target,
                          const std::vector<DeviceMemoryNeed>& there, std::int32_t runs) {
  const bool is_limited = std::ranges::any_of(
      there, [](const DeviceMemoryNeed& need) { return need.there.has_value(); });
  if (!is_limited) return;
  std::vector<DeviceMemoryNeed> needs = sum_memory(from, target, there, [&](std::size_t p) {
    const CompiledPartition& compiled = from.compiled[p];
    if (compiled.check_blob) compiled.check_blob();
    const std::size_t d = from.devices.number_of(from.plan.partitions[p].device);
    return from.devices[d].blob_memory(compiled.blob);
  });
  for (DeviceMemoryNeed& need : needs) need_for_runs(need, runs);
  check_memory(needs, from.graph.file);
}

std::vector<DeviceMemoryNeed> loaded_memory(const PlanToLoad& from, const Target& target,
                                            const LoadedPrograms& programs,
                                            const std::vector<DeviceMemoryNeed>& there) {
  return sum_memory(from, target, there, [&](std::size_t p) {
    const DeviceModel& model = *programs.flights.front()->programs[p]->model();
    const auto said = model.memory();
    return said ? said : model.device()->blob_memory(from.compiled[p].blob);
  });
}

}  // namespace npu
