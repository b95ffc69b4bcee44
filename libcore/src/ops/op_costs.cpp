// SPDX-License-Identifier: Apache-2.0
// The cost of a node, from its shapes and arguments alone: floating-point operations and the bytes
// that it has to move at least.
//
// A multiply-add is two operations; a function such as exp counts as one. The catalogue says how
// each op is counted. Matrix-like ops are counted exactly, normalisations and softmax per element,
// einsum by the product of its index ranges (as one contraction, without a better order). Nodes
// whose arguments do not bind are counted like unknown ops.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/op_traits.hpp"

namespace npu {
namespace {

double element_count(const Shape& shape) {
  double count = 1;
  for (const std::int64_t dimension : shape) count *= static_cast<double>(dimension);
  return count;
}

double elements(const Graph& graph, TensorId id) { return element_count(graph.tensor(id).shape); }

double output_elements(const Graph& graph, const Node& node) {
  double count = 0;
  for (const TensorId id : node.outputs) count += elements(graph, id);
  return count;
}

// Elements of the first result, which of (output, mean, rstd) and
// (values, indices) is the one with the arithmetic.
double first_output_elements(const Graph& graph, const Node& node) {
  return node.outputs.empty() ? 0 : elements(graph, node.outputs.front());
}

double first_input_elements(const Graph& graph, const Node& node) {
  return node.inputs.empty() ? 0 : elements(graph, node.inputs.front());
}

double last_dimension(const Shape& shape) {
  return shape.empty() ? 1 : static_cast<double>(shape.back());
}

const Shape* shape_of(const BoundNode& bound, std::string_view argument) {
  const auto id = bound.tensor(argument);
  return id ? &bound.graph().tensor(*id).shape : nullptr;
}

double product(const std::vector<std::int64_t>& values) { return element_count(values); }

double conv_flops(const BoundNode& bound, bool transposed) {
  const Shape* input = shape_of(bound, "input");
  const Shape* weight = shape_of(bound, "weight");
  if (input == nullptr || weight == nullptr || weight->empty()) return 0;
  // Each output element (transposed: each input element) is multiplied by one filter: the weight
  // without its first axis.
  const double filter =
      element_count(*weight) / std::max<double>(1, static_cast<double>(weight->front()));
  const double outputs = first_output_elements(bound.graph(), bound.node());
  const double bias = bound.is_none("bias") ? 0 : outputs;
  return 2 * filter * (transposed ? element_count(*input) : outputs) + bias;
}

// The product of all index ranges, two operations each, or one for a single operand.
double einsum_flops(const BoundNode& bound) {
  const std::string equation = bound.string("equation");
  const std::vector<TensorId> operands = bound.tensors("tensors");
  std::map<char, double> ranges;
  double ellipsis = 1;
  std::size_t operand = 0;
  std::string labels;
  const auto finish_operand = [&] {
    if (operand >= operands.size()) return;
    const Shape& shape = bound.graph().tensor(operands[operand++]).shape;
    const std::size_t dots = labels.find('.');
    const std::size_t named = labels.size() - (dots == std::string::npos ? 0 : 3);
    if (shape.size() < named) return;
    const std::size_t hidden = shape.size() - named;
    double here = 1;
    std::size_t axis = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == '.') {
        for (std::size_t k = 0; k < hidden; ++k) here *= static_cast<double>(shape[axis++]);
        i += 2;
        continue;
      }
      double& range = ranges[labels[i]];
      range = std::max(range, static_cast<double>(shape[axis++]));
    }
    ellipsis = std::max(ellipsis, here);
  };
  for (const char c : equation.substr(0, equation.find("->"))) {
    if (c == ' ') continue;
    if (c == ',') {
      finish_operand();
      labels.clear();
    } else {
      labels.push_back(c);
    }
  }
  finish_operand();
  double total = ellipsis;
  for (const auto& [label, range] : ranges) total *= range;
  return total * (operands.size() > 1 ? 2 : 1);
}

// An addition for each element of an edge's row, and a multiplication where edges have weights.
double segment_flops(const BoundNode& bound) {
  const Shape* rows = shape_of(bound, "self");
  if (rows == nullptr || rows->empty()) return 0;
  const Shape* indices = shape_of(bound, "indices");
  const double row = element_count(Shape(rows->begin() + 1, rows->end()));
  const double edges =
      indices != nullptr ? element_count(*indices) : static_cast<double>(rows->front());
  return edges * row * (bound.is_none("weights") ? 1 : 2);
}

