// SPDX-License-Identifier: Apache-2.0
// Rules of ops that read rows by index, and of those that write rows by index.
//
// An index behind the valid ones must be one that a valid row has, or 0, so that it is in range:
// then the same row is read again, or the same value written again. Indices that no input decides
// are those of a run at the capacity, where they must be in range anyway. Indices into a padded
// dimension name its valid rows, from the front (index_guard.hpp), where the op takes others at
// all. O(operands x rank) for a node.
#include <algorithm>
#include <string>
#include <vector>

#include "ops/op_name.hpp"
#include "passes/padding/index_guard.hpp"
#include "passes/padding/row_rules.hpp"
#include "passes/padding/rule_parts.hpp"

namespace npu::padding {
namespace {

void need_indices(NodeRule& rule, const PaddedNode& node, std::size_t operand) {
  if (node.is_constant(operand)) return;
  for (std::int32_t d = 0; d < node.rank(operand); ++d) {
    if (!node.operand_varies(operand, d)) continue;
    rule.needs.push_back(
        need_at({static_cast<std::int32_t>(operand), d}, {kRepeats, kZeros}, Fill::kEdge));
  }
}

void need_from_front(NodeRule& rule, const PaddedNode& node, std::size_t operand,
                     const SizeExpression& size) {
  const TensorId index = node.node().inputs[operand];
  if (is_valid_row(node.graph(), node.sizes(), node.shapes(), index, size)) return;
  rule.rewriting = Rewriting::kIndices;
  rule.unguarded.emplace_back(static_cast<std::int32_t>(operand), size);
}

/// A result dimension whose rows are chosen by indices.
ResultDim chosen_dim(std::int32_t dim, std::vector<Place> from) {
  return {
      .result = 0, .dim = dim, .from = std::move(from), .repeat = Keep::kAll, .finite = Keep::kAll};
}

NodeRule one_index_rule(const PaddedNode& node, std::size_t table, std::size_t index,
                        std::int32_t dim) {
  NodeRule rule;
  rule.value = node.value(table);
  need_indices(rule, node, index);
  const std::int32_t rank = node.rank(index);
  for (std::int32_t d = 0; d < rank; ++d) {
    if (!node.operand_varies(index, d)) continue;
    rule.results.push_back(chosen_dim(dim + d, {{static_cast<std::int32_t>(index), d}}));
  }
  const auto first = rule.results.size();
  add_rowwise(
      rule, node, table, 0,
      [&](std::int32_t d) {
        if (d == dim) return -1;
        return d < dim ? d : d - 1 + rank;
      },
      Keep::kAll, Keep::kAll);
  for (std::size_t i = first; i < rule.results.size(); ++i) rule.results[i].lowest = Keep::kAll;
  if (node.operand_varies(table, dim)) {
    rule.consumed.push_back({static_cast<std::int32_t>(table), dim});
  }
  return rule;
}

// torch.gather: a result has the shape of the index.
NodeRule gathered_rule(const PaddedNode& node, std::size_t index, std::int32_t dim) {
  NodeRule rule;
  if (node.rank(index) != node.rank(0)) {
    return refuse_rule("there is no padding rule for this form of indexing");
  }
  rule.value = node.value(0);
  need_indices(rule, node, index);
  for (std::int32_t d = 0; d < node.rank(index); ++d) {
    const Place place{static_cast<std::int32_t>(index), d};
    const Place row{0, d};
    const bool has_row = node.operand_varies(0, d);
    if (!node.operand_varies(index, d)) {
      if (!has_row) continue;
      rule.consumed.push_back(row);
      if (d != dim &&
          !node.sizes().at_most(node.operand(index)[index_of(d)], node.operand(0)[index_of(d)])) {
        return refuse_rule("it reads rows behind the end of the padded size " +
                           quoted_size(node.operand(0)[index_of(d)]) + " at its least");
      }
      continue;
    }
    ResultDim along = chosen_dim(d, {place});
    if (d == dim) {
      if (has_row) rule.consumed.push_back(row);
    } else if (has_row) {
      along.from.push_back(row);
    } else {
      along.repeat = Keep::kNo;
    }
    rule.results.push_back(std::move(along));
  }
  return rule;
}

// aten.index with one run of index tensors; their dimensions stand where the run stood.
NodeRule advanced_rule(const PaddedNode& node) {
  const std::vector<std::int32_t> list = node.arguments("indices");
  std::vector<std::size_t> indices;
  std::int32_t first = -1;
  std::int32_t last = -1;
  std::int32_t width = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0) continue;
    if (first < 0) first = static_cast<std::int32_t>(i);
    last = static_cast<std::int32_t>(i);
    indices.push_back(index_of(list[i]));
    width = std::max(width, node.rank(indices.back()));
    if (node.operand_info(indices.back()).dtype == DType::kBool) {
      return refuse_rule("a mask as index gives a number of rows that depends on data");
    }
  }
  if (first < 0 || last - first + 1 != static_cast<std::int32_t>(indices.size())) {
    return refuse_rule("there is no padding rule for this form of indexing");
  }
  NodeRule rule;
  rule.value = node.value(0);
  for (const std::size_t index : indices) need_indices(rule, node, index);
  for (std::int32_t d = 0; d < width; ++d) {
    std::vector<Place> from;
    for (const std::size_t index : indices) {
      const std::int32_t place = d - (width - node.rank(index));
      if (node.operand_varies(index, place)) {
        from.push_back({static_cast<std::int32_t>(index), place});
      }
    }
    if (!from.empty()) rule.results.push_back(chosen_dim(first + d, std::move(from)));
  }
  const std::int32_t removed = last - first + 1;
  const auto before = rule.results.size();
  add_rowwise(
      rule, node, 0, 0,
      [&](std::int32_t d) {
        if (d >= first && d <= last) return -1;
        return d < first ? d : d - removed + width;
      },
      Keep::kAll, Keep::kAll);
  for (std::size_t i = before; i < rule.results.size(); ++i) rule.results[i].lowest = Keep::kAll;
  for (std::int32_t d = first; d <= last; ++d) {
    if (!node.operand_varies(0, d)) continue;
    rule.consumed.push_back({0, d});
    need_from_front(rule, node, index_of(list[index_of(d)]), node.operand(0)[index_of(d)]);
  }
  return rule;
}

