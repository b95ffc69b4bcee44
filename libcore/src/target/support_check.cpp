// SPDX-License-Identifier: Apache-2.0
// Decides whether a device runs a node, and if not, why.
//
// The alternatives of the node's op type are tried in the order of the description. Each test that
// a rule passes brings it one step further; the alternative that got furthest gives the reason,
// since it is the one that the model's author most likely meant to meet.
// O(rules of the op x arguments).
#include "target/support_check.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/device_reason.hpp"
#include "ops/align_class.hpp"
#include "ops/byte_regions.hpp"
#include "ops/einsum.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/schema.hpp"

namespace npu {
namespace {

struct Candidate {
  const Graph& graph;
  NodeId id;
  const Node& node;
  const BoundNode* bound;  ///< null for an op that the catalogue does not know
  bool is_narrowed;        ///< float64 counts as float32

  DType dtype(TensorId tensor) const {
    const DType stated = graph.tensor(tensor).dtype;
    return is_narrowed && stated == DType::kFloat64 ? DType::kFloat32 : stated;
  }
};

// ---- Predicates ----

bool is_graph_output(const Graph& graph, TensorId id) {
  return std::find(graph.graph_outputs().begin(), graph.graph_outputs().end(), id) !=
         graph.graph_outputs().end();
}

// A weight, a view of one, such as the `t` of an addmm's weight, or one that was converted to
// integers and back by constants, corrected by constants before.
bool is_constant(const Graph& graph, TensorId id) {
  const auto is_weight = [&](TensorId operand) {
    return graph.tensor(operand).kind == TensorKind::kWeight;
  };
  bool was_converted = false;
  for (;;) {
    const TensorInfo& tensor = graph.tensor(id);
    if (tensor.kind == TensorKind::kWeight) return true;
    if (tensor.kind != TensorKind::kResult) return false;
    const Node& producer = graph.node(tensor.producer);
    if (producer.inputs.empty()) return false;
    const bool is_view = producer.inputs.size() == 1 && is_alias_node(graph, producer);
    const bool converts = is_quantization(producer.op_type) || is_dequantization(producer.op_type);
    const bool is_changed = was_converted && (producer.op_type == "aten.add.Tensor" ||
                                              producer.op_type == "aten.mul.Tensor");
    const bool is_of_constants =
        (converts || is_changed) &&
        std::all_of(producer.inputs.begin() + 1, producer.inputs.end(), is_weight);
    if (!is_view && !is_of_constants) return false;
    was_converted = was_converted || converts;
    id = producer.inputs.front();
  }
}

bool weights_are_constant(const Candidate& candidate) {
  for (const std::string_view name : {"weight", "bias", "running_mean", "running_var", "scale",
                                      "zero_point", "quant_min", "quant_max"}) {
    const auto tensor = candidate.bound->tensor(name);
    if (tensor && !is_constant(candidate.graph, *tensor)) return false;
  }
  // addmm(bias, x, weight) names its arguments differently.
  if (candidate.node.op_type == "aten.addmm.default") {
    const auto tensor = candidate.bound->tensor("mat2");
    return tensor && is_constant(candidate.graph, *tensor);
  }
  return true;
}

bool no_cast(const Candidate& candidate) {
  const Node& node = candidate.node;
  return !node.inputs.empty() && !node.outputs.empty() &&
         candidate.dtype(node.inputs.front()) == candidate.dtype(node.outputs.front());
}

bool eval_mode(const Candidate& candidate) {
  const BoundNode& bound = *candidate.bound;
  for (const std::string_view name : {"training", "train"}) {
    if (bound.find(name) == nullptr || bound.is_none(name) || !bound.boolean(name)) continue;
    // Dropout with probability 0 is the identity even then; recurrent layers have it by that name.
    const auto is_zero = [&](std::string_view p) {
      return bound.find(p) != nullptr && !bound.is_none(p) && bound.number(p) == 0;
    };
    if (!is_zero("p") && !is_zero("dropout")) return false;
  }
  return bound.find("dropout_p") == nullptr || bound.is_none("dropout_p") ||
         bound.number("dropout_p") == 0;
}

bool is_convolution(const Node& node) {
  const OpInfo* op = find_op(node.op_type);
  return op != nullptr && op->kind == OpKind::kAnchor && op->op_type.starts_with("aten.conv");
}

bool foldable_batch_norm(const Candidate& candidate) {
  const auto input = candidate.bound->tensor("input");
  if (!input || !eval_mode(candidate) || !weights_are_constant(candidate)) return false;
  const TensorInfo& tensor = candidate.graph.tensor(*input);
  return tensor.kind == TensorKind::kResult &&
         is_convolution(candidate.graph.node(tensor.producer)) && tensor.consumers.size() == 1 &&
         !is_graph_output(candidate.graph, *input);
}

std::int64_t rank_of_first(const Candidate& candidate) {
  const Node& node = candidate.node;
  if (!node.inputs.empty()) {
    return static_cast<std::int64_t>(candidate.graph.tensor(node.inputs.front()).shape.size());
  }
  if (node.outputs.empty()) return 0;
  return static_cast<std::int64_t>(candidate.graph.tensor(node.outputs.front()).shape.size());
}

// The axes of `dim`, counted from the front; empty if there are none.
std::vector<std::int64_t> axes(const Candidate& candidate) {
  const BoundArgument* dim = candidate.bound->find("dim");
  if (dim == nullptr || dim->kind != BoundArgument::Kind::kValue) return {};
  std::vector<std::int64_t> result = candidate.bound->integers("dim");
  for (std::int64_t& axis : result) {
    if (axis < 0) axis += rank_of_first(candidate);
  }
  std::sort(result.begin(), result.end());
  return result;
}

bool over_last_dim(const Candidate& candidate) {
  const std::int64_t rank = rank_of_first(candidate);
  const auto reduced = axes(candidate);
  return reduced.size() == 1 && (reduced.front() == rank - 1 || rank == 0);
}

bool mean_over_last_or_spatial(const Candidate& candidate) {
  return over_last_dim(candidate) ||
         (rank_of_first(candidate) == 4 && axes(candidate) == std::vector<std::int64_t>{2, 3});
}

bool one_floating_dtype(const Candidate& candidate) {
  std::optional<DType> seen;
  const auto agrees = [&](TensorId id) {
    const DType dtype = candidate.dtype(id);
    if (!is_floating_point(dtype)) return true;
    if (!seen) seen = dtype;
    return *seen == dtype;
  };
  return std::all_of(candidate.node.inputs.begin(), candidate.node.inputs.end(), agrees) &&
         std::all_of(candidate.node.outputs.begin(), candidate.node.outputs.end(), agrees);
}

bool one_dtype(const Candidate& candidate) {
  std::optional<DType> seen;
  const auto agrees = [&](TensorId id) {
    const DType dtype = candidate.dtype(id);
    if (!seen) seen = dtype;
    return *seen == dtype;
  };
  return std::all_of(candidate.node.inputs.begin(), candidate.node.inputs.end(), agrees) &&
         std::all_of(candidate.node.outputs.begin(), candidate.node.outputs.end(), agrees);
}

// An LSTM's state is smaller than its cell if a product follows (proj_size).
bool no_projection(const Candidate& candidate) {
  const BoundArgument* states = candidate.bound->find("hx");
  if (states == nullptr) return true;
  const auto shape_of = [&](std::int32_t input) -> const Shape& {
    return candidate.graph.tensor(candidate.node.inputs[static_cast<std::size_t>(input)]).shape;
  };
  const auto& inputs = states->inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](std::int32_t input) {
    return shape_of(input) == shape_of(inputs.front());
  });
}

