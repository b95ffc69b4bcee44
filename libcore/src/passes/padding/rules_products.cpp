// SPDX-License-Identifier: Apache-2.0
// Rules of products of matrices, in all their forms, and of attention.
//
// A product is operands whose dimensions have labels: a label of the result lies along the same
// label of the operands, a label that only operands have is added up. There the rows behind the
// valid ones must be 0 in one factor and finite in the others. O(operands x rank).
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "ops/einsum.hpp"
#include "ops/op_name.hpp"
#include "passes/padding/row_rules.hpp"
#include "passes/padding/rule_parts.hpp"

namespace npu::padding {
namespace {

using Labels = std::vector<std::int32_t>;

/// Operands of a product by number, each with a label for each dimension.
struct LabelledProduct {
  std::vector<std::pair<std::size_t, Labels>> factors;
  std::vector<std::pair<std::size_t, Labels>> addends;
  Labels result;
};

std::vector<Place> places_of(const PaddedNode& node, std::int32_t label,
                             const std::vector<std::pair<std::size_t, Labels>>& operands) {
  std::vector<Place> places;
  for (const auto& [operand, labels] : operands) {
    for (std::size_t d = 0; d < labels.size(); ++d) {
      const Place place{static_cast<std::int32_t>(operand), static_cast<std::int32_t>(d)};
      if (labels[d] == label && node.operand_varies(operand, place.dim)) places.push_back(place);
    }
  }
  return places;
}

// An operand with a label whose size is fixed, and not 1; -1 if there is none.
std::int32_t fixed_operand(const PaddedNode& node, std::int32_t label,
                           const std::vector<std::pair<std::size_t, Labels>>& operands) {
  for (const auto& [operand, labels] : operands) {
    for (std::size_t d = 0; d < labels.size(); ++d) {
      const auto dim = static_cast<std::int32_t>(d);
      if (labels[d] == label && !node.operand_varies(operand, dim) &&
          !node.broadcasts(operand, dim)) {
        return static_cast<std::int32_t>(operand);
      }
    }
  }
  return -1;
}

NodeRule labelled_rule(const PaddedNode& node, const LabelledProduct& product) {
  NodeRule rule;
  rule.value = least_value(node) == ValueClass::kFinite ? ValueClass::kFinite : ValueClass::kAny;
  for (std::size_t d = 0; d < product.result.size(); ++d) {
    const auto dim = static_cast<std::int32_t>(d);
    if (!node.result_varies(0, dim)) continue;
    ResultDim along{.result = 0, .dim = dim};
    for (const auto* operands : {&product.factors, &product.addends}) {
      const std::int32_t fixed = fixed_operand(node, product.result[d], *operands);
      if (fixed >= 0) return refuse_rule(fixed_size_text(index_of(fixed), dim));
    }
    along.from = places_of(node, product.result[d], product.factors);
    along.values = along.from;
    for (const Place& place : places_of(node, product.result[d], product.addends)) {
      along.from.push_back(place);
    }
    along.value_operands = static_cast<std::int32_t>(product.factors.size());
    along.repeat = Keep::kAll;
    along.zero = product.addends.empty() ? Keep::kAny : Keep::kNo;
    along.finite = Keep::kAll;
    rule.results.push_back(std::move(along));
  }
  Labels seen = product.result;
  for (const auto& [operand, labels] : product.factors) {
    for (const std::int32_t label : labels) {
      if (std::find(seen.begin(), seen.end(), label) != seen.end()) continue;
      seen.push_back(label);
      const std::vector<Place> places = places_of(node, label, product.factors);
      if (places.empty()) continue;
      const bool is_shared = fixed_operand(node, label, product.factors) < 0;
      for (const Place& place : places) {
        if (!is_shared ||
            !node.same(node.operand(index_of(place.operand))[index_of(place.dim)],
                       node.operand(index_of(places[0].operand))[index_of(places[0].dim)])) {
          return refuse_rule("its operands have other sizes where they are added up");
        }
      }
      rule.needs.push_back({.places = places, .accepted = {kZeros}, .fill = Fill::kZero});
      for (const Place& place : places) {
        rule.needs.push_back(need_at(place, {kFinites}, Fill::kZero));
      }
    }
  }
  return rule;
}

/// Labels of batches counted from the last one, and of what follows them.
Labels batched(std::int32_t rank, const Labels& last) {
  Labels labels;
  const auto batches = rank - static_cast<std::int32_t>(last.size());
  for (std::int32_t d = 0; d < batches; ++d) labels.push_back(100 + batches - d);
  labels.insert(labels.end(), last.begin(), last.end());
  return labels;
}

constexpr std::int32_t kRows = 1;
constexpr std::int32_t kColumns = 2;
constexpr std::int32_t kInner = 3;

LabelledProduct matrix_product(const PaddedNode& node, std::size_t left, std::size_t right) {
  LabelledProduct product;
  const bool is_left_vector = node.rank(left) == 1;
  const bool is_right_vector = node.rank(right) == 1;
  product.factors = {
      {left, is_left_vector ? Labels{kInner} : batched(node.rank(left), {kRows, kInner})},
      {right, is_right_vector ? Labels{kInner} : batched(node.rank(right), {kInner, kColumns})}};
  Labels last;
  if (!is_left_vector) last.push_back(kRows);
  if (!is_right_vector) last.push_back(kColumns);
  product.result = batched(static_cast<std::int32_t>(node.result().size()), last);
  return product;
}

void add_addend(LabelledProduct& product, const PaddedNode& node, std::size_t operand) {
  const auto rank = index_of(node.rank(operand));
  const auto skip = product.result.size() - std::min(product.result.size(), rank);
  product.addends.emplace_back(
      operand,
      Labels(product.result.begin() + static_cast<std::ptrdiff_t>(skip), product.result.end()));
}

std::optional<LabelledProduct> einsum_labels(const PaddedNode& node) {
  const std::vector<std::int32_t> tensors = node.arguments("tensors");
  std::vector<Shape> shapes;
  for (const std::int32_t i : tensors) shapes.push_back(node.operand_info(index_of(i)).shape);
  std::string reason;
  const auto read = read_einsum_product(node.bound().string("equation"), shapes, reason);
  if (!read || read->operands.size() != tensors.size()) return std::nullopt;
  LabelledProduct product;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    product.factors.emplace_back(index_of(tensors[i]),
                                 Labels(read->operands[i].begin(), read->operands[i].end()));
  }
  product.result.assign(read->result.begin(), read->result.end());
  return product;
}

}  // namespace

