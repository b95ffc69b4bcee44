// SPDX-License-Identifier: Apache-2.0
// Follows tensors of float64 from a node to what makes and reads them, up to conversions.
#include "ops/byte_regions.hpp"

#include <algorithm>
#include <set>

#include "npu/tensor/dtype.hpp"
#include "ops/op_name.hpp"

namespace npu {
namespace {

constexpr std::size_t kMostNodes = 64;

class RegionWalk {
 public:
  explicit RegionWalk(const Graph& graph) : graph_(graph) {}

  std::vector<NodeId> run(NodeId first) {
    const Node& node = graph_.node(first);
    const auto is_double = [&](TensorId id) { return dtype(id) == DType::kFloat64; };
    const bool has_doubles = std::any_of(node.outputs.begin(), node.outputs.end(), is_double) ||
                             std::any_of(node.inputs.begin(), node.inputs.end(), is_double);
    if (!has_doubles) return {};
    nodes_.insert(first);
    open_.push_back(first);
    while (!open_.empty()) {
      const NodeId next = open_.back();
      open_.pop_back();
      if (!follow(next) || nodes_.size() > kMostNodes) return {};
    }
    return {nodes_.begin(), nodes_.end()};
  }

 private:
  DType dtype(TensorId id) const { return graph_.tensor(id).dtype; }
  bool is_constant(TensorId id) const { return graph_.tensor(id).kind == TensorKind::kWeight; }

  /// Lists the neighbours of a node; false if one is nothing that a region has.
  bool follow(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.inputs.empty() || node.outputs.empty()) return false;
    const TensorId operand = node.inputs.front();
    const TensorId result = node.outputs.front();
    if (is_dequantization(node.op_type)) {
      if (!is_byte(dtype(operand)) && !is_constant(operand)) return false;
      return dtype(result) == DType::kFloat64 && add_readers(result);
    }
    const bool leaves = (is_quantization(node.op_type) && is_byte(dtype(result))) ||
                        (is_cast(node) && dtype(result) == DType::kFloat32);
    if (leaves) return dtype(operand) == DType::kFloat64 && add_maker(operand);
    return node.op_type.starts_with(kAtenPrefix) &&
           std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](TensorId output) {
                         return dtype(output) == DType::kFloat64 && add_readers(output);
                       }) &&
           std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId input) {
             return dtype(input) == DType::kFloat64 && add_maker(input);
           });
  }

  static bool is_cast(const Node& node) {
    return node.op_type == "aten._to_copy.default" || node.op_type == "aten.to.dtype";
  }

  bool add_maker(TensorId id) {
    if (is_constant(id)) return true;
    if (graph_.tensor(id).kind != TensorKind::kResult) return false;
    add(graph_.tensor(id).producer);
    return add_readers(id);
  }

  bool add_readers(TensorId id) {
    const auto& outputs = graph_.graph_outputs();
    if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) return false;
    for (const NodeId reader : graph_.tensor(id).consumers) add(reader);
    return true;
  }

  void add(NodeId id) {
    if (nodes_.insert(id).second) open_.push_back(id);
  }

  const Graph& graph_;
  std::set<NodeId> nodes_;
  std::vector<NodeId> open_;
};

}  // namespace

std::vector<NodeId> byte_region(const Graph& graph, NodeId node) {
  return RegionWalk(graph).run(node);
}

}  // namespace npu