// A clamp with low > high gives high in PyTorch, which no clip primitive guarantees.
bool ordered_bounds(const Candidate& candidate) {
  const BoundNode& bound = *candidate.bound;
  const auto value = [&](std::string_view a, std::string_view b) -> std::optional<double> {
    for (const std::string_view name : {a, b}) {
      const BoundArgument* found = bound.find(name);
      if (found != nullptr && found->kind == BoundArgument::Kind::kValue) return bound.number(name);
    }
    return std::nullopt;
  };
  const auto low = value("min", "min_val");
  const auto high = value("max", "max_val");
  if ((low && std::isnan(*low)) || (high && std::isnan(*high))) return false;
  return !low || !high || *low <= *high;
}

bool same_shape_operands(const Candidate& candidate) {
  const auto& inputs = candidate.node.inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](TensorId id) {
    return candidate.graph.tensor(id).shape == candidate.graph.tensor(inputs.front()).shape;
  });
}

bool keeps_first_shape(const Candidate& candidate) {
  const Node& node = candidate.node;
  return !node.inputs.empty() && !node.outputs.empty() &&
         candidate.graph.tensor(node.inputs.front()).shape ==
             candidate.graph.tensor(node.outputs.front()).shape;
}

bool tensor_operands(const Candidate& candidate) {
  const auto& declared = candidate.bound->schema().arguments;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].type == ArgumentType::kTensor &&
        candidate.bound->arguments()[i].kind == BoundArgument::Kind::kValue) {
      return false;
    }
  }
  return true;
}