// A row for each position, of as many keys as a cache has.
NodeRule length_mask_rule(const PaddedNode& node) {
  NodeRule rule;
  const auto positions = node.argument("positions");
  if (!positions || !node.operand_varies(*positions, 0)) return rule;
  ResultDim along = moved_dim(0, 2, {static_cast<std::int32_t>(*positions), 0});
  along.zero = along.lowest = Keep::kNo;
  along.finite = Keep::kYes;
  rule.results.push_back(std::move(along));
  return rule;
}

}  // namespace

NodeRule gather_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "embedding") {
    return one_index_rule(node, node.argument("weight").value_or(0),
                          node.argument("indices").value_or(1), 0);
  }
  if (name == "index") return advanced_rule(node);
  if (node.node().op_type == "npu.length_mask") return length_mask_rule(node);
  if (name == "one_hot") {
    NodeRule rule;
    if (node.integer_or("num_classes", -1) < 1) {
      return refuse_rule("without num_classes its width depends on data");
    }
    need_indices(rule, node, 0);
    add_rowwise(
        rule, node, 0, 0, [](std::int32_t d) { return d; }, Keep::kNo, Keep::kAll);
    return rule;
  }
  const auto dim = node.dimension("dim", node.rank(0));
  const auto index = node.argument(name == "take_along_dim" ? "indices" : "index");
  if (!dim || !index) return refuse_rule("there is no padding rule for this form of indexing");
  if (name == "index_select") return one_index_rule(node, 0, *index, *dim);
  return gathered_rule(node, *index, *dim);
}

