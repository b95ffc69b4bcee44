// SPDX-License-Identifier: Apache-2.0
// Writes precisions as quantize and dequantize nodes.
//
// A tensor keeps its name in float; its integers and what they stand for are two more tensors, with
// the suffixes _q and _dq. All int8 readers read the second, and so do float readers if the
// producer is int8; graph outputs keep the float tensor itself. A weight stays float in its file
// and gets a pair of its own, with a scale for each channel, which folds to constants. O(nodes +
// edges).
#include "passes/quantize/precision_rewrite.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "ir/graph_editor.hpp"
#include "ir/mention_form.hpp"
#include "npu/quant/weight_operand.hpp"
#include "npu/support/ids.hpp"
#include "passes/quantize/precision_solve.hpp"

namespace npu::quantize {
namespace {

constexpr std::string_view kLibrary = "quantized_decomposed.";

/// Classes of values with one scale.
class ScaleClasses {
 public:
  explicit ScaleClasses(std::size_t values) : parent_(values) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t value) {
    while (parent_[value] != value) value = parent_[value] = parent_[parent_[value]];
    return value;
  }
  void join(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> parent_;
};

class PairInserter {
 public:
  PairInserter(Graph& graph, const PrecisionProblem& problem, const std::vector<char>& int8,
               const TensorRanges& ranges, const QuantizationRules& rules)
      : graph_(graph),
        problem_(problem),
        int8_(int8),
        ranges_(ranges),
        rules_(rules),
        editor_(graph) {}

  void run(const std::vector<QuantParams>& params) {
    const std::vector<char> has_integers = integer_values(problem_, int8_);
    for (std::size_t v = 0; v < problem_.values.size(); ++v) {
      if (has_integers[v] != 0) insert_pair(problem_.values[v], params[v]);
    }
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      if (int8_[u] != 0 && problem_.units[u].kind == UnitKind::kWeighted) {
        quantize_weight(problem_.units[u].members.front());
      }
    }
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const std::size_t unit = index_of(problem_.unit_of[index_of(id)]);
      const bool is_int8 = int8_[unit] != 0;
      if (is_int8 || problem_.units[unit].has_float_result) {
        editor_.json(id)["precision"] = is_int8 ? "int8" : "float";
      }
    }
    editor_.commit();
  }

 private:
  void insert_pair(const Value& value, const QuantParams& params) {
    const TensorInfo& tensor = graph_.tensor(value.tensor);
    const NodeId place = tensor.producer.valid() ? NodeId{tensor.producer.value + 1} : NodeId{0};
    const Json attrs = {{"scale", params.scale},
                        {"zero_point", params.zero_point},
                        {"quant_min", rules_.activations.low},
                        {"quant_max", rules_.activations.high},
                        {"dtype", "torch." + std::string(dtype_name(rules_.activations.dtype))}};
    const Json in =
        tensor_mention(tensor.name, tensor.shape, tensor.dtype, source_of(graph_, value.tensor));
    const std::string pair =
        add_pair(place, tensor, in, {}, "per_tensor", attrs, rules_.activations.dtype);
    const bool is_int8 = value.producer >= 0 && int8_[index_of(value.producer)] != 0;
    for (const NodeId reader : tensor.consumers) {
      if (is_int8 || int8_[index_of(problem_.unit_of[index_of(reader)])] != 0) {
        redirect(reader, value.tensor, pair);
      }
    }
  }