NodeRule product_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "linear") {
    const std::size_t input = node.argument("input").value_or(0);
    const std::size_t weight = node.argument("weight").value_or(1);
    LabelledProduct product;
    product.factors = {{input, batched(node.rank(input), {kInner})}};
    product.result = batched(static_cast<std::int32_t>(node.result().size()), {kColumns});
    // The batches of the input are those of the result, whatever the rank of the weight.
    product.factors.emplace_back(
        weight, node.rank(weight) == 1 ? Labels{kInner} : Labels{kColumns, kInner});
    if (node.rank(weight) == 1) product.result = batched(node.rank(input) - 1, {});
    if (const auto bias = node.argument("bias")) add_addend(product, node, *bias);
    return labelled_rule(node, product);
  }
  if (name == "mm" || name == "bmm" || name == "matmul" || name == "mv" || name == "dot") {
    return labelled_rule(node, matrix_product(node, 0, 1));
  }
  if (name == "addmm" || name == "baddbmm" || name == "addmv") {
    LabelledProduct product = matrix_product(node, 1, 2);
    add_addend(product, node, 0);
    return labelled_rule(node, product);
  }
  if (name == "einsum") {
    if (const auto product = einsum_labels(node)) return labelled_rule(node, *product);
  }
  return refuse_rule("there is no padding rule for this form of a product");
}

