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
#include <numeric>
#include <string>
#include <utility>

#include "ir/graph_editor.hpp"
#include "npu/support/ids.hpp"
#include "passes/quantize/constant_writer.hpp"
#include "passes/quantize/product_rewrite.hpp"

namespace npu::quantize {
namespace {

constexpr const char* kPerTensor = "per_tensor";

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

bool is_product(const PrecisionProblem& problem, std::size_t unit) {
  return problem.units[unit].kind == UnitKind::kWeighted;
}

class PairInserter {
 public:
  PairInserter(Graph& graph, const PrecisionProblem& problem, const PrecisionChoice& choice,
               const TensorRanges& ranges, const QuantizationRules& rules)
      : graph_(graph),
        problem_(problem),
        choice_(choice),
        rules_(rules),
        editor_(graph),
        writer_(graph, editor_),
        products_(graph, choice, ranges, rules, editor_, writer_) {}

  std::vector<std::string> run(const std::vector<QuantParams>& params) {
    const std::vector<char> has_integers = integer_values(problem_, choice_.int8);
    for (std::size_t v = 0; v < problem_.values.size(); ++v) {
      if (has_integers[v] != 0) insert_pair(v, params[v]);
    }
    for (const SmoothedValue& smoothed : choice_.smoothing.values) {
      if (!smoothed.into.valid()) multiply(smoothed);
    }
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      if (!is_product(problem_, u)) continue;
      const bool is_int8 = choice_.int8[u] != 0;
      products_.add(problem_.units[u], is_int8,
                    is_int8 ? operand_scale(problem_.units[u], params) : 0);
    }
    products_.divide_norms();
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const std::size_t unit = index_of(problem_.unit_of[index_of(id)]);
      const bool is_int8 = choice_.int8[unit] != 0;
      if (is_int8 || problem_.units[unit].has_float_result) {
        editor_.json(id)["precision"] = is_int8 ? "int8" : "float";
      }
    }
    editor_.commit();
    return products_.corrected();
  }

 private:
  bool is_int8(NodeId node) const {
    return choice_.int8[index_of(problem_.unit_of[index_of(node)])] != 0;
  }

  /// Whether a product reads the tensor through a multiplication of its own.
  bool is_multiplied(NodeId node) const {
    const auto found = choice_.smoothing.of_product.find(node);
    return found != choice_.smoothing.of_product.end() &&
           !choice_.smoothing.values[found->second].into.valid();
  }

  /// That of the integers which a product with a weight reads.
  double operand_scale(const Unit& unit, const std::vector<QuantParams>& params) const {
    const NodeId product = unit.members.front();
    if (is_multiplied(product)) {
      const std::size_t place = choice_.smoothing.of_product.at(product);
      return multiplied_params(choice_.smoothing.values[place]).scale;
    }
    const TensorId operand = graph_.node(product).inputs[integer_operands(graph_, unit).front()];
    return params[index_of(problem_.value_of[index_of(operand)])].scale;
  }

  QuantParams multiplied_params(const SmoothedValue& smoothed) const {
    return quant_params(divided_range(*smoothed.range, smoothed.range->factors),
                        rules_.activations);
  }

  NodeId behind(TensorId id) const {
    const TensorInfo& tensor = graph_.tensor(id);
    return tensor.producer.valid() ? NodeId{tensor.producer.value + 1} : NodeId{0};
  }

  void insert_pair(std::size_t value, const QuantParams& params) {
    const Value& each = problem_.values[value];
    const TensorInfo& tensor = graph_.tensor(each.tensor);
    const bool is_made_int8 = each.producer >= 0 && choice_.int8[index_of(each.producer)] != 0;
    const bool has_integers =
        is_made_int8 && gives_integers(problem_.units[index_of(each.producer)].kind);
    const auto reads_pair = [&](NodeId reader) {
      return is_int8(reader) && !is_multiplied(reader);
    };
    const bool leaves = is_made_int8 && each.leaves_as_integers;
    if (!has_integers && !leaves &&
        std::none_of(tensor.consumers.begin(), tensor.consumers.end(), reads_pair)) {
      return;  // its readers multiply first
    }
    const IntegerPair pair = add_pair(each.tensor, writer_.mention(each.tensor), params);
    const auto reads_floats = [&](NodeId reader) { return !is_int8(reader); };
    // What computes in float is elsewhere if a device passes integers alone, and so is its
    // dequantization.
    Mention elsewhere = pair.floats;
    if (rules_.integer_io && is_made_int8 &&
        std::any_of(tensor.consumers.begin(), tensor.consumers.end(), reads_pair) &&
        (leaves || std::any_of(tensor.consumers.begin(), tensor.consumers.end(), reads_floats))) {
      elsewhere = add_floats(writer_, behind(each.tensor), writer_.mention(each.tensor),
                             {pair.integers}, kPerTensor, attrs_of(params), rules_.activations);
    }
    for (const NodeId reader : tensor.consumers) {
      if (!is_multiplied(reader) && (is_made_int8 || is_int8(reader))) {
        redirect(reader, each.tensor, is_int8(reader) ? pair.floats : elsewhere);
      }
    }
    if (leaves) editor_.set_output(each.tensor, elsewhere.name, elsewhere.source);
  }

