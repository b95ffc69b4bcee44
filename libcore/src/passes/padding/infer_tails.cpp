// SPDX-License-Identifier: Apache-2.0
// What a rule means: classes of results from classes of operands; and the walk over a graph.
//
// Input:  a graph at the capacities with its sizes as expressions.
// Output: the class of every dimension that varies, and what each node needs.
// O(nodes x (operands + results) x rank).
#include "passes/padding/infer_tails.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "ops/op_catalogue.hpp"
#include "passes/padding/row_rules.hpp"
#include "support/text.hpp"

namespace npu::padding {
namespace {

// Neither an infinity nor a NaN can be in it.
bool is_exact(DType dtype) { return !is_floating_point(dtype); }

/// The classes of one node's operands.
class OperandTails {
 public:
  OperandTails(const Graph& graph, const Node& node, const TensorSizes& shapes,
               const IdVector<TensorId, TensorTails>& tails)
      : graph_(graph), node_(node), shapes_(shapes), tails_(tails) {}

  const TailClass& at(const Place& place) const {
    return tails_[node_.inputs[index_of(place.operand)]].dims[index_of(place.dim)];
  }
  template <typename Has>
  bool all(const std::vector<Place>& places, const Has& has) const {
    return std::all_of(places.begin(), places.end(), [&](const Place& p) { return has(at(p)); });
  }
  bool finite(std::size_t operand, const std::vector<Place>& without = {}) const {
    std::vector<std::int32_t> dims;
    for (const Place& place : without) {
      if (index_of(place.operand) == operand) dims.push_back(place.dim);
    }
    return is_finite(graph_, node_.inputs[operand], shapes_, tails_, dims);
  }
  // Whether the rows of all operands are finite or repeat others, whatever valid ones hold.
  bool rows_are_finite(const std::optional<Place>& without) const {
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      const std::vector<TailClass>& dims = tails_[node_.inputs[i]].dims;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        const Place place{static_cast<std::int32_t>(i), static_cast<std::int32_t>(d)};
        if (!shapes_.varies(node_.inputs[i], d) || place == without) continue;
        if (!dims[d].finite && !dims[d].repeat) return false;
      }
    }
    return true;
  }
  // Whether one place has a property and no other operand spoils it.
  template <typename Has, typename Spares>
  bool any(const std::vector<Place>& places, const Has& has, const Spares& spares) const {
    return std::any_of(places.begin(), places.end(), [&](const Place& place) {
      if (!has(at(place))) return false;
      for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
        if (i != index_of(place.operand) && !spares(i)) return false;
      }
      return true;
    });
  }
  bool not_above(std::size_t operand) const {
    return is_not_above(graph_, node_.inputs[operand], shapes_, tails_);
  }
  std::size_t count() const { return node_.inputs.size(); }

 private:
  const Graph& graph_;
  const Node& node_;
  const TensorSizes& shapes_;
  const IdVector<TensorId, TensorTails>& tails_;
};

bool is_zero(const TailClass& tail) { return tail.zero; }
bool is_lowest(const TailClass& tail) { return tail.lowest; }
bool is_repeat(const TailClass& tail) { return tail.repeat; }

TailClass class_along(const ResultDim& along, const OperandTails& operands) {
  const bool all_count = static_cast<std::int32_t>(along.values.size()) == along.value_operands;
  const auto finite = [&](std::size_t i) { return operands.finite(i); };
  const auto not_above = [&](std::size_t i) { return operands.not_above(i); };
  TailClass tail;
  tail.repeat = along.repeat == Keep::kYes ||
                (along.repeat == Keep::kAll && operands.all(along.from, is_repeat)) ||
                (along.repeat_from_zero && operands.all(along.from, is_zero));
  const bool has_values = all_count && !along.values.empty();
  tail.zero = along.zero == Keep::kYes ||
              (along.zero == Keep::kAll && has_values && operands.all(along.values, is_zero)) ||
              (along.zero == Keep::kAny && operands.any(along.values, is_zero, finite)) ||
              (along.zero_from_lowest && has_values && operands.all(along.values, is_lowest));
  tail.lowest =
      along.lowest == Keep::kYes ||
      (along.lowest == Keep::kAll && has_values && operands.all(along.values, is_lowest)) ||
      (along.lowest == Keep::kAny && operands.any(along.values, is_lowest, not_above));
  if (along.only_if_finite && !operands.rows_are_finite(along.overwritten)) {
    tail.zero = tail.lowest = false;
  }
  tail.finite = along.finite == Keep::kYes;
  return tail;
}

// Whether all operands are finite, but for rows of minus infinity that stay such in the result.
bool keeps_finite(const ResultDim& along, const NodeRule& rule, const TensorTails& result,
                  const OperandTails& operands) {
  std::vector<Place> lowest;
  if (along.overwritten) lowest.push_back(*along.overwritten);
  for (const ResultDim& other : rule.results) {
    if (other.result != along.result || !result.dims[index_of(other.dim)].lowest) continue;
    lowest.insert(lowest.end(), other.from.begin(), other.from.end());
  }
  for (std::size_t i = 0; i < operands.count(); ++i) {
    if (!operands.finite(i, lowest)) return false;
  }
  return true;
}