namespace {

/// Operands of an attention by number; dimensions are counted from the last one.
struct AttentionOperands {
  std::size_t query = 0;
  std::size_t key = 1;
  std::size_t value = 2;
  std::optional<std::size_t> mask;
};

std::int32_t from_end(const PaddedNode& node, std::size_t operand, std::int32_t distance) {
  return node.rank(operand) - distance;
}

// Keys behind the valid ones must have no weight; their values must not spoil 0 times the value.
void need_no_tail_of_keys(NodeRule& rule, const PaddedNode& node,
                          const AttentionOperands& operands) {
  const std::int32_t keys = from_end(node, operands.key, 2);
  if (!node.operand_varies(operands.key, keys)) return;
  const Place key{static_cast<std::int32_t>(operands.key), keys};
  const Place value{static_cast<std::int32_t>(operands.value), from_end(node, operands.value, 2)};
  const SizeExpression& size = node.operand(operands.key)[index_of(keys)];
  const auto differs = [&](std::size_t operand, std::int32_t dim) {
    return !node.same(node.operand(operand)[index_of(dim)], size);
  };
  const bool is_whole_mask =
      operands.mask && !node.broadcasts(*operands.mask, from_end(node, *operands.mask, 1));
  if (differs(operands.value, value.dim) ||
      (is_whole_mask && differs(*operands.mask, from_end(node, *operands.mask, 1)))) {
    rule.refusal = "its values or its mask have another number of keys than its keys";
    return;
  }
  rule.needs.push_back(need_at(key, {kFinites}, Fill::kZero));
  rule.needs.push_back(need_at(value, {kFinites}, Fill::kZero));
  if (operands.mask) {
    const std::int32_t columns = from_end(node, *operands.mask, 1);
    if (!node.operand_varies(*operands.mask, columns)) {
      rule.refusal = "its mask has one column for all keys";
      return;
    }
    const bool is_bool = node.operand_info(*operands.mask).dtype == DType::kBool;
    rule.needs.push_back(need_at({static_cast<std::int32_t>(*operands.mask), columns},
                                 {is_bool ? kZeros : kLowests},
                                 is_bool ? Fill::kZero : Fill::kLowest));
    return;
  }
  if (!node.bound().boolean("is_causal")) {
    rule.rewriting = Rewriting::kAttentionMask;
    return;
  }
  // A query sees the keys up to its own place, all of them valid if there are enough.
  const SizeExpression& rows =
      node.operand(operands.query)[index_of(from_end(node, operands.query, 2))];
  if (!node.sizes().at_most(rows, size)) {
    rule.refusal = "a causal attention has more queries than keys, and padding among the keys";
  }
}

}  // namespace

NodeRule attention_rule(const PaddedNode& node) {
  AttentionOperands operands;
  const auto query = node.argument("query");
  const auto key = node.argument("key");
  const auto value = node.argument("value");
  if (!query || !key || !value || node.number_or("dropout_p", 0) != 0) {
    return refuse_rule("there is no padding rule for this form of attention");
  }
  operands = {*query, *key, *value, node.argument("attn_mask")};
  NodeRule rule;
  const auto rank = static_cast<std::int32_t>(node.result().size());
  const bool is_causal = node.bound().boolean("is_causal");
  for (const std::int32_t dim : node.varying_dims(0)) {
    ResultDim along{.result = 0, .dim = dim, .finite = Keep::kAll};
    const std::int32_t distance = rank - dim;
    if (distance == 1) return refuse_rule("the width of its values varies");
    const auto add = [&](std::size_t operand) {
      const std::int32_t place = from_end(node, operand, distance);
      if (!node.operand_varies(operand, place)) {
        if (!node.broadcasts(operand, place)) rule.refusal = fixed_size_text(operand, dim);
        return;
      }
      along.from.push_back({static_cast<std::int32_t>(operand), place});
    };
    add(operands.query);
    if (distance > 2) {
      add(operands.key);
      add(operands.value);
    }
    if (operands.mask) add(*operands.mask);
    along.repeat = distance == 2 && is_causal ? Keep::kNo : Keep::kAll;
    // Keys that are masked have no weight.
    if (operands.mask) {
      along.overwritten =
          Place{static_cast<std::int32_t>(*operands.mask), from_end(node, *operands.mask, 1)};
    }
    rule.results.push_back(std::move(along));
  }
  if (!rule.refusal.empty()) return rule;
  need_no_tail_of_keys(rule, node, operands);
  // The masked keys are explained although another need stands for them.
  if (operands.mask && node.rank(*operands.mask) >= 1) {
    rule.consumed.push_back(
        {static_cast<std::int32_t>(*operands.mask), from_end(node, *operands.mask, 1)});
  }
  if (node.node().outputs.size() > 1 &&
      !node.graph().tensor(node.node().outputs[1]).consumers.empty()) {
    return refuse_rule("its second result has no padding rule");
  }
  return rule;
}

}  // namespace npu::padding