  void multiply(const SmoothedValue& smoothed) {
    const TensorId id = problem_.values[index_of(smoothed.value)].tensor;
    const std::vector<float>& factors = smoothed.range->factors;
    const Mention scaled = writer_.multiplied(behind(id), writer_.mention(id), inverse_of(factors),
                                              smoothed.range->channels.axis);
    const Mention floats = add_pair(id, scaled, multiplied_params(smoothed)).floats;
    for (const NodeId product : smoothed.products) redirect(product, id, floats);
  }

  /// Behind the producer of `id`.
  IntegerPair add_pair(TensorId id, const Mention& tensor, const QuantParams& params) {
    return add_integer_pair(writer_, behind(id), tensor, {}, kPerTensor, attrs_of(params),
                            rules_.activations);
  }

  static Json attrs_of(const QuantParams& params) {
    return {{"scale", params.scale}, {"zero_point", params.zero_point}};
  }

  void redirect(NodeId reader, TensorId tensor, const Mention& to) {
    const std::vector<TensorId>& inputs = graph_.node(reader).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == tensor) editor_.set_operand(reader, i, to.name, to.source);
    }
  }

  Graph& graph_;
  const PrecisionProblem& problem_;
  const PrecisionChoice& choice_;
  const QuantizationRules& rules_;
  GraphEditor editor_;
  ConstantWriter writer_;
  ProductRewriter products_;
};

}  // namespace

std::vector<char> integer_values(const PrecisionProblem& problem, const std::vector<char>& int8) {
  std::vector<char> result(problem.values.size(), 0);
  for (std::size_t v = 0; v < result.size(); ++v) {
    const Value& value = problem.values[v];
    const bool is_made = value.producer >= 0 && int8[index_of(value.producer)] != 0 &&
                         gives_integers(problem.units[index_of(value.producer)].kind);
    const bool is_read = std::any_of(value.readers.begin(), value.readers.end(),
                                     [&](std::int32_t unit) { return int8[index_of(unit)] != 0; });
    const bool leaves =
        value.leaves_as_integers && value.producer >= 0 && int8[index_of(value.producer)] != 0;
    result[v] = is_made || leaves || is_read ? 1 : 0;
  }
  return result;
}

std::vector<QuantParams> choose_params(const Graph& graph, const PrecisionProblem& problem,
                                       const PrecisionChoice& choice, const TensorRanges& ranges,
                                       const CalibrationMethod& calibration,
                                       const QuantizationRules& rules) {
  const std::vector<char> has_integers = integer_values(problem, choice.int8);
  ScaleClasses classes(problem.values.size());
  for (std::size_t u = 0; u < problem.units.size(); ++u) {
    const Unit& unit = problem.units[u];
    if (choice.int8[u] == 0 || unit.kind != UnitKind::kSameScale) continue;
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
    const std::int32_t smoothed = choice.smoothing.of_value[v];
    const NumberRange range =
        smoothed < 0
            ? choose_range(tensor, calibration, rules.activations)
            : divided_range(tensor, choice.smoothing.values[index_of(smoothed)].range->factors);
    NumberRange& whole = of_class[classes.find(v)];
    whole = {std::min(whole.low, range.low), std::max(whole.high, range.high)};
  }
  std::vector<QuantParams> params(problem.values.size());
  for (std::size_t v = 0; v < params.size(); ++v) {
    params[v] = quant_params(of_class[classes.find(v)], rules.activations);
  }
  return params;
}

std::vector<std::string> insert_conversions(Graph& graph, const PrecisionProblem& problem,
                                            const PrecisionChoice& choice,
                                            const std::vector<QuantParams>& params,
                                            const TensorRanges& ranges,
                                            const QuantizationRules& rules) {
  return PairInserter(graph, problem, choice, ranges, rules).run(params);
}

}  // namespace npu::quantize
