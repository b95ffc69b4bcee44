// SPDX-License-Identifier: Apache-2.0
// Decides which ops can work on integers of 8 bits, and which of them are one kernel there.
//
// A product with a weight takes the batch norm behind it, whose factors only change the scales of
// its channels, and one activation, which runs on the accumulator; a sum takes an activation. What
// they take has no other reader and is no output of the graph, so that no tensor inside a unit ever
// becomes integers. An attention reads queries, keys and values as integers, a matrix product of
// two activations both. An activation function that nothing takes is a table. O(nodes + edges).
#include "passes/quantize/precision_problem.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "npu/support/ids.hpp"
#include "ops/broadcast_runs.hpp"
#include "ops/moved_ops.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/schema.hpp"
#include "quant/weight_operand.hpp"

namespace npu::quantize {
namespace {

bool is_float32(const Graph& graph, TensorId id) {
  return graph.tensor(id).dtype == DType::kFloat32;
}
bool is_weight(const Graph& graph, TensorId id) {
  return graph.tensor(id).kind == TensorKind::kWeight;
}

std::string quoted(const Graph& graph, TensorId id) { return "'" + graph.tensor(id).name + "'"; }

/// Whether a padding op pads with 0, which is exact.
bool pads_with_zero(const Node& node) {
  if (!is_padding(node.op_type)) return true;
  const Json* mode = find_member(node.attrs(), "mode");
  const Json* value = find_member(node.attrs(), "value");
  const bool is_constant = mode == nullptr || *mode == "constant";
  const bool is_zero = value == nullptr || value->is_null() || json_number(*value).value_or(1) == 0;
  return !is_constant || is_zero;
}

constexpr std::array<std::string_view, 11> kSameScaleOps{"max_pool1d",
                                                         "max_pool2d",
                                                         "max_pool3d",
                                                         "avg_pool1d",
                                                         "avg_pool2d",
                                                         "avg_pool3d",
                                                         "adaptive_avg_pool1d",
                                                         "adaptive_avg_pool2d",
                                                         "adaptive_avg_pool3d",
                                                         "adaptive_max_pool2d",
                                                         "mean"};

/// Whether the integers of an op's result can have the scale of its operands.
bool keeps_scale(const Graph& graph, const Node& node) {
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr) return false;
  const std::string_view name = functional_name(node.op_type);
  if (is_alias_node(graph, node) || op->role == FusionRole::kRelu) return true;
  if (is_resampling(node.op_type)) return !is_cubic(node.op_type);
  if (op->kind == OpKind::kInjective) return name != "view_as_real" && pads_with_zero(node);
  return std::find(kSameScaleOps.begin(), kSameScaleOps.end(), name) != kSameScaleOps.end();
}

/// An add or mul of two tensors, without factors.
bool is_sum(const Node& node) {
  const FusionRole role = fusion_role(node.op_type);
  if ((role != FusionRole::kAdd && role != FusionRole::kMul) || node.inputs.size() != 2) {
    return false;
  }
  const Json* alpha = find_member(node.attrs(), "alpha");
  return alpha == nullptr || alpha->is_null() || json_number(*alpha).value_or(0) == 1;
}

/// A matrix product without a third operand, whose factors are no weights of the model.
bool is_activation_product(const Graph& graph, const Node& node) {
  const std::string_view name = functional_name(node.op_type);
  return (name == "matmul" || name == "mm" || name == "bmm") && node.inputs.size() == 2 &&
         std::none_of(node.inputs.begin(), node.inputs.end(),
                      [&](TensorId id) { return is_weight(graph, id); });
}

/// One that kernels compute by a table of 256 numbers.
bool is_table(const Node& node) {
  const FusionRole role = fusion_role(node.op_type);
  return is_activation(role) && role != FusionRole::kRareActivation && node.inputs.size() == 1;
}

class ProblemBuilder {
 public:
  ProblemBuilder(const Graph& graph, const TensorRanges& ranges) : graph_(graph), ranges_(ranges) {
    problem_.unit_of.assign(graph.nodes().size(), -1);
    problem_.value_of.assign(graph.tensors().size(), -1);
    is_output_.assign(graph.tensors().size(), 0);
    for (const TensorId id : graph.graph_outputs()) is_output_[index_of(id)] = 1;
  }