// query [..., L, E], key [..., S, E], value [..., S, Ev]: two products and a softmax over L x S
// scores.
double attention_flops(const BoundNode& bound) {
  const Shape* query = shape_of(bound, "query");
  const Shape* key = shape_of(bound, "key");
  const Shape* value = shape_of(bound, "value");
  if (query == nullptr || key == nullptr || value == nullptr || query->size() < 2 ||
      key->size() < 2) {
    return 0;
  }
  const double scores = element_count(*query) / std::max(1.0, last_dimension(*query)) *
                        static_cast<double>((*key)[key->size() - 2]);
  return scores * (2 * last_dimension(*query) + 2 * last_dimension(*value) + 5 +
                   (bound.is_none("attn_mask") ? 0 : 1));
}

// Every weight matrix is multiplied by every token once, every bias is added once per token.
double recurrent_flops(const BoundNode& bound, const std::vector<TensorId>& parameters) {
  const Shape* input = shape_of(bound, "input");
  if (input == nullptr) return 0;
  const double tokens = element_count(*input) / std::max(1.0, last_dimension(*input));
  double per_token = 0;
  for (const TensorId id : parameters) {
    const Shape& shape = bound.graph().tensor(id).shape;
    per_token += element_count(shape) * (shape.size() > 1 ? 2 : 1);
  }
  return tokens * per_token;
}

std::vector<TensorId> cell_parameters(const BoundNode& bound) {
  std::vector<TensorId> parameters;
  for (const std::string_view name : {"w_ih", "w_hh", "b_ih", "b_hh"}) {
    if (const auto id = bound.tensor(name)) parameters.push_back(*id);
  }
  return parameters;
}

double inner_extent(const BoundNode& bound, std::string_view argument) {
  const Shape* shape = shape_of(bound, argument);
  return shape == nullptr ? 0 : last_dimension(*shape);
}

double front_extent(const Shape* shape) {
  return shape == nullptr || shape->empty() ? 1 : static_cast<double>(shape->front());
}

// FLOPs for each element of the result of a matrix product.
double product_flops(const BoundNode& bound, FlopBasis basis) {
  switch (basis) {
    case FlopBasis::kLinear:
      return 2 * inner_extent(bound, "weight") + (bound.is_none("bias") ? 0 : 1);
    case FlopBasis::kAddmm:
      return 2 * inner_extent(bound, "mat1") + 1;
    case FlopBasis::kBaddbmm:
      return 2 * inner_extent(bound, "batch1") + 1;
    case FlopBasis::kAddbmm:
      return 2 * inner_extent(bound, "batch1") * front_extent(shape_of(bound, "batch1")) + 1;
    case FlopBasis::kAddmv:
      return 2 * inner_extent(bound, "mat") + 1;
    case FlopBasis::kBilinear: {
      const Shape* weight = shape_of(bound, "weight");
      const double filter = weight == nullptr || weight->empty()
                                ? 0
                                : element_count(*weight) / std::max(1.0, front_extent(weight));
      return 2 * filter + (bound.is_none("bias") ? 0 : 1);
    }
    default:
      return 2 * inner_extent(bound, "self");  // mm, bmm, matmul, mv, dot
  }
}

double multi_head_attention_flops(const BoundNode& bound) {
  const Graph& graph = bound.graph();
  const Shape* query = shape_of(bound, "query");
  const auto in = bound.tensor("qkv_weight");
  const auto out = bound.tensor("proj_weight");
  if (query == nullptr || query->size() < 2 || !in || !out) {
    return output_elements(graph, bound.node());
  }
  const double tokens = element_count(*query) / std::max(1.0, last_dimension(*query));
  const auto length = static_cast<double>((*query)[query->size() - 2]);
  return 2 * tokens * (elements(graph, *in) + elements(graph, *out)) +
         4 * tokens * length * last_dimension(*query);
}

double flops_by_arguments(const BoundNode& bound, FlopBasis basis) {
  const double outputs = first_output_elements(bound.graph(), bound.node());
  switch (basis) {
    case FlopBasis::kConvolution:
      return conv_flops(bound, false);
    case FlopBasis::kTransposedConvolution:
      return conv_flops(bound, true);
    case FlopBasis::kAnyConvolution:
      return conv_flops(bound, bound.boolean("transposed"));
    case FlopBasis::kEinsum:
      return einsum_flops(bound);
    case FlopBasis::kAttention:
      return attention_flops(bound);
    case FlopBasis::kMultiHeadAttention:
      return multi_head_attention_flops(bound);
    case FlopBasis::kSegments:
      return segment_flops(bound);
    case FlopBasis::kRecurrent:
      return recurrent_flops(bound, bound.tensors("params"));
    case FlopBasis::kRecurrentCell:
      return recurrent_flops(bound, cell_parameters(bound));
    case FlopBasis::kWindow:
      return outputs * product(bound.integers("kernel_size"));
    case FlopBasis::kAdaptiveWindow:
      return first_input_elements(bound.graph(), bound.node());
    default:
      return outputs * product_flops(bound, basis);
  }
}

