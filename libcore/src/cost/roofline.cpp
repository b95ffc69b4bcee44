// SPDX-License-Identifier: Apache-2.0
// Analytic times from a target's rates. Leaves out caches, kernel efficiency and overlap; a
// measured table, if there is one, replaces it.
#include "cost/roofline.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "npu/cost/cost_model.hpp"
#include "ops/op_catalogue.hpp"

namespace npu {

namespace {

/// The extents of a kernel [out, in, ...] as one number; 0 without a second operand of that rank.
double kernel_extents(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2) return 0;
  const Shape& shape = graph.tensor(node.inputs[1]).shape;
  if (shape.size() < 3) return 0;
  return std::accumulate(shape.begin() + 2, shape.end(), 1.0, std::multiplies<>());
}

/// Whether an attribute, a number or a list of them, holds one above 1.
bool above_one(const Node& node, std::string_view name) {
  const Json* value = find_member(node.attrs(), name);
  if (value == nullptr) return false;
  const auto is_above = [](const Json& number) { return number.is_number() && number > 1; };
  return value->is_array() ? std::any_of(value->begin(), value->end(), is_above) : is_above(*value);
}

/// What chooses among the rates of an op.
struct RateFeatures {
  bool grouped = false;
  bool strided = false;
  double kernel = 0;     // as in OpRate
  double positions = 1;  // as in OpRate

  RateFeatures(const Graph& graph, const Node& node)
      : grouped(above_one(node, "groups")),
        strided(above_one(node, "stride") || above_one(node, "dilation")),
        kernel(kernel_extents(graph, node)) {
    if (node.outputs.empty()) return;
    const Shape& shape = graph.tensor(node.outputs[0]).shape;
    const OpInfo* op = find_op(node.op_type);
    const bool is_convolution = op != nullptr && op->role == FusionRole::kConv;
    const std::size_t axis = is_convolution ? 1 : shape.size() - 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (i != axis) positions *= static_cast<double>(shape[i]);
    }
  }

  bool match(const OpRate& rate) const {
    const auto agrees = [](std::optional<bool> asked, bool found) {
      return !asked || *asked == found;
    };
    // Products of extents as floating-point numbers: beside an extent of 0 they may be any.
    const auto holds = [](const CountRange& range, double value) {
      return value >= static_cast<double>(range.min) &&
             (!range.max || value <= static_cast<double>(*range.max));
    };
    return agrees(rate.grouped, grouped) && agrees(rate.pointwise, kernel == 1) &&
           agrees(rate.strided, strided) && holds(rate.kernel, kernel) &&
           holds(rate.positions, positions);
  }
};

/// The rate of a device for this node, or null if it has no special one.
const OpRate* special_rate(const Graph& graph, const Node& node, const Device& device) {
  if (device.op_rates.empty()) return nullptr;
  std::optional<RateFeatures> features;  // most ops have no special rate
  for (const OpRate& rate : device.op_rates) {
    if (std::find(rate.types.begin(), rate.types.end(), node.op_type) == rate.types.end()) continue;
    if (!features) features.emplace(graph, node);
    if (features->match(rate)) return &rate;
  }
  return nullptr;
}

/// The work of a node, independent of the device.
struct RooflineWork {
  const Graph& graph;
  const Node& node;
  // The dtype of the arithmetic: that of the last floating-point result, else of an operand.
  DType dtype = DType::kFloat32;
  double flops = 0;
  double bytes = 0;
  double bytes_without_weights = 0;

  RooflineWork(const Graph& of_graph, const Node& of_node)
      : graph(of_graph),
        node(of_node),
        flops(node_flops(graph, of_node)),
        bytes(node_bytes(graph, of_node)),
        bytes_without_weights(node_bytes(graph, of_node, false)) {
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
    if (const OpRate* special = special_rate(graph, node, device)) {
      if (special->peak_flops > 0) rate = special->peak_flops;
      if (special->memory_bandwidth > 0) bandwidth = special->memory_bandwidth;
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