bool not_empty(const Candidate& candidate) {
  const auto has_elements = [&](TensorId id) {
    const Shape& shape = candidate.graph.tensor(id).shape;
    return std::find(shape.begin(), shape.end(), 0) == shape.end();
  };
  return std::all_of(candidate.node.inputs.begin(), candidate.node.inputs.end(), has_elements) &&
         std::all_of(candidate.node.outputs.begin(), candidate.node.outputs.end(), has_elements);
}

bool three_dims(const Candidate& candidate) {
  const auto fits = [&](TensorId id) {
    const Shape& shape = candidate.graph.tensor(id).shape;
    return std::count_if(shape.begin(), shape.end(),
                         [](std::int64_t extent) { return extent > 1; }) <= 3 ||
           is_constant(candidate.graph, id);
  };
  return std::all_of(candidate.node.inputs.begin(), candidate.node.inputs.end(), fits) &&
         std::all_of(candidate.node.outputs.begin(), candidate.node.outputs.end(), fits);
}

bool einsum_product(const Candidate& candidate) {
  const Node& node = candidate.node;
  if (node.op_type != "aten.einsum.default") return false;
  std::vector<Shape> shapes;
  for (const TensorId id : node.inputs) shapes.push_back(candidate.graph.tensor(id).shape);
  std::string reason;
  return read_einsum_product(candidate.bound->string("equation"), shapes, reason).has_value();
}

bool same_rank_operands(const Candidate& candidate) {
  std::optional<std::size_t> rank;
  const auto& declared = candidate.bound->schema().arguments;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const BoundArgument& argument = candidate.bound->arguments()[i];
    if (declared[i].optional || argument.kind != BoundArgument::Kind::kTensor) continue;
    const auto input = static_cast<std::size_t>(argument.inputs.front());
    const Shape& shape = candidate.graph.tensor(candidate.node.inputs[input]).shape;
    if (rank && *rank != shape.size()) return false;
    rank = shape.size();
  }
  return true;
}

bool single_scale(const Candidate& candidate) {
  for (const std::string_view name : {"scale", "zero_point", "quant_min", "quant_max"}) {
    const auto tensor = candidate.bound->tensor(name);
    if (!tensor) continue;  // a number
    const Shape& shape = candidate.graph.tensor(*tensor).shape;
    if (std::any_of(shape.begin(), shape.end(), [](auto extent) { return extent != 1; })) {
      return false;
    }
  }
  return true;
}

bool whole_bias(const Candidate& candidate) {
  const auto bias = candidate.bound->tensor("bias");
  const auto weight = candidate.bound->tensor("weight");
  if (!weight) return true;
  const Shape& rows = candidate.graph.tensor(*weight).shape;
  return rows.size() >= 2 && (!bias || candidate.graph.tensor(*bias).shape == Shape{rows.front()});
}

// Of what is scattered: it may be larger than the index.
bool whole_source(const Candidate& candidate) {
  const auto source = candidate.bound->tensor("src");
  const auto index = candidate.bound->tensor("index");
  return !source || !index ||
         candidate.graph.tensor(*source).shape == candidate.graph.tensor(*index).shape;
}

bool grouped_rows(const Candidate& candidate) {
  const auto& inputs = candidate.node.inputs;  // self, mat2 and offs, which comes before bias
  const auto rank = [&](std::size_t i) { return candidate.graph.tensor(inputs[i]).shape.size(); };
  return inputs.size() == 3 && candidate.bound->tensor("offs") && rank(0) == 2 && rank(1) == 3;
}

