// SPDX-License-Identifier: Apache-2.0
// What a node costs, from its shapes and arguments alone: floating-point operations and the bytes
// that it cannot avoid to move.
//
// A multiply-add is two operations; a function such as exp counts as one. Matrix-like ops are
// counted exactly, normalisations and softmax per element, einsum by the product of its index
// ranges (one contraction, in no better order). Nodes whose arguments do not bind are counted as
// unknown ops are.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "npu/ops/op_catalogue.hpp"

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

// Elements of the first result: of (output, mean, rstd) and (values, indices) the one that is
// computed.
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

// "conv2d" of "aten.conv2d.default".
std::string_view base_name(std::string_view op_type) {
  const std::size_t begin = op_type.find('.');
  if (begin == std::string_view::npos) return op_type;
  return op_type.substr(begin + 1, op_type.find('.', begin + 1) - begin - 1);
}

double conv_flops(const BoundNode& bound, bool transposed) {
  const Shape* input = shape_of(bound, "input");
  const Shape* weight = shape_of(bound, "weight");
  if (input == nullptr || weight == nullptr || weight->empty()) return 0;
  // Each output element (transposed: each input element) meets one filter: weight without its first
  // axis.
  const double filter =
      element_count(*weight) / std::max<double>(1, static_cast<double>(weight->front()));
  const double outputs = first_output_elements(bound.graph(), bound.node());
  const double bias = bound.is_none("bias") ? 0 : outputs;
  return 2 * filter * (transposed ? element_count(*input) : outputs) + bias;
}

// The product of all index ranges, two operations each; one with a single operand.
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

// Every weight matrix meets every token once, every bias is added once a token.
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

double product_flops(const BoundNode& bound, std::string_view name) {
  const Graph& graph = bound.graph();
  const double outputs = first_output_elements(graph, bound.node());
  const auto inner = [&](std::string_view argument) {
    const Shape* shape = shape_of(bound, argument);
    return shape == nullptr ? 0 : last_dimension(*shape);
  };
  if (name == "linear") {
    return outputs * (2 * inner("weight") + (bound.is_none("bias") ? 0 : 1));
  }
  if (name == "addmm") return outputs * (2 * inner("mat1") + 1);
  if (name == "baddbmm") return outputs * (2 * inner("batch1") + 1);
  if (name == "addbmm") {
    const Shape* batch = shape_of(bound, "batch1");
    const double count =
        batch == nullptr || batch->empty() ? 1 : static_cast<double>(batch->front());
    return outputs * (2 * inner("batch1") * count + 1);
  }
  if (name == "addmv") return outputs * (2 * inner("mat") + 1);
  if (name == "bilinear") {
    const Shape* weight = shape_of(bound, "weight");
    const double filter =
        weight == nullptr || weight->empty()
            ? 0
            : element_count(*weight) / std::max<double>(1, static_cast<double>(weight->front()));
    return outputs * (2 * filter + (bound.is_none("bias") ? 0 : 1));
  }
  return outputs * 2 * inner("self");  // mm, bmm, matmul, mv, dot
}

double pooling_flops(const BoundNode& bound, std::string_view name) {
  const double outputs = first_output_elements(bound.graph(), bound.node());
  if (name.find("adaptive") != std::string_view::npos) {
    return first_input_elements(bound.graph(), bound.node());
  }
  return outputs * product(bound.integers("kernel_size"));
}