  void redirect(NodeId reader, TensorId tensor, const std::string& to) {
    const std::vector<TensorId>& inputs = graph_.node(reader).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == tensor) editor_.set_operand(reader, i, to, {to, 0});
    }
  }

  /// Returns the name of the dequantized tensor. `more` are operands behind the tensor.
  std::string add_pair(NodeId place, const TensorInfo& tensor, const Json& in,
                       const std::vector<Json>& more, const std::string& form, const Json& attrs,
                       DType dtype) {
    const std::string integers = editor_.unique_name(tensor.name + "_q");
    std::string back = editor_.unique_name(tensor.name + "_dq");
    Json inputs = Json::array({in});
    for (const Json& operand : more) inputs.push_back(operand);
    const std::string suffix = form + ".default";
    editor_.insert_before(place, {{"name", integers},
                                  {"op_type", std::string(kLibrary) + "quantize_" + suffix},
                                  {"inputs", inputs},
                                  {"outputs", {tensor_mention(integers, tensor.shape, dtype)}},
                                  {"attrs", attrs}});
    inputs[0] = tensor_mention(integers, tensor.shape, dtype, {integers, 0});
    editor_.insert_before(place,
                          {{"name", back},
                           {"op_type", std::string(kLibrary) + "dequantize_" + suffix},
                           {"inputs", inputs},
                           {"outputs", {tensor_mention(back, tensor.shape, DType::kFloat32)}},
                           {"attrs", attrs}});
    return back;
  }

  void quantize_weight(NodeId node) {
    const WeightOperand weight = *weight_operand(graph_, graph_.node(node));
    const TensorInfo& tensor = graph_.tensor(weight.tensor);
    std::string& pair = weights_[std::pair{weight.tensor, weight.axis}];
    if (pair.empty()) {
      const ChannelExtremes& channels = ranges_.find_weight(tensor.name, weight.axis)->channels;
      Json scales = Json::array();
      for (std::size_t c = 0; c < channels.low.size(); ++c) {
        scales.push_back(quant_params({channels.low[c], channels.high[c]}, rules_.weights).scale);
      }
      const Json zeros(std::vector<std::int64_t>(scales.size(), 0));
      const Shape shape{static_cast<std::int64_t>(scales.size())};
      const std::vector<Json> more{
          add_constant(tensor.name + "_scales", shape, DType::kFloat32, std::move(scales)),
          add_constant(tensor.name + "_zero_points", shape, DType::kInt64, zeros)};
      const Json attrs = {{"axis", weight.axis},
                          {"quant_min", rules_.weights.low},
                          {"quant_max", rules_.weights.high},
                          {"dtype", "torch." + std::string(dtype_name(rules_.weights.dtype))}};
      pair = add_pair(node, tensor, tensor_mention(tensor.name, tensor.shape, tensor.dtype), more,
                      "per_channel", attrs, rules_.weights.dtype);
    }
    editor_.set_operand(node, weight.operand, pair, {pair, 0});
  }

  /// A member of the document, `empty` if it had none.
  static Json& member(Json& document, std::string_view key, Json empty) {
    if (find_member(document, key) == nullptr) set_member(document, key, std::move(empty));
    return *find_member(document, key);
  }

  /// A constant of the document; returns its mention.
  Json add_constant(const std::string& wanted, const Shape& shape, DType dtype, Json data) {
    const std::string name = editor_.unique_name(wanted);
    Json& document = graph_.document();
    member(document, "weights", Json::array()).push_back(tensor_mention(name, shape, dtype));
    set_member(member(document, "constants", Json::object()), name,
               {{"data", std::move(data)}, {"dtype", dtype_name(dtype)}});
    return tensor_mention(name, shape, dtype);
  }

  Graph& graph_;
  const PrecisionProblem& problem_;
  const std::vector<char>& int8_;
  const TensorRanges& ranges_;
  const QuantizationRules& rules_;
  GraphEditor editor_;
  std::map<std::pair<TensorId, std::int32_t>, std::string> weights_;  // dequantized
};

}  // namespace

std::vector<char> integer_values(const PrecisionProblem& problem, const std::vector<char>& int8) {
  std::vector<char> result(problem.values.size(), 0);
  for (std::size_t v = 0; v < result.size(); ++v) {
    const Value& value = problem.values[v];
    const bool keeps_scale = value.producer >= 0 && int8[index_of(value.producer)] != 0 &&
                             problem.units[index_of(value.producer)].kind == UnitKind::kSameScale;
    const bool is_read = std::any_of(value.readers.begin(), value.readers.end(),
                                     [&](std::int32_t unit) { return int8[index_of(unit)] != 0; });
    result[v] = keeps_scale || is_read ? 1 : 0;
  }
  return result;
}

std::vector<QuantParams> choose_params(const Graph& graph, const PrecisionProblem& problem,
                                       const std::vector<char>& int8, const TensorRanges& ranges,
                                       const CalibrationMethod& calibration,
                                       const QuantizationRules& rules) {
  const std::vector<char> has_integers = integer_values(problem, int8);
  ScaleClasses classes(problem.values.size());
  for (std::size_t u = 0; u < problem.units.size(); ++u) {
    const Unit& unit = problem.units[u];
    if (int8[u] == 0 || unit.kind != UnitKind::kSameScale) continue;
    const Node& node = graph.node(unit.members.front());
    const std::size_t result = index_of(problem.value_of[index_of(node.outputs.front())]);
    for (const std::size_t operand : integer_operands(graph, unit)) {
      classes.join(index_of(problem.value_of[index_of(node.inputs[operand])]), result);
    }
  }
  std::vector<NumberRange> of_class(problem.values.size());
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    if (has_integers[v] == 0) continue;
    const TensorRange& tensor = *ranges.find(graph.tensor(problem.values[v].tensor).name);
    const NumberRange range = choose_range(tensor, calibration, rules.activations);
    NumberRange& whole = of_class[classes.find(v)];
    whole = {std::min(whole.low, range.low), std::max(whole.high, range.high)};
  }
  std::vector<QuantParams> params(problem.values.size());
  for (std::size_t v = 0; v < params.size(); ++v) {
    params[v] = quant_params(of_class[classes.find(v)], rules.activations);
  }
  return params;
}

void insert_conversions(Graph& graph, const PrecisionProblem& problem,
                        const std::vector<char>& int8, const std::vector<QuantParams>& params,
                        const TensorRanges& ranges, const QuantizationRules& rules) {
  PairInserter(graph, problem, int8, ranges, rules).run(params);
}

}  // namespace npu::quantize