bool integer_steps(const Candidate& candidate) {
  for (const std::string_view name : {"start", "end", "step"}) {
    const BoundArgument* found = candidate.bound->find(name);
    if (found == nullptr || found->kind == BoundArgument::Kind::kNone) continue;
    if (!found->value.is_number_integer()) return false;
  }
  return true;
}

struct PredicateRow {
  std::string_view name;
  bool (*holds)(const Candidate&);
  bool needs_arguments;     ///< reads Candidate::bound
  std::string_view reason;  ///< when it does not hold
  std::string_view summary;
};

// By name.
constexpr PredicateRow kPredicates[] = {
    {"einsum_product", einsum_product, true, "equation is no product of two matrices",
     "the equation has two operands, no label twice in one of them, each label that is summed in "
     "both, and one extent for each label"},
    {"eval_mode", eval_mode, true, "training mode",
     "training and train are false (or p or dropout is 0), and dropout_p is 0"},
    {"foldable_batch_norm", foldable_batch_norm, true, "batch norm not behind a conv",
     "eval mode with constant weights, and the input comes from a convolution that nothing else "
     "reads"},
    {"grouped_rows", grouped_rows, true, "not rows in groups",
     "self is a matrix whose rows offs divides into groups, mat2 has a matrix for each, and there "
     "is "
     "no bias"},
    {"integer_steps", integer_steps, true, "numbers that are no integers",
     "start, end and step are integers"},
    {"keeps_first_shape", keeps_first_shape, false, "broadcasts its first operand",
     "the result has the first operand's shape"},
    {"mean_over_last_or_spatial", mean_over_last_or_spatial, true, "mean over other axes",
     "dim is the last axis, or the last two of a tensor of rank 4"},
    {"no_cast", no_cast, false, "cast", "the result has the first operand's dtype"},
    {"no_projection", no_projection, true, "projection of the hidden state (proj_size)",
     "all tensors of hx have one shape"},
    {"not_empty", not_empty, false, "empty tensor", "no operand or result has a dimension of 0"},
    {"one_dtype", one_dtype, false, "mixed dtypes", "all operands and results have one dtype"},
    {"ordered_bounds", ordered_bounds, true, "lower bound above upper bound",
     "min is not above max, and neither is NaN"},
    {"over_last_dim", over_last_dim, true, "not over the last axis", "dim is the last axis"},
    {"same_dtype_operands", one_floating_dtype, false, "mixed dtypes",
     "all floating-point operands and results have one dtype"},
    {"same_rank_operands", same_rank_operands, true, "operands of different ranks",
     "all operands that cannot be left out have one rank"},
    {"same_shape_operands", same_shape_operands, false, "operands broadcast",
     "all operands have one shape"},
    {"single_scale", single_scale, true, "several scales",
     "scale, zero_point, quant_min and quant_max have one element"},
    {"tensor_operands", tensor_operands, true, "scalar operand", "no scalar stands for a tensor"},
    {"three_dims", three_dims, false, "more than three dimensions above 1",
     "no operand or result but those made of weights has more than three dimensions above 1"},
    {"weights_are_constant", weights_are_constant, true, "weights are computed",
     "weight, bias and running statistics are weights of the model or views of them"},
    {"whole_bias", whole_bias, true, "bias broadcasts",
     "weight has rows, and bias one element for each"},
    {"whole_source", whole_source, true, "scatters a part of src", "src has the shape of index"},
};