double flops_by_shapes(const Graph& graph, const Node& node, FlopRule rule) {
  switch (rule.basis) {
    case FlopBasis::kNoFlops:
      return 0;
    case FlopBasis::kResult:
      return rule.per_element * first_output_elements(graph, node);
    case FlopBasis::kFirstOperand:
      return rule.per_element * first_input_elements(graph, node);
    case FlopBasis::kLastOperand:
      return node.inputs.empty() ? 0 : elements(graph, node.inputs.back());
    default:
      return output_elements(graph, node);
  }
}

bool contains(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Ops that read only those elements of their first tensor that they return.
bool reads_only_selected(std::string_view op_type) {
  return contains({"embedding", "index", "index_select", "gather", "take_along_dim"},
                  base_name(op_type)) &&
         op_type.starts_with("aten.");
}

// Above this many operands a repeated one is found by sorting instead of by looking at all before.
constexpr std::size_t kFewOperands = 16;

// The places at which a tensor is an operand for the first time: x * x reads x once.
template <typename Visit>
void for_each_distinct(const std::vector<TensorId>& operands, const Visit& visit) {
  if (operands.size() <= kFewOperands) {
    for (auto place = operands.begin(); place != operands.end(); ++place) {
      if (std::find(operands.begin(), place, *place) == place)
        visit(index_of(place - operands.begin()));
    }
    return;
  }
  std::vector<std::pair<TensorId, std::size_t>> places;
  places.reserve(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) places.emplace_back(operands[i], i);
  std::sort(places.begin(), places.end());
  for (std::size_t p = 0; p < places.size(); ++p) {
    if (p == 0 || places[p].first != places[p - 1].first) visit(places[p].second);
  }
}

// A dropout that is not training, or drops a share of zero.
bool keeps_all(const Node& node) {
  const Json* train = find_member(node.attrs(), "train");
  if (train == nullptr || !train->is_boolean() || !train->get<bool>()) return true;
  const Json* share = find_member(node.attrs(), "p");
  return share != nullptr && share->is_number() && share->get<double>() == 0;
}

bool pads_nothing(const Node& node) {
  const Json* pads = find_member(node.attrs(), "pad");
  return pads != nullptr && pads->is_array() &&
         std::all_of(pads->begin(), pads->end(), [](const Json& pad) { return pad == 0; });
}

}  // namespace

bool is_alias_node(const Graph& graph, const Node& node) {
  if (node.op_type == kSetGradEnabled) {
    const Json* body = find_member(node.attrs(), "body");
    return body == nullptr || body->is_null();
  }
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr) return false;
  const std::string_view name = base_name(op->op_type);
  if (op->is_alias) return name.find("dropout") == std::string_view::npos || keeps_all(node);
  if (name == "cat" || name == "concat") return node.inputs.size() == 1;
  if (name == "constant_pad_nd" || name == "pad") return pads_nothing(node);
  if (name != "to" && name != "type_as") return false;
  const Json* copy = find_member(node.attrs(), "copy");
  if (copy != nullptr && copy->is_boolean() && copy->get<bool>()) return false;
  return !node.inputs.empty() && !node.outputs.empty() &&
         graph.tensor(node.inputs.front()).dtype == graph.tensor(node.outputs.front()).dtype;
}

double node_flops(const Graph& graph, const Node& node) {
  if (is_alias_node(graph, node)) return 0;
  const auto rule = find_flop_rule(node.op_type);
  if (!rule) return output_elements(graph, node);
  if (!rule->needs_arguments()) return flops_by_shapes(graph, node, *rule);
  BindError error;
  const auto bound = BoundNode::try_bind(graph, node, find_op(node.op_type)->schema, error);
  return bound ? flops_by_arguments(*bound, rule->basis) : output_elements(graph, node);
}

double node_bytes(const Graph& graph, const Node& node, bool with_weights) {
  if (is_alias_node(graph, node)) return 0;
  double results = 0;
  for (const TensorId id : node.outputs) results += static_cast<double>(graph.tensor(id).bytes());
  double operands = 0;
  for_each_distinct(node.inputs, [&](std::size_t i) {
    const TensorInfo& tensor = graph.tensor(node.inputs[i]);
    if (!with_weights && tensor.kind == TensorKind::kWeight) return;
    const auto bytes = static_cast<double>(tensor.bytes());
    operands += i == 0 && reads_only_selected(node.op_type) ? std::min(bytes, results) : bytes;
  });
  return operands + results;
}

NodeWork work_of(const Graph& graph, std::span<const NodeId> nodes) {
  NodeWork work;
  for (const NodeId id : nodes) {
    work.flops += node_flops(graph, graph.node(id));
    work.bytes += node_bytes(graph, graph.node(id));
  }
  return work;
}

}  // namespace npu