bool contains(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Ops whose work depends on more than the shapes of what goes in and out. Binding arguments costs
// more than all the rest here, and most ops of a model do without.
bool needs_arguments(const OpInfo& op, std::string_view name) {
  return op.kind == OpKind::kAnchor || name.starts_with("conv") || name == "_convolution" ||
         name == "einsum" || name.find("scaled_dot_product") != std::string_view::npos ||
         name.find("pool") != std::string_view::npos ||
         contains({"lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell",
                   "_native_multi_head_attention"},
                  name);
}

double flops_by_arguments(const BoundNode& bound, std::string_view name) {
  const Graph& graph = bound.graph();
  const Node& node = bound.node();
  if (name.starts_with("conv_transpose")) return conv_flops(bound, true);
  if (name == "convolution" || name == "_convolution") {
    return conv_flops(bound, bound.boolean("transposed"));
  }
  if (name.starts_with("conv")) return conv_flops(bound, false);
  if (name == "einsum") return einsum_flops(bound);
  if (name.find("scaled_dot_product") != std::string_view::npos) return attention_flops(bound);
  if (contains({"lstm", "gru", "rnn_tanh", "rnn_relu"}, name)) {
    return recurrent_flops(bound, bound.tensors("params"));
  }
  if (contains({"lstm_cell", "gru_cell"}, name)) {
    return recurrent_flops(bound, cell_parameters(bound));
  }
  if (name == "_native_multi_head_attention") {
    const Shape* query = shape_of(bound, "query");
    const auto in = bound.tensor("qkv_weight");
    const auto out = bound.tensor("proj_weight");
    if (query == nullptr || query->size() < 2 || !in || !out) return output_elements(graph, node);
    const double tokens = element_count(*query) / std::max(1.0, last_dimension(*query));
    const double length = static_cast<double>((*query)[query->size() - 2]);
    return 2 * tokens * (elements(graph, *in) + elements(graph, *out)) +
           4 * tokens * length * last_dimension(*query);
  }
  if (name.find("pool") != std::string_view::npos) return pooling_flops(bound, name);
  return product_flops(bound, name);
}

double flops_by_shapes(const Graph& graph, const Node& node, const OpInfo& op,
                       std::string_view name) {
  const double outputs = output_elements(graph, node);
  const double result = first_output_elements(graph, node);
  const double input = first_input_elements(graph, node);
  if (name == "batch_norm" || name == "_native_batch_norm_legit_no_training") {
    return 2 * result;  // scale and shift
  }
  // Mean, variance (two), subtract, multiply, scale, shift.
  if (name.ends_with("norm") && name != "norm" && name != "linalg_vector_norm") return 7 * result;
  if (name.find("batch_norm") != std::string_view::npos) return 7 * result;
  if (name.find("softmax") != std::string_view::npos) {
    return 5 * result;  // maximum, subtract, exp, sum, divide
  }
  if (contains({"var", "std", "var_mean", "std_mean"}, name)) return 3 * input;
  if (name == "linalg_vector_norm" || name == "norm" || name == "logsumexp") return 2 * input;
  if (op.kind == OpKind::kReduction) {
    // max(a, b) of two tensors is in the catalogue under maximum.
    return input;
  }
  if (contains({"addcmul", "addcdiv", "lerp"}, name)) return 3 * result;
  if (contains({"clone", "copy", "copy_", "_to_copy", "to", "type_as", "lift_fresh_copy", "fill",
                "fill_", "zero_", "where", "masked_fill", "masked_fill_"},
               name)) {
    return 0;
  }
  if (op.kind == OpKind::kInjective) return 0;
  if (op.kind == OpKind::kOpaque) {
    if (contains({"full",          "full_like",  "zeros",         "zeros_like",     "ones",
                  "ones_like",     "empty",      "empty_like",    "new_zeros",      "new_ones",
                  "new_full",      "new_empty",  "arange",        "linspace",       "eye",
                  "scalar_tensor", "one_hot",    "slice_scatter", "select_scatter", "index_put",
                  "index_put_",    "index_copy", "masked_scatter"},
                 name)) {
      return 0;
    }
    if (contains({"scatter", "scatter_add", "scatter_reduce", "index_add"}, name)) {
      return node.inputs.empty() ? 0 : elements(graph, node.inputs.back());
    }
    if (contains({"topk", "sort", "argsort"}, name)) return input;
    if (contains({"upsample_bilinear2d", "grid_sampler"}, name)) return 8 * result;  // four taps
    if (name == "upsample_linear1d") return 4 * result;
    if (name == "upsample_bicubic2d") return 32 * result;  // sixteen taps
  }
  return outputs;
}

// Ops that read of their first tensor only the elements that they return.
bool reads_only_selected(std::string_view op_type) {
  return contains({"embedding", "index", "index_select", "gather", "take_along_dim"},
                  base_name(op_type)) &&
         op_type.starts_with("aten.");
}

}  // namespace

bool is_alias_node(const Graph& graph, const Node& node) {
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr) return false;
  const std::string_view name = base_name(op->op_type);
  if (op->is_alias) {
    if (name.find("dropout") == std::string_view::npos) return true;
    const Json* train = find_member(node.attrs(), "train");
    return train == nullptr || !train->is_boolean() || !train->get<bool>();
  }
  if (name != "to" && name != "type_as") return false;
  const Json* copy = find_member(node.attrs(), "copy");
  if (copy != nullptr && copy->is_boolean() && copy->get<bool>()) return false;
  return !node.inputs.empty() && !node.outputs.empty() &&
         graph.tensor(node.inputs.front()).dtype == graph.tensor(node.outputs.front()).dtype;
}

double node_flops(const Graph& graph, const Node& node) {
  if (is_alias_node(graph, node)) return 0;
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr) return output_elements(graph, node);
  const std::string_view name = base_name(op->op_type);
  if (!needs_arguments(*op, name)) return flops_by_shapes(graph, node, *op, name);
  BindError error;
  const auto bound = BoundNode::try_bind(graph, node, op->schema, error);
  return bound ? flops_by_arguments(*bound, name) : output_elements(graph, node);
}

double node_bytes(const Graph& graph, const Node& node, bool with_weights) {
  if (is_alias_node(graph, node)) return 0;
  double results = 0;
  for (const TensorId id : node.outputs) results += static_cast<double>(graph.tensor(id).bytes());
  double operands = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorId id = node.inputs[i];
    if (!with_weights && graph.tensor(id).kind == TensorKind::kWeight) continue;
    if (std::find(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(i), id) !=
        node.inputs.begin() + static_cast<std::ptrdiff_t>(i)) {
      continue;  // x * x reads x once
    }
    const double bytes = static_cast<double>(graph.tensor(id).bytes());
    operands += i == 0 && reads_only_selected(node.op_type) ? std::min(bytes, results) : bytes;
  }
  return operands + results;
}

}  // namespace npu