const PredicateRow* find_predicate(std::string_view name) {
  for (const PredicateRow& row : kPredicates) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// ---- Rules ----

// How far a rule got, and what stopped it (empty: nothing).
struct Outcome {
  int steps = 0;
  std::string reason;
};

bool contains(const std::vector<DType>& list, DType dtype) {
  return list.empty() || std::find(list.begin(), list.end(), dtype) != list.end();
}

// Per operand: the list of dtypes that it may have.
std::string check_dtypes(const Candidate& candidate, const DTypeRule& rule) {
  const Node& node = candidate.node;
  std::vector<const std::vector<DType>*> allowed(node.inputs.size(), &rule.any);
  if (candidate.bound != nullptr && !rule.by_argument.empty()) {
    const auto& declared = candidate.bound->schema().arguments;
    for (std::size_t i = 0; i < declared.size(); ++i) {
      const auto named = rule.by_argument.find(declared[i].name);
      if (named == rule.by_argument.end()) continue;
      for (const std::int32_t input : candidate.bound->arguments()[i].inputs) {
        if (input >= 0) allowed[static_cast<std::size_t>(input)] = &named->second;
      }
    }
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const DType dtype = candidate.dtype(node.inputs[i]);
    if (!contains(*allowed[i], dtype)) return fmt::format("dtype {}", dtype_name(dtype));
  }
  const auto result = rule.by_argument.find("result");
  const std::vector<DType>& of_results =
      result == rule.by_argument.end() ? rule.any : result->second;
  for (const TensorId id : node.outputs) {
    const DType dtype = candidate.dtype(id);
    if (!contains(of_results, dtype)) return fmt::format("dtype {}", dtype_name(dtype));
  }
  return {};
}

bool within(double value, const std::optional<double>& min, const std::optional<double>& max) {
  return (!min || value >= *min) && (!max || value <= *max);
}

// The argument's value after defaults, with int[2] 1 expanded to [1, 1], "torch.int8" as "int8".
Json attribute_value(const BoundNode& bound, std::string_view argument) {
  const BoundArgument* found = bound.find(argument);
  if (found == nullptr || found->kind == BoundArgument::Kind::kNone) return Json();
  if (found->kind != BoundArgument::Kind::kValue) return Json("a tensor");
  for (const SchemaArgument& declared : bound.schema().arguments) {
    if (declared.name != argument) continue;
    if (declared.type == ArgumentType::kIntList) return Json(bound.integers(argument));
    if (const auto dtype = bound.dtype(argument); declared.type == ArgumentType::kDType && dtype) {
      return Json(dtype_name(*dtype));
    }
  }
  return found->value;
}

// 1 equals [1, 1], so that a rule need not know how an op spells its lists.
bool equal_values(const Json& value, const Json& wanted) {
  if (value == wanted) return true;
  if (value.is_boolean() && wanted.is_number()) return json_number(value) == json_number(wanted);
  return value.is_array() && wanted.is_number() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [&](const Json& item) { return item == wanted; });
}

bool attribute_holds(const BoundNode& bound, const AttributeRule& rule, const Json& value) {
  const BoundArgument* found = bound.find(rule.argument);
  if (found != nullptr && (found->kind == BoundArgument::Kind::kTensor ||
                           found->kind == BoundArgument::Kind::kTensors)) {
    return false;
  }
  if (rule.min || rule.max) {
    const auto number = json_number(value);
    if (!number || !within(*number, rule.min, rule.max)) return false;
  }
  if (rule.each_min || rule.each_max) {
    if (!value.is_array()) return false;
    for (const Json& item : value) {
      const auto number = json_number(item);
      if (!number || !within(*number, rule.each_min, rule.each_max)) return false;
    }
  }
  if (rule.equals && !equal_values(value, *rule.equals)) return false;
  return !rule.in || std::any_of(rule.in->begin(), rule.in->end(),
                                 [&](const Json& wanted) { return equal_values(value, wanted); });
}

