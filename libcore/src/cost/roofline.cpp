// SPDX-License-Identifier: Apache-2.0
// Analytic times from a target's rates. Leaves out caches, kernel efficiency and overlap; a
// measured table, if there is one, replaces it.
#include "cost/roofline.hpp"

#include <algorithm>

#include "npu/cost/cost_model.hpp"
#include "npu/ops/op_catalogue.hpp"

namespace npu {

namespace {

/// Whether the second operand is a kernel [out, in, 1, ...].
bool has_pointwise_kernel(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2) return false;
  const Shape& shape = graph.tensor(node.inputs[1]).shape;
  return shape.size() > 2 && std::all_of(shape.begin() + 2, shape.end(),
                                         [](std::int64_t extent) { return extent == 1; });
}

/// The work of a node, independent of the device.
struct RooflineWork {
  const Node* node = nullptr;
  bool grouped = false;
  bool pointwise = false;
  // The dtype of the arithmetic: that of the last floating-point result, else of an operand.
  DType dtype = DType::kFloat32;
  double flops = 0;
  double bytes = 0;
  double bytes_without_weights = 0;

  RooflineWork(const Graph& graph, const Node& of_node)
      : node(&of_node),
        flops(node_flops(graph, of_node)),
        bytes(node_bytes(graph, of_node)),
        bytes_without_weights(node_bytes(graph, of_node, false)) {
    if (const Json* groups = find_member(of_node.attrs(), "groups")) {
      grouped = groups->is_number() && *groups > 1;
    }
    pointwise = has_pointwise_kernel(graph, of_node);
    for (const std::vector<TensorId>* list : {&of_node.inputs, &of_node.outputs}) {
      for (const TensorId id : *list) {
        if (is_floating_point(graph.tensor(id).dtype)) dtype = graph.tensor(id).dtype;
      }
    }
  }

  double us(const Device& device) const {
    const double moved = device.resident_weights ? bytes_without_weights : bytes;
    double rate = device.flops_per_second(dtype);
    double bandwidth = device.memory_bandwidth;
    for (const OpRate& special : device.op_rates) {
      if (special.grouped && *special.grouped != grouped) continue;
      if (special.pointwise && *special.pointwise != pointwise) continue;
      if (std::find(special.types.begin(), special.types.end(), node->op_type) ==
          special.types.end()) {
        continue;
      }
      if (special.peak_flops > 0) rate = special.peak_flops;
      if (special.memory_bandwidth > 0) bandwidth = special.memory_bandwidth;
      break;
    }
    const double compute = flops > 0 && rate > 0 ? flops / rate : 0;
    const double traffic = bandwidth > 0 ? moved / bandwidth : 0;
    return device.node_overhead_us + 1e6 * std::max(compute, traffic);
  }
};

}  // namespace

double node_us(const Graph& graph, const Node& node, const Device& device) {
  return device.is_alias(node.op_type) ? 0 : RooflineWork(graph, node).us(device);
}

double transfer_us(const Target& target, std::string_view from, std::string_view to, double bytes) {
  const Link* link = target.find_link(from, to);
  if (link == nullptr) return 0;
  return link->latency_us + (link->bandwidth > 0 ? 1e6 * bytes / link->bandwidth : 0);
}

namespace {

class RooflineCost final : public CostModel {
 public:
  double node_us(const Graph& graph, NodeId node, const Device& device) const override {
    return npu::node_us(graph, graph.node(node), device);
  }
  void node_us_on_each(const Graph& graph, NodeId id, std::span<const Device> devices,
                       std::span<double> us) const override {
    const Node& node = graph.node(id);
    const RooflineWork work(graph, node);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      us[d] = devices[d].is_alias(node.op_type) ? 0 : work.us(devices[d]);
    }
  }
  double launch_us(const Device& device) const override { return device.launch_overhead_us; }
  double transfer_us(const Target& target, std::string_view from, std::string_view to,
                     double bytes) const override {
    return npu::transfer_us(target, from, to, bytes);
  }
};

}  // namespace

const CostModel& roofline_cost() {
  static const RooflineCost cost;
  return cost;
}

}  // namespace npu
