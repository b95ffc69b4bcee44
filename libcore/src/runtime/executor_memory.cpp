// SPDX-License-Identifier: Apache-2.0
// What an executor's programs take of memory: asked of the blobs before the first one is loaded, if
// anything limits it, and of the loaded models afterwards. Asking costs what reading a blob costs,
// and with onednn what restoring its plan costs.
#include <algorithm>

#include "npu/compile/memory_needs.hpp"
#include "npu/runtime/executor.hpp"
#include "runtime/executor_run.hpp"

namespace npu {

std::vector<DeviceMemoryNeed> Executor::sum_memory(
    const Target& target, const std::vector<CompiledPartition>& compiled,
    const std::function<std::optional<MemoryReport>(std::size_t)>& ask) const {
  std::vector<MemoryReport> reports;
  for (std::size_t p = 0; p < plan_.partitions.size(); ++p) {
    auto report = ask(p);
    reports.push_back(report ? *std::move(report)
                             : reported_memory(graph_, plan_.partitions[p], *compiled[p].report));
  }
  return memory_needs(graph_, plan_, target, compiled, reports);
}

void Executor::check_memory_limits(const Target& target, const ExecutorOptions& options,
                                   const std::vector<CompiledPartition>& compiled) {
  const OpenDevices open = devices();
  for (const Device& device : target.devices) {
    if (device_index_.contains(device.name)) memory_.emplace_back().device = device.name;
  }
  add_memory_limits(memory_, target, memory_limit_of(options.backend_options), open);
  const bool is_limited =
      std::any_of(memory_.begin(), memory_.end(),
                  [](const DeviceMemoryNeed& need) { return need.there.has_value(); });
  if (!is_limited) return;
  std::vector<DeviceMemoryNeed> needs = sum_memory(target, compiled, [&](std::size_t p) {
    if (compiled[p].check_blob) compiled[p].check_blob();
    return open.at(plan_.partitions[p].device)->blob_memory(compiled[p].blob);
  });
  take_limits(needs);
  for (DeviceMemoryNeed& need : needs) need_for_runs(need, options.in_flight);
  check_memory(needs, graph_.file);
}

/// What was there before anything was loaded says more than what is left.
void Executor::take_limits(std::vector<DeviceMemoryNeed>& needs) const {
  for (std::size_t i = 0; i < needs.size(); ++i) {
    needs[i].there = memory_[i].there;
    needs[i].limit = memory_[i].limit;
  }
}

void Executor::measure_memory(const Target& target,
                              const std::vector<CompiledPartition>& compiled) {
  std::vector<DeviceMemoryNeed> needs = sum_memory(target, compiled, [&](std::size_t p) {
    const DeviceModel& model = *flights_.front()->programs[p]->model();
    const auto said = model.memory();
    return said ? said : model.device()->blob_memory(compiled[p].blob);
  });
  take_limits(needs);
  memory_ = std::move(needs);
}

void Executor::load_within_memory(const Target& target, const ExecutorOptions& options,
                                  const std::vector<Tensor>& weights,
                                  const std::vector<CompiledPartition>& compiled) {
  check_memory_limits(target, options, compiled);
  load_partitions(weights, compiled);
  measure_memory(target, compiled);
}

}  // namespace npu