std::string attribute_text(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A rank above what the device and the rule have as their largest one; nothing if there is none.
std::optional<std::int64_t> rank_above(const Candidate& candidate, const CountRange& of_device,
                                       const CountRange& of_rule) {
  if (!of_device.max || !of_rule.max) return std::nullopt;
  const std::int64_t most = std::max(*of_device.max, *of_rule.max);
  for (const auto* tensors : {&candidate.node.inputs, &candidate.node.outputs}) {
    for (const TensorId id : *tensors) {
      const std::int64_t rank = std::ssize(candidate.graph.tensor(id).shape);
      if (rank > most) return rank;
    }
  }
  return std::nullopt;
}

Outcome try_rule(const Candidate& candidate, const OpRule& rule, const Device& device) {
  Outcome outcome;
  const auto stop = [&](std::string reason) {
    outcome.reason = std::move(reason);
    return outcome;
  };
  if (std::string reason = check_dtypes(candidate, rule.dtypes); !reason.empty()) {
    return stop(std::move(reason));
  }
  ++outcome.steps;
  const std::int64_t rank = rank_of_first(candidate);
  if (!rule.rank.contains(rank)) return stop(fmt::format("rank {}", rank));
  if (const auto above = rank_above(candidate, device.rank, rule.rank)) {
    return stop(fmt::format("rank {}", *above));
  }
  ++outcome.steps;
  const auto inputs = static_cast<std::int64_t>(candidate.node.inputs.size());
  if (!rule.inputs.contains(inputs)) {
    return stop(fmt::format("{} input{}", inputs, inputs == 1 ? "" : "s"));
  }
  for (const AttributeRule& attribute : rule.attributes) {
    ++outcome.steps;
    const Json value = attribute_value(*candidate.bound, attribute.argument);
    if (!attribute_holds(*candidate.bound, attribute, value)) {
      return stop(fmt::format("attribute {}={}", attribute.argument, attribute_text(value)));
    }
  }
  for (const std::string& name : rule.requirements) {
    ++outcome.steps;
    const PredicateRow* predicate = find_predicate(name);
    if (!predicate->holds(candidate)) return stop(std::string(predicate->reason));
  }
  return outcome;
}

bool is_any_op(std::string_view op_type) {
  return op_type.starts_with("aten.") || op_type.starts_with("quantized_decomposed.") ||
         op_type == "<built-in function getitem>" || op_type == "wrap_with_set_grad_enabled" ||
         op_type == kChannelNorm || op_type == "npu.segment_reduce" || op_type == "npu.tail" ||
         op_type == "npu.length_mask" || op_type == "transformers.grouped_mm_fallback.default";
}

SupportResult check_node(const Graph& graph, NodeId id, const Device& device, bool is_narrowed) {
  const Node& node = graph.node(id);
  const auto rules = device.rules_by_type.find(node.op_type);
  const bool has_rules = rules != device.rules_by_type.end();
  const bool converts_layouts = node.op_type == kChannelNorm && device.align.is_object();
  const bool any = (device.any_op && is_any_op(node.op_type)) ||
                   (!has_rules && (device.is_alias(node.op_type) || converts_layouts));
  if (!any && !has_rules) return {false, "unsupported op"};

  std::string reason;
  if (any) {
    // Arguments are not bound here: the backend has its own schemas.
    const Candidate candidate{graph, id, node, nullptr, is_narrowed};
    const bool alias_only = !device.any_op;
    OpRule rule;
    if (!alias_only) {
      rule.dtypes.any = device.dtypes;
      rule.rank = device.rank;
    }
    Outcome outcome = try_rule(candidate, rule, device);
    if (outcome.reason.empty()) return {true, {}};
    if (!has_rules) return {false, std::move(outcome.reason)};
    reason = std::move(outcome.reason);
  }

  std::optional<BoundNode> bound;
  if (const OpInfo* op = find_op(node.op_type)) {
    BindError error;
    bound = BoundNode::try_bind(graph, node, op->schema, error);
    if (!bound) return {false, fmt::format("arguments do not bind: {}", error.text)};
  }
  const Candidate candidate{graph, id, node, bound ? &*bound : nullptr, is_narrowed};
  int furthest = -1;
  for (const std::size_t index : rules->second) {
    Outcome outcome = try_rule(candidate, device.rules[index], device);
    if (outcome.reason.empty()) return {true, {}};
    if (outcome.steps > furthest) {
      furthest = outcome.steps;
      reason = std::move(outcome.reason);
    }
  }
  return {false, std::move(reason)};
}

}  // namespace

SupportResult check_support(const Graph& graph, NodeId id, const Device& device,
                            const std::function<bool(NodeId)>& may_run) {
  if (device.narrows_float64) {
    const std::vector<NodeId> region = byte_region(graph, id);
    const bool runs_region =
        !region.empty() && std::all_of(region.begin(), region.end(), [&](NodeId each) {
          return (!may_run || may_run(each)) && check_node(graph, each, device, true).supported;
        });
    if (runs_region) return {true, {}};
  }
  return check_node(graph, id, device, false);
}

SupportResult check_tagged_support(const Graph& graph, NodeId id, const Device& device) {
  return check_support(graph, id, device, [&](NodeId other) {
    const Node& node = graph.node(other);
    return node.device == device.name || !DeviceReason::of(node).is_fixed();
  });
}

std::vector<PredicateSummary> predicates() {
  std::vector<PredicateSummary> summaries;
  for (const PredicateRow& row : kPredicates)
    summaries.push_back({row.name, row.needs_arguments, row.summary});
  return summaries;
}

}  // namespace npu