  PrecisionProblem run() {
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      if (problem_.unit_of[index_of(id)] < 0) add_unit(id);
    }
    for (const TensorId id : graph_.graph_inputs()) add_value(id, -1);
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      for (const TensorId id : graph_.node(problem_.units[u].members.back()).outputs) {
        add_value(id, static_cast<std::int32_t>(u));
      }
    }
    sort_values();
    for (std::size_t u = 0; u < problem_.units.size(); ++u) add_reader(u);
    for (Unit& unit : problem_.units) decide(unit);
    return std::move(problem_);
  }

 private:
  void add_unit(NodeId first) {
    Unit unit;
    unit.members.push_back(first);
    const Node& node = graph_.node(first);
    if (weight_operand(graph_, node)) {
      unit.kind = UnitKind::kWeighted;
    } else if (is_sum(node)) {
      unit.kind = UnitKind::kSum;
    } else if (fusion_role(node.op_type) == FusionRole::kAttention) {
      unit.kind = UnitKind::kAttention;
    } else if (is_activation_product(graph_, node)) {
      unit.kind = UnitKind::kProduct;
    } else if (keeps_scale(graph_, node)) {
      unit.kind = UnitKind::kSameScale;
    } else if (is_table(node)) {
      unit.kind = UnitKind::kFunction;
    }
    if (unit.kind == UnitKind::kWeighted) take(unit, &ProblemBuilder::is_norm_behind);
    if (unit.kind == UnitKind::kWeighted || unit.kind == UnitKind::kSum ||
        unit.kind == UnitKind::kProduct) {
      take(unit, &ProblemBuilder::is_activation_behind);
    }
    const auto index = static_cast<std::int32_t>(problem_.units.size());
    for (const NodeId id : unit.members) problem_.unit_of[index_of(id)] = index;
    problem_.units.push_back(std::move(unit));
  }

  /// Adds the only reader of the unit's result if `is_taken` says so.
  void take(Unit& unit, bool (ProblemBuilder::*is_taken)(const Unit&, const Node&) const) const {
    const Node& last = graph_.node(unit.members.back());
    if (last.outputs.size() != 1) return;
    const TensorInfo& result = graph_.tensor(last.outputs.front());
    if (result.consumers.size() != 1 || is_output_[index_of(last.outputs.front())] != 0) return;
    const NodeId reader = result.consumers.front();
    const Node& node = graph_.node(reader);
    const bool reads_once =
        std::count(node.inputs.begin(), node.inputs.end(), last.outputs.front()) == 1 &&
        node.inputs.front() == last.outputs.front();
    const bool is_here = node.device == graph_.node(unit.members.back()).device;
    if (is_here && reads_once && node.outputs.size() == 1 && (this->*is_taken)(unit, node)) {
      unit.members.push_back(reader);
    }
  }

  bool is_norm_behind(const Unit& unit, const Node& node) const {
    return fusion_role(graph_.node(unit.members.front()).op_type) == FusionRole::kConv &&
           fusion_role(node.op_type) == FusionRole::kBatchNorm &&
           std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                       [&](TensorId id) { return is_weight(graph_, id); });
  }
  bool is_activation_behind(const Unit& /*unit*/, const Node& node) const {
    return is_activation(fusion_role(node.op_type)) && node.inputs.size() == 1;
  }

  void add_value(TensorId id, std::int32_t producer) {
    if (!is_float32(graph_, id) || is_weight(graph_, id) || problem_.value_of[index_of(id)] >= 0) {
      return;
    }
    problem_.value_of[index_of(id)] = static_cast<std::int32_t>(problem_.values.size());
    Value value;
    value.tensor = id;
    value.producer = producer;
    value.is_output = is_output_[index_of(id)] != 0;
    const TensorRange* range = ranges_.find(graph_.tensor(id).name);
    if (range == nullptr || range->histogram.count() == 0) {
      value.why_not = quoted(graph_, id) + " has no range";
    } else if (range->histogram.non_finite() > 0) {
      value.why_not = quoted(graph_, id) + " was not finite in calibration";
    }
    problem_.values.push_back(std::move(value));
  }

  /// Units are listed by their first members, values by the nodes that make them.
  void sort_values() {
    const auto place = [&](const Value& value) {
      return value.producer < 0 ? NodeId{} : graph_.tensor(value.tensor).producer;
    };
    std::stable_sort(problem_.values.begin(), problem_.values.end(),
                     [&](const Value& a, const Value& b) { return place(a) < place(b); });
    for (std::size_t v = 0; v < problem_.values.size(); ++v) {
      problem_.value_of[index_of(problem_.values[v].tensor)] = static_cast<std::int32_t>(v);
    }
  }

  void add_reader(std::size_t unit) {
    for (const NodeId member : problem_.units[unit].members) {
      for (const TensorId id : graph_.node(member).inputs) {
        const std::int32_t value = problem_.value_of[index_of(id)];
        if (value < 0) continue;
        std::vector<std::int32_t>& readers = problem_.values[index_of(value)].readers;
        const auto reader = static_cast<std::int32_t>(unit);
        if (readers.empty() || readers.back() != reader) readers.push_back(reader);
      }
    }
  }

  void decide(Unit& unit) const {
    const Node& node = graph_.node(unit.members.front());
    unit.allowed = Allowed::kFloat;
    unit.has_float_result = std::any_of(node.outputs.begin(), node.outputs.end(),
                                        [&](TensorId id) { return is_float32(graph_, id); });
    unit.reason = obstacle(unit, node);
    if (!unit.reason.empty()) return;
    unit.allowed = unit.kind == UnitKind::kWeighted ? Allowed::kInt8 : Allowed::kBoth;
    unit.reason = unit.kind == UnitKind::kWeighted ? "product with a weight" : "fewest conversions";
  }

  /// Why a unit cannot be int8; empty if it can.
  std::string obstacle(const Unit& unit, const Node& node) const {
    if (!unit.has_float_result) return "no float32 result";
    if (unit.kind == UnitKind::kOther) return reason_of_other(node);
    if (node.outputs.size() != 1) return "several results";
    const std::vector<std::size_t> integers = integer_operands(graph_, unit);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId id = node.inputs[i];
      const bool is_data = std::find(integers.begin(), integers.end(), i) != integers.end();
      if (!is_data) {
        const bool needs_constants =
            unit.kind == UnitKind::kWeighted || unit.kind == UnitKind::kAttention;
        if (needs_constants && !is_weight(graph_, id)) {
          return quoted(graph_, id) + " is no constant";
        }
        continue;
      }
      const std::int32_t value = problem_.value_of[index_of(id)];
      if (value < 0) return quoted(graph_, id) + " is no activation of float32";
      if (!problem_.values[index_of(value)].why_not.empty()) {
        return problem_.values[index_of(value)].why_not;
      }
    }
    if (integers.empty()) return "no operand of float32";
    if (gives_integers(unit.kind)) {
      const std::int32_t result = problem_.value_of[index_of(node.outputs.front())];
      if (result < 0) return "no float32 result";
      return problem_.values[index_of(result)].why_not;
    }
    if (unit.kind == UnitKind::kAttention) return attention_obstacle(node);
    if (unit.kind == UnitKind::kProduct) return product_obstacle(node);
    if (unit.kind == UnitKind::kSum) return sum_obstacle(node);
    return unit.kind == UnitKind::kWeighted ? weight_obstacle(node) : std::string();
  }

  /// What kernels on integers do not know. A mask stays float, and stands behind the operands.
  std::string attention_obstacle(const Node& node) const {
    const auto is_set = [&](const char* name) {
      const Json* value = find_member(node.attrs(), name);
      return value != nullptr && value->is_boolean() && value->get<bool>();
    };
    const Json* dropout = find_member(node.attrs(), "dropout_p");
    if (dropout != nullptr && json_number(*dropout).value_or(1) != 0) return "it has a dropout";
    if (is_set("enable_gqa")) return "its heads share keys";
    const auto batch_of = [&](std::size_t operand) {
      Shape shape = graph_.tensor(node.inputs[operand]).shape;
      if (shape.size() < 2) return Shape{-1};
      shape.resize(shape.size() - 2);
      return shape;
    };
    const Shape batch = batch_of(0);
    if (batch == Shape{-1} || batch_of(1) != batch || batch_of(2) != batch) {
      return "its operands have other batches";
    }
    for (std::size_t i = 3; i < node.inputs.size(); ++i) {
      if (!is_float32(graph_, node.inputs[i])) return "its mask is not of float32";
    }
    return {};
  }

  /// A matrix on the right is for all rows on the left; of others there is one for each on the
  /// left.
  std::string product_obstacle(const Node& node) const {
    const Shape& left = graph_.tensor(node.inputs[0]).shape;
    const Shape& right = graph_.tensor(node.inputs[1]).shape;
    if (left.empty() || right.size() < 2) return "its right factor is no matrix";
    const bool has_same_batch =
        left.size() == right.size() && std::equal(left.begin(), left.end() - 2, right.begin());
    return right.size() == 2 || has_same_batch ? std::string() : "its factors have other batches";
  }

  std::string sum_obstacle(const Node& node) const {
    const Shape& shape = graph_.tensor(node.outputs.front()).shape;
    const Shape& a = graph_.tensor(node.inputs[0]).shape;
    const Shape& b = graph_.tensor(node.inputs[1]).shape;
    if (a != shape && b != shape) return "both operands are broadcast";
    const bool has_runs = has_broadcast_runs(shape, a) && has_broadcast_runs(shape, b);
    return has_runs ? std::string() : "an operand is broadcast along too many runs of dimensions";
  }

  std::string weight_obstacle(const Node& node) const {
    const WeightOperand weight = *weight_operand(graph_, node);
    const TensorInfo& tensor = graph_.tensor(weight.tensor);
    const WeightRange* range = ranges_.find_weight(tensor.name, weight.axis);
    const bool fits = range != nullptr && static_cast<std::int64_t>(range->channels.low.size()) ==
                                              tensor.shape[index_of(weight.axis)];
    return fits ? std::string() : quoted(graph_, weight.tensor) + " has no range";
  }

  std::string reason_of_other(const Node& node) const {
    const FusionRole role = fusion_role(node.op_type);
    if (is_product(role)) return "no float32 weight of the model";
    return "float only: " + std::string(short_name(node.op_type));
  }

  const Graph& graph_;
  const TensorRanges& ranges_;
  std::vector<char> is_output_;
  PrecisionProblem problem_;
};

}  // namespace

std::vector<std::size_t> integer_operands(const Graph& graph, const Unit& unit) {
  const Node& node = graph.node(unit.members.front());
  if (unit.kind == UnitKind::kWeighted) {
    return {weight_operand(graph, node)->operand - 1};  // the data stand in front of the weight
  }
  if (unit.kind == UnitKind::kAttention && node.inputs.size() >= 3) return {0, 1, 2};
  std::vector<std::size_t> operands;
  if (unit.kind == UnitKind::kOther) return operands;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (is_floating_point(graph.tensor(node.inputs[i]).dtype)) operands.push_back(i);
  }
  return operands;
}

PrecisionProblem build_precision_problem(const Graph& graph, const TensorRanges& ranges) {
  return ProblemBuilder(graph, ranges).run();
}

}  // namespace npu::quantize