namespace {

// Rows that are written again, or added to: `adds` says which.
void need_written_rows(NodeRule& rule, const PaddedNode& node, std::size_t index,
                       std::int32_t index_dim, std::optional<std::size_t> source, std::int32_t dim,
                       bool adds) {
  if (!node.operand_varies(index, index_dim)) return;
  const Place place{static_cast<std::int32_t>(index), index_dim};
  rule.needs.push_back(adds ? need_at(place, {kRepeats, kZeros}, Fill::kEdge)
                            : need_at(place, {kRepeats}, Fill::kEdge));
  if (!source || !node.operand_varies(*source, dim)) return;
  rule.needs.push_back(need_at({static_cast<std::int32_t>(*source), dim},
                               {adds ? kZeros : kRepeats}, adds ? Fill::kZero : Fill::kEdge));
}

// index_put with one index of one dimension: rows along it are written.
NodeRule put_rule(const PaddedNode& node) {
  const auto refusal = [] {
    return refuse_rule("there is no padding rule for this form of writing rows");
  };
  const std::vector<std::int32_t> list = node.arguments("indices");
  const auto values = node.argument("values");
  std::int32_t dim = -1;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0) continue;
    if (dim >= 0) return refusal();
    dim = static_cast<std::int32_t>(i);
  }
  if (dim < 0 || !values || node.rank(index_of(list[index_of(dim)])) != 1 ||
      node.operand_info(index_of(list[index_of(dim)])).dtype == DType::kBool) {
    return refusal();
  }
  NodeRule rule;
  rule.value = least_value(node);
  const std::size_t index = index_of(list[index_of(dim)]);
  const std::int32_t behind = node.rank(0) - node.rank(*values);  // broadcast from the last one on
  const bool adds = node.bound().boolean("accumulate");
  if (adds && node.operand_varies(index, 0) && !node.operand_varies(*values, dim - behind)) {
    return refuse_rule("it adds the same row a number of times that varies");
  }
  need_written_rows(rule, node, index, 0, values, dim - behind, adds);
  if (node.operand_varies(0, dim)) {
    need_from_front(rule, node, index, node.operand(0)[index_of(dim)]);
  }
  for (const std::int32_t d : node.varying_dims(0)) {
    if (!node.operand_varies(0, d)) {
      return refuse_rule("its result has other sizes than its operand");
    }
    ResultDim along = moved_dim(0, d, {0, d});
    if (d == dim) {
      along.repeat = Keep::kNo;
    } else if (node.operand_varies(*values, d - behind)) {
      along.from.push_back({static_cast<std::int32_t>(*values), d - behind});
      along.values.push_back(along.from.back());
      along.value_operands = 2;
    } else {
      along.zero = along.lowest = Keep::kNo;
    }
    rule.results.push_back(std::move(along));
  }
  return rule;
}

}  // namespace

NodeRule scatter_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "index_put") return put_rule(node);
  const auto dim = node.dimension("dim", node.rank(0));
  const auto index = node.argument("index");
  const auto source = node.argument(name.starts_with("index") ? "source" : "src");
  const bool is_slice = name == "slice_scatter" || name == "select_scatter";
  const std::string reduce = name == "scatter_reduce" ? node.bound().string("reduce") : "";
  const bool adds = name == "index_add" || name == "scatter_add" || reduce == "sum";
  const bool is_rows = name == "index_copy" || name == "index_add";
  if (!dim || (!index && !is_slice) || name == "masked_scatter") {
    return refuse_rule("there is no padding rule for this form of writing rows");
  }
  if (reduce == "mean" || reduce == "prod") {
    return refuse_rule("a " + reduce + " counts the rows of the padding, too");
  }
  NodeRule rule;
  rule.value = least_value(node);
  if (index) {
    const std::int32_t rows = is_rows ? 0 : *dim;
    if (source && node.operand_varies(*index, rows) && !node.operand_varies(*source, *dim)) {
      return refuse_rule("its source has rows for the padding, too");
    }
    need_written_rows(rule, node, *index, rows, source, *dim, adds);
  } else if (source && node.operand_varies(0, *dim)) {
    return refuse_rule("it writes to places along the padded size " +
                       quoted_size(node.operand(0)[index_of(*dim)]));
  }
  for (const std::int32_t d : node.varying_dims(0)) {
    ResultDim along = moved_dim(0, d, {0, d});
    along.value_operands = source ? 2 : 1;
    if (d == *dim) {
      along.repeat = Keep::kNo;
      along.value_operands = 1;
    } else {
      const std::int32_t behind = name == "select_scatter" && d > *dim ? d - 1 : d;
      for (const auto& operand : {source, is_rows ? std::nullopt : index}) {
        if (!operand) continue;
        if (!node.operand_varies(*operand, behind)) {
          return refuse_rule("what it writes has other sizes than its operand");
        }
        along.from.push_back({static_cast<std::int32_t>(*operand), behind});
      }
      if (source) along.values.push_back({static_cast<std::int32_t>(*source), behind});
      if (!source) along.zero = along.lowest = Keep::kNo;
    }
    if (!node.operand_varies(0, d)) {
      return refuse_rule("its result has other sizes than its operand");
    }
    rule.results.push_back(std::move(along));
  }
  return rule;
}

}  // namespace npu::padding
