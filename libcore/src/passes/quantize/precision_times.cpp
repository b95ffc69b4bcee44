// SPDX-License-Identifier: Apache-2.0
// Predicted times of ops in both precisions. O(nodes).
#include "passes/quantize/precision_times.hpp"

#include <algorithm>

#include "npu/support/ids.hpp"
#include "target/support_check.hpp"

namespace npu::quantize {
namespace {

constexpr double kBytesRatio = 4;

const Device& device_of(const Graph& graph, NodeId id, const Target& target) {
  const std::optional<std::string>& name = graph.node(id).device;
  if (name.has_value()) {
    if (const Device* device = target.find_device(*name)) return *device;
  }
  for (const Device& device : target.devices) {
    if (check_support(graph, id, device).supported) return device;
  }
  return target.devices.back();
}

double int8_ratio(const Device& device) {
  const auto int8 = device.peak_flops.find(DType::kInt8);
  const double floats = device.flops_per_second(DType::kFloat32);
  return int8 != device.peak_flops.end() && floats > 0 ? int8->second / floats : kBytesRatio;
}

}  // namespace

PrecisionTimes predict_times(const Graph& graph, const PrecisionProblem& problem,
                             const Target& target, const CostModel& cost) {
  PrecisionTimes times;
  for (const Unit& unit : problem.units) {
    double floats = 0;
    double integers = 0;
    for (const NodeId id : unit.members) {
      const Device& device = device_of(graph, id, target);
      const double us = cost.node_us(graph, id, device);
      const double overhead = std::min(us, device.node_overhead_us);
      const double ratio = unit.kind == UnitKind::kWeighted && id == unit.members.front()
                               ? int8_ratio(device)
                               : kBytesRatio;
      floats += us;
      integers += overhead + (us - overhead) / ratio;
    }
    times.float_us.push_back(floats);
    times.int8_us.push_back(integers);
  }
  for (const Value& value : problem.values) {
    const NodeId place =
        value.producer < 0 ? NodeId{} : problem.units[index_of(value.producer)].members.back();
    const Device& device = place.valid() ? device_of(graph, place, target) : target.devices.front();
    const double bytes = static_cast<double>(graph.tensor(value.tensor).bytes());
    const double moved = bytes + bytes / kBytesRatio;
    times.conversion_us.push_back(
        device.node_overhead_us +
        (device.memory_bandwidth > 0 ? 1e6 * moved / device.memory_bandwidth : 0));
  }
  return times;
}

}  // namespace npu::quantize