// Rows that repeat the last one are finite if all rows of the other dimensions are.
void set_finite(TensorTails& tensor, const SizeShape& shape, bool is_whole) {
  bool others = tensor.value == ValueClass::kFinite;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    TailClass& tail = tensor.dims[d];
    if (shape[d].is_constant()) continue;
    if (is_whole || tail.zero) tail.finite = true;
    if (tail.lowest && !is_whole) tail.finite = false;
    if (!tail.repeat && !tail.lowest) others = others && tail.finite;
  }
  for (TailClass& tail : tensor.dims) {
    if (tail.repeat && !tail.zero && !tail.lowest && !is_whole) tail.finite = others;
  }
}

bool is_varying(const Node& node, const TensorSizes& shapes) {
  const auto varies = [&](TensorId id) { return shapes.varies(id); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), varies) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), varies);
}

}  // namespace

bool is_finite(const Graph& graph, TensorId id, const TensorSizes& shapes,
               const IdVector<TensorId, TensorTails>& tails,
               const std::vector<std::int32_t>& without) {
  if (is_exact(graph.tensor(id).dtype)) return true;
  const TensorTails& tensor = tails[id];
  if (tensor.value != ValueClass::kFinite) return false;
  // What repeats the last row is finite if what the others hold is.
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    if (!shapes.varies(id, d)) continue;
    if (std::ranges::find(without, static_cast<std::int32_t>(d)) != without.end()) continue;
    if (!tensor.dims[d].finite && !tensor.dims[d].repeat) return false;
  }
  return true;
}

bool is_not_above(const Graph& graph, TensorId id, const TensorSizes& shapes,
                  const IdVector<TensorId, TensorTails>& tails) {
  if (is_exact(graph.tensor(id).dtype)) return true;
  const TensorTails& tensor = tails[id];
  if (tensor.value == ValueClass::kAny) return false;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    const TailClass& tail = tensor.dims[d];
    if (shapes.varies(id, d) && !tail.finite && !tail.lowest && !tail.repeat) return false;
  }
  return true;
}

bool is_met(const TailNeed& need, const Node& node, const IdVector<TensorId, TensorTails>& tails) {
  return std::any_of(need.places.begin(), need.places.end(), [&](const Place& place) {
    const TensorTails& tensor = tails[node.inputs[index_of(place.operand)]];
    const TailClass& tail = tensor.dims[index_of(place.dim)];
    return std::any_of(need.accepted.begin(), need.accepted.end(),
                       [&](const TailClass& wanted) { return tail.implies(wanted); });
  });
}

TensorTails source_tails(const TensorInfo& tensor) {
  TensorTails tails;
  const TailClass repeat{.repeat = true, .finite = true};
  tails.dims.assign(tensor.shape.size(), repeat);
  tails.is_constant = tensor.kind == TensorKind::kWeight;
  return tails;
}

std::vector<TensorTails> result_tails(const Graph& graph, const Node& node, const NodeRule& rule,
                                      const TensorSizes& shapes,
                                      const IdVector<TensorId, TensorTails>& tails) {
  std::vector<TensorTails> results;
  const bool is_constant = std::all_of(node.inputs.begin(), node.inputs.end(),
                                       [&](TensorId id) { return tails[id].is_constant; });
  for (const TensorId id : node.outputs) {
    TensorTails& result = results.emplace_back();
    result.dims.resize(graph.tensor(id).shape.size());
    result.value = is_exact(graph.tensor(id).dtype) ? ValueClass::kFinite : rule.value;
    result.is_constant = is_constant;
  }
  const OperandTails operands(graph, node, shapes, tails);
  for (const ResultDim& along : rule.results) {
    results[index_of(along.result)].dims[index_of(along.dim)] = class_along(along, operands);
  }
  for (const ResultDim& along : rule.results) {
    if (along.finite != Keep::kAll) continue;
    TensorTails& result = results[index_of(along.result)];
    result.dims[index_of(along.dim)].finite = keeps_finite(along, rule, result, operands);
  }
  for (std::size_t r = 0; r < results.size(); ++r) {
    const TensorId id = node.outputs[r];
    set_finite(results[r], shapes.of(id), is_exact(graph.tensor(id).dtype));
  }
  return results;
}

PaddingAnalysis infer_tails(const Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes,
                            Diagnostics& diagnostics) {
  PaddingAnalysis analysis;
  analysis.tails.resize(graph.tensors().size());
  analysis.rules.resize(graph.nodes().size());
  for (const TensorId id : ids_of<TensorId>(graph.tensors())) {
    if (graph.tensor(id).kind == TensorKind::kResult) continue;
    analysis.tails[id] = source_tails(graph.tensor(id));
  }
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const Node& node = graph.node(id);
    analysis.rules[id] = rule_of_node(graph, node, sizes, shapes, analysis.tails);
    NodeRule& rule = analysis.rules[id];
    if (!rule.refusal.empty() && is_varying(node, shapes)) {
      diagnostics.error(graph.location(id),
                        fmt::format("node '{}': {}", short_text(node.name), rule.refusal));
    }
    if (!rule.refusal.empty()) {
      // Without sizes that vary nothing has to be known but what the results may hold.
      rule = {};
      for (const TensorId input : node.inputs) {
        rule.value = std::max(rule.value, analysis.tails[input].value);
      }
    }
    std::vector<TensorTails> results = result_tails(graph, node, rule, shapes, analysis.tails);
    for (std::size_t r = 0; r < results.size(); ++r) {
      analysis.tails[node.outputs[r]] = std::move(results[r]);
    }
  }
  return analysis;
}

}  // namespace npu::padding
