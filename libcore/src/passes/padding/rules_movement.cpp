// SPDX-License-Identifier: Apache-2.0
// Rules of ops that move elements: views, permutations, slices, concatenations, rows by index.
//
// What varies must stay a run of rows from the front: the first of the dimensions that a view joins
// or splits, the last part of a concatenation, a slice that begins where all sizes begin. What is
// behind others is read at places that are computed of the sizes (rows/move_rows.cpp).
// O(rank + operands) for a node.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "ops/op_name.hpp"
#include "passes/padding/row_rules.hpp"
#include "passes/padding/rule_parts.hpp"

namespace npu::padding {
namespace {

SizeExpression product_of(const SizeShape& shape, std::size_t begin, std::size_t end) {
  SizeExpression product(1);
  for (std::size_t d = begin; d < end; ++d) product = product * shape[d];
  return product;
}

// Runs of dimensions with equal products, each as short as can be. Where they are equal at the
// capacities alone, the run goes on.
std::vector<ViewGroup> view_groups(const PaddedNode& node) {
  const Shape& from = node.operand_info(0).shape;
  const Shape& to = node.graph().tensor(node.node().outputs[0]).shape;
  std::vector<ViewGroup> groups;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < from.size() || j < to.size()) {
    ViewGroup group{i, i, j, j};
    std::int64_t left = 1;
    std::int64_t right = 1;
    if (i < from.size()) left = from[i++];
    if (j < to.size()) right = to[j++];
    const auto is_whole = [&] {
      return left == right && node.same(product_of(node.operand(0), group.from_begin, i),
                                        product_of(node.result(), group.to_begin, j));
    };
    while (!is_whole()) {
      if (left <= right && i < from.size()) {
        left *= from[i++];
      } else if (right <= left && j < to.size()) {
        right *= to[j++];
      } else {
        return {};
      }
    }
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

/// The dimension that varies in [begin, end), with only 1 in front of it; -1 if there is none, -2
/// if it lies behind others or several vary.
std::int32_t leading_dim(const SizeShape& shape, std::size_t begin, std::size_t end) {
  std::int32_t found = -1;
  bool is_first = true;
  for (std::size_t d = begin; d < end; ++d) {
    if (!shape[d].is_constant()) {
      if (found != -1 || !is_first) return -2;
      found = static_cast<std::int32_t>(d);
    }
    if (shape[d].constant() != 1) is_first = false;
  }
  return found;
}

bool has_one_dim(const SizeShape& shape, std::size_t begin, std::size_t end) {
  return std::count_if(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                       shape.begin() + static_cast<std::ptrdiff_t>(end),
                       [](const SizeExpression& s) { return s.constant() != 1; }) <= 1;
}

}  // namespace

namespace {

// Channels become rows and columns, or the other way: a row of the one is some rows of the other.
NodeRule shuffle_rule(const PaddedNode& node) {
  const bool is_up = functional_name(node.node().op_type) == "pixel_shuffle";
  const std::int64_t factor = node.integer_or(is_up ? "upscale_factor" : "downscale_factor", 0);
  const std::int32_t rank = node.rank(0);
  if (factor < 1 || rank < 3) return refuse_rule("its factor is out of range");
  NodeRule rule;
  rule.value = node.value(0);
  for (const std::int32_t d : node.varying_dims(0)) {
    const SizeExpression& from = node.operand(0)[index_of(d)];
    const SizeExpression& to = node.result()[index_of(d)];
    if (d == rank - 3) return refuse_rule("moves the padded size " + quoted_size(from));
    const bool is_moved = d > rank - 3;
    if (is_moved && !node.same(is_up ? from * factor : from, is_up ? to : to * factor)) {
      return refuse_rule("its result has other sizes than its factor says");
    }
    rule.results.push_back(is_moved ? shifted_dim(0, d, {0, d}) : moved_dim(0, d, {0, d}));
    rule.results.back().is_resized = is_moved;
  }
  return rule;
}

}  // namespace

namespace {

/// A dimension that a squeeze takes away where it has one row, and keeps where it has more; -1 if
/// there is none.
std::int32_t dropped_dim(const PaddedNode& node) {
  if (functional_name(node.node().op_type) != "squeeze") return -1;
  const std::int32_t rank = node.rank(0);
  std::vector<std::int32_t> dims;
  if (node.node().op_type.ends_with(".dim")) {
    if (const auto one = node.dimension("dim", rank)) dims.push_back(*one);
  } else {
    dims = node.dimensions("dim", rank);
  }
  const auto may_be_one = [&](std::int32_t d) {
    return node.operand_varies(0, d) && !node.sizes().at_most(2, node.operand(0)[index_of(d)]);
  };
  const auto found = std::ranges::find_if(dims, may_be_one);
  return found == dims.end() ? -1 : *found;
}

// The padding behind the rows of one dimension would come to stand among those of another one.
void move_rows(NodeRule& rule, const PaddedNode& node, const ViewGroup& group) {
  rule.rewriting = Rewriting::kMovedRows;
  rule.moved.push_back(group);
  std::vector<Place> from;
  for (std::size_t d = group.from_begin; d < group.from_end; ++d) {
    const auto dim = static_cast<std::int32_t>(d);
    if (node.operand_varies(0, dim)) from.push_back({0, dim});
  }
  for (std::size_t d = group.to_begin; d < group.to_end; ++d) {
    const auto dim = static_cast<std::int32_t>(d);
    if (!node.result_varies(0, dim)) continue;
    rule.results.push_back(
        {.result = 0, .dim = dim, .from = from, .finite = Keep::kAll, .is_resized = true});
  }
}

}  // namespace

NodeRule reshape_rule(const PaddedNode& node) {
  if (functional_name(node.node().op_type).starts_with("pixel_")) return shuffle_rule(node);
  if (const std::int32_t dim = dropped_dim(node); dim >= 0) {
    return refuse_rule("it drops the padded size " + quoted_size(node.operand(0)[index_of(dim)]) +
                       " where that is 1");
  }
  NodeRule rule;
  rule.value = node.value(0);
  const SizeShape& from = node.operand(0);
  const SizeShape& to = node.result();
  const Shape& from_shape = node.operand_info(0).shape;
  // With 0 elements every grouping is as good, and none says anything.
  if (std::find(from_shape.begin(), from_shape.end(), 0) != from_shape.end()) {
    return refuse_rule("it has no elements");
  }
  const std::vector<ViewGroup> groups = view_groups(node);
  if (groups.empty() && !from_shape.empty()) {
    return refuse_rule("its result has another number of elements, or not at all sizes");
  }
  for (const ViewGroup& group : groups) {
    const std::int32_t source = leading_dim(from, group.from_begin, group.from_end);
    const std::int32_t target = leading_dim(to, group.to_begin, group.to_end);
    if (source == -1 && target == -1) continue;
    if (source < 0 || target < 0) {
      move_rows(rule, node, group);
      continue;
    }
    const Place place{0, source};
    const bool is_same = has_one_dim(from, group.from_begin, group.from_end) &&
                         has_one_dim(to, group.to_begin, group.to_end);
    rule.results.push_back(is_same ? moved_dim(0, target, place) : shifted_dim(0, target, place));
    rule.results.back().is_resized = !is_same;
  }
  // Groups that are 1 at the capacities hide nothing: a size that varies is at least 2 there.
  return rule;
}

NodeRule permute_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const std::int32_t rank = node.rank(0);
  std::vector<std::int32_t> order(index_of(rank));
  std::iota(order.begin(), order.end(), 0);
  if (name == "permute") {
    order = node.dimensions("dims", rank);
  } else if (name == "transpose" || name == "swapaxes") {
    const auto a = node.dimension(name == "transpose" ? "dim0" : "axis0", rank);
    const auto b = node.dimension(name == "transpose" ? "dim1" : "axis1", rank);
    if (!a || !b) return refuse_rule("its dimensions are out of range");
    std::swap(order[index_of(*a)], order[index_of(*b)]);
  } else if (name == "t" || name == "numpy_T") {
    std::reverse(order.begin(), order.end());
  } else if (name == "movedim") {
    const std::vector<std::int32_t> source = node.dimensions("source", rank);
    const std::vector<std::int32_t> target = node.dimensions("destination", rank);
    if (source.size() != target.size() || source.size() > order.size()) {
      return refuse_rule("its dimensions are out of range");
    }
    std::vector<std::int32_t> rest;
    for (const std::int32_t d : order) {
      if (std::find(source.begin(), source.end(), d) == source.end()) rest.push_back(d);
    }
    std::fill(order.begin(), order.end(), -1);
    for (std::size_t i = 0; i < source.size(); ++i) order[index_of(target[i])] = source[i];
    std::size_t next = 0;
    for (std::int32_t& d : order) {
      if (d < 0 && next < rest.size()) d = rest[next++];
    }
  }
  NodeRule rule;
  rule.value = node.value(0);
  if (static_cast<std::int32_t>(order.size()) != rank || node.result().size() != index_of(rank)) {
    return refuse_rule("its dimensions are out of range");
  }
  for (const std::int32_t d : node.varying_dims(0)) {
    const Place from{0, order[index_of(d)]};
    rule.results.push_back(moved_dim(0, d, from));
  }
  return rule;
}

namespace {

// Each result has the elements of one operand along its dimension, and repeats them along others.
NodeRule mesh_rule(const PaddedNode& node) {
  const bool swaps = node.bound().find("indexing") != nullptr && node.operands() > 1 &&
                     node.bound().string("indexing") == "xy";
  NodeRule rule;
  rule.value = least_value(node);
  for (std::size_t r = 0; r < node.node().outputs.size(); ++r) {
    for (const std::int32_t d : node.varying_dims(r)) {
      const std::int32_t own = swaps && d < 2 ? 1 - d : d;
      if (index_of(own) >= node.operands() || !node.operand_varies(index_of(own), 0)) {
        return refuse_rule("its results have other sizes than its operands");
      }
      const auto result = static_cast<std::int32_t>(r);
      if (own == result) {
        rule.results.push_back(moved_dim(result, d, {own, 0}));
      } else {
        rule.results.push_back(
            {.result = result, .dim = d, .repeat = Keep::kYes, .finite = Keep::kAll});
      }
    }
  }
  return rule;
}

}  // namespace

NodeRule expand_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "meshgrid") return mesh_rule(node);
  const bool repeats = name == "repeat" || name == "tile";
  NodeRule rule;
  rule.value = node.value(0);
  const auto rank = static_cast<std::int32_t>(node.result().size());
  for (const std::int32_t d : node.varying_dims(0)) {
    const std::int32_t from = d - (rank - node.rank(0));
    if (node.operand_varies(0, from)) {
      if (!node.same(node.operand(0)[index_of(from)], node.result()[index_of(d)])) {
        return refuse_rule("repeats rows of the padded size " +
                           quoted_size(node.operand(0)[index_of(from)]));
      }
      rule.results.push_back(moved_dim(0, d, {0, from}));
      continue;
    }
    const bool is_one = from < 0 || node.operand(0)[index_of(from)].constant() == 1;
    if (!is_one && !repeats) return refuse_rule("expands rows a number of times that varies");
    // Of several rows the last one is that of the last time, and so are the times behind it.
    rule.results.push_back(
        {.result = 0, .dim = d, .repeat = is_one ? Keep::kYes : Keep::kNo, .finite = Keep::kAll});
  }
  // The shape of expand_as's second operand is all that counts of it.
  for (std::size_t i = 1; i < node.operands(); ++i) {
    for (std::int32_t d = 0; d < node.rank(i); ++d) {
      if (node.operand_varies(i, d)) rule.consumed.push_back({static_cast<std::int32_t>(i), d});
    }
  }
  return rule;
}

namespace {

constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

// Rows that are counted from the end of the valid ones, which the padding hides.
void take_from_end(NodeRule& rule, const PaddedNode& node, std::int32_t dim, std::int64_t before,
                   std::int64_t count) {
  const SizeExpression& size = node.operand(0)[index_of(dim)];
  if (!node.sizes().at_most(SizeExpression(before), size)) {
    rule.refusal = std::to_string(before) + " rows from the end are more than the padded size " +
                   quoted_size(size) + " has at its least";
    return;
  }
  rule.rewriting = Rewriting::kRowsFromEnd;
  rule.from_end = {dim, before, count};
}

// One index of a dimension, which is gone behind it or has size 1.
void select_row(NodeRule& rule, const PaddedNode& node, Place place, std::int64_t index) {
  rule.consumed.push_back(place);
  const SizeExpression& size = node.operand(0)[index_of(place.dim)];
  if (index == -1) {
    // With rows that repeat the last one the last of all is that one.
    rule.needs.push_back(need_at(place, {kRepeats}, Fill::kEdge));
    rule.rewriting = Rewriting::kLastRow;
    return;
  }
  if (index < 0) {
    take_from_end(rule, node, place.dim, -index, 1);
  } else if (!node.sizes().at_most(SizeExpression(index) + 1, size)) {
    rule.refusal = "index " + std::to_string(index) + " is behind the end of the padded size " +
                   quoted_size(size) + " at its least";
  }
}

struct SliceBounds {
  std::int64_t start = 0;
  std::int64_t end = kNoEnd;
  std::int64_t step = 1;
};

void slice_padded(NodeRule& rule, const PaddedNode& node, std::int32_t dim,
                  const SliceBounds& bounds) {
  const Place place{0, dim};
  const SizeExpression& size = node.operand(0)[index_of(dim)];
  const SizeExpression& result = node.result()[index_of(dim)];
  if (bounds.start == -1 && bounds.end >= node.operand_info(0).shape[index_of(dim)] &&
      result.constant() == 1) {
    return select_row(rule, node, place, -1);
  }
  const std::int64_t left_out = bounds.end < 0 ? bounds.end : 0;
  if (bounds.start < 0 && bounds.step == 1 && result.constant() == left_out - bounds.start &&
      (bounds.end < 0 || bounds.end >= node.operand_info(0).shape[index_of(dim)])) {
    rule.consumed.push_back(place);
    return take_from_end(rule, node, dim, -bounds.start, *result.constant());
  }
  if (bounds.start < 0) {
    rule.refusal = "start " + std::to_string(bounds.start) +
                   " counts from the end of the padded size " + quoted_size(size);
    return;
  }
  if (result.is_constant()) {
    const std::int64_t last =
        bounds.start + (*result.constant() - 1) * bounds.step;  // of at least one row
    if (*result.constant() > 0 && !node.sizes().at_most(SizeExpression(last) + 1, size)) {
      rule.refusal = "rows up to " + std::to_string(last) +
                     " are behind the end of the padded size " + quoted_size(size) +
                     " at its least";
    }
    if (bounds.end < 0) {
      rule.refusal = "end " + std::to_string(bounds.end) +
                     " counts from the end of the padded size " + quoted_size(size);
    }
    rule.consumed.push_back(place);
    return;
  }
  // As many rows as the slice has for each size: to the end, or to a row that is counted from it.
  const SizeExpression rows = (size - bounds.start + (bounds.step - 1)).floor_divide(bounds.step);
  const bool is_whole = node.same(rows, result);
  if (!is_whole && !node.sizes().at_most(result, rows)) {
    rule.refusal = "its result has more rows than the padded size " + quoted_size(size) + " gives";
    return;
  }
  rule.results.push_back(is_whole && bounds.step == 1 ? moved_dim(0, dim, place)
                                                      : shifted_dim(0, dim, place));
  rule.results.back().is_resized = true;
  if (!is_whole) {
    // Valid rows of the operand stand first behind those of the result.
    rule.results.back().zero = Keep::kNo;
    rule.results.back().lowest = Keep::kNo;
  }
}

}  // namespace

NodeRule slice_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const std::int32_t rank = node.rank(0);
  const auto dim = node.dimension("dim", rank);
  if (!dim) return refuse_rule("its dim is out of range");
  NodeRule rule;
  rule.value = node.value(0);
  const bool is_select = name == "select";
  add_rowwise(
      rule, node, 0, 0,
      [&](std::int32_t d) {
        if (d == *dim) return -1;
        return is_select && d > *dim ? d - 1 : d;
      },
      Keep::kAll, Keep::kAll);
  for (ResultDim& along : rule.results) along.lowest = Keep::kAll;
  if (is_select) {
    if (node.operand_varies(0, *dim)) {
      select_row(rule, node, {0, *dim}, node.bound().integer("index"));
    }
    return rule;
  }
  SliceBounds bounds;
  bounds.start = node.integer_or("start", 0);
  bounds.step = node.integer_or("step", 1);
  bounds.end = node.integer_or("end", kNoEnd);
  if (name == "narrow") {
    const std::int64_t length = node.integer_or("length", 0);
    if (bounds.start < 0 || length < 0) return refuse_rule("its start or length is negative");
    bounds.end = bounds.start > kNoEnd - length ? kNoEnd : bounds.start + length;
  }
  const std::int64_t capacity = node.operand_info(0).shape[index_of(*dim)];
  if (bounds.step < 1 || bounds.step > (1 << 30)) return refuse_rule("its step is out of range");
  if (bounds.start > capacity || bounds.start < -capacity) {
    return refuse_rule("its start is out of range");
  }
  if (node.operand_varies(0, *dim)) {
    slice_padded(rule, node, *dim, bounds);
    return rule;
  }
  if (!node.result_varies(0, *dim)) return rule;
  // The first rows of what does not vary, such as a table: the others are further rows of it.
  if (bounds.start < 0) return refuse_rule("its start counts from the end");
  rule.results.push_back({.result = 0,
                          .dim = *dim,
                          .finite = node.value(0) == ValueClass::kFinite ? Keep::kAll : Keep::kNo});
  return rule;
}

NodeRule split_rule(const PaddedNode& node) {
  NodeRule rule;
  if (node.node().op_type == kGetitem) {
    const std::int64_t index = node.integer_or("index", -1);
    if (index < 0 || index >= static_cast<std::int64_t>(node.operands())) {
      return refuse_rule("its index is out of range");
    }
    const auto chosen = index_of(index);
    rule.value = node.value(chosen);
    for (const std::int32_t d : node.varying_dims(0)) {
      rule.results.push_back(moved_dim(0, d, {static_cast<std::int32_t>(chosen), d}));
    }
    for (std::size_t i = 0; i < node.operands(); ++i) {
      for (std::int32_t d = 0; d < node.rank(i); ++d) {
        if (i != chosen && node.operand_varies(i, d)) {
          rule.consumed.push_back({static_cast<std::int32_t>(i), d});
        }
      }
    }
    return rule;
  }
  rule.value = node.value(0);
  const auto dim = node.dimension("dim", node.rank(0));
  if (!dim) return refuse_rule("its dim is out of range");
  if (node.operand_varies(0, *dim)) {
    return refuse_rule("splits the padded size " + quoted_size(node.operand(0)[index_of(*dim)]));
  }
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "glu") {  // one half, by what the other half says
    add_rowwise(
        rule, node, 0, 0, [](std::int32_t d) { return d; }, Keep::kAll, Keep::kAll);
    return rule;
  }
  const bool drops = name == "unbind";
  for (std::size_t r = 0; r < node.node().outputs.size(); ++r) {
    add_rowwise(
        rule, node, 0, static_cast<std::int32_t>(r),
        [&](std::int32_t d) { return drops && d > *dim ? d - 1 : d; }, Keep::kAll, Keep::kAll);
  }
  for (ResultDim& along : rule.results) along.lowest = Keep::kAll;
  return rule;
}

NodeRule concatenate_rule(const PaddedNode& node) {
  const bool is_stack = functional_name(node.node().op_type) == "stack";
  const auto rank = static_cast<std::int32_t>(node.result().size());
  const auto dim = node.dimension("dim", rank);
  if (!dim) return refuse_rule("its dim is out of range");
  NodeRule rule;
  rule.value = least_value(node);
  SizeExpression before(0);
  const auto last = static_cast<std::int32_t>(node.operands()) - 1;
  for (const std::int32_t d : node.varying_dims(0)) {
    if (d == *dim) continue;
    const std::int32_t place = is_stack && d > *dim ? d - 1 : d;
    ResultDim along = moved_dim(0, d, {0, place});
    along.from.clear();
    along.value_operands = last + 1;
    for (std::int32_t i = 0; i <= last; ++i) {
      if (!node.operand_varies(index_of(i), place)) {
        return refuse_rule(fixed_size_text(index_of(i), d));
      }
      along.from.push_back({i, place});
    }
    along.values = along.from;
    rule.results.push_back(std::move(along));
  }
  if (is_stack || !node.result_varies(0, *dim)) return rule;
  std::vector<Place> from;
  for (std::int32_t i = 0; i <= last; ++i) {
    if (node.operand_varies(index_of(i), *dim)) from.push_back({i, *dim});
    before = before + node.operand(index_of(i))[index_of(*dim)];
  }
  if (!node.same(before, node.result()[index_of(*dim)])) {
    return refuse_rule("its operands have other sizes than its result");
  }
  if (from == std::vector<Place>{{last, *dim}}) {
    rule.results.push_back(moved_dim(0, *dim, from.front()));
    rule.results.back().is_resized = true;
    return rule;
  }
  rule.rewriting = Rewriting::kConcatenated;
  rule.results.push_back({.result = 0,
                          .dim = *dim,
                          .from = std::move(from),
                          .finite = Keep::kAll,
                          .is_resized = true});
  return rule;
}

NodeRule pad_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const std::int32_t rank = node.rank(0);
  const std::vector<std::int64_t> amounts =
      node.bound().integers(node.bound().find("pad") != nullptr ? "pad" : "padding");
  std::string mode = "constant";
  if (name.starts_with("reflection")) mode = "reflect";
  if (name.starts_with("replication")) mode = "replicate";
  if (name == "pad") mode = node.bound().string("mode");
  const double value = mode == "constant" ? node.number_or("value", 0) : 0;
  NodeRule rule;
  rule.value = node.value(0);
  for (std::int32_t d = 0; d < rank; ++d) {
    if (!node.operand_varies(0, d)) continue;
    const auto pair = index_of(rank - 1 - d) * 2;
    const std::int64_t before = pair + 1 < amounts.size() ? amounts[pair] : 0;
    const std::int64_t after = pair + 1 < amounts.size() ? amounts[pair + 1] : 0;
    const SizeExpression& size = node.operand(0)[index_of(d)];
    if (!node.result_varies(0, d)) {
      // Rows of a fixed number: what a run without padding puts behind the valid ones.
      if (before != 0 || after < 0 || mode != "constant" || value != 0) {
        return refuse_rule(fixed_size_text(0, d));
      }
      rule.needs.push_back(need_at({0, d}, {kZeros}, Fill::kZero));
      rule.consumed.push_back({0, d});
      continue;
    }
    if (std::abs(before) > (1 << 30) || std::abs(after) > (1 << 30) ||
        !node.same(size + (before + after), node.result()[index_of(d)])) {
      return refuse_rule("its result has other sizes than its operand and its padding give");
    }
    const Place place{0, d};
    ResultDim along = after < 0 ? shifted_dim(0, d, place) : moved_dim(0, d, place);
    if (after < 0) along.zero = along.lowest = Keep::kNo;
    if (after > 0) {
      // Behind the valid rows stands what the op puts there in a run without padding.
      if (mode == "constant" && value == 0) {
        rule.needs.push_back(need_at(place, {kZeros}, Fill::kZero));
      } else if (mode == "constant" && value < 0 && std::isinf(value)) {
        rule.needs.push_back(need_at(place, {kLowests}, Fill::kLowest));
      } else if (mode == "replicate") {
        rule.needs.push_back(need_at(place, {kRepeats}, Fill::kEdge));
      } else if (mode == "reflect" && before >= 0) {
        rule.rewriting = Rewriting::kReflected;
        along.repeat = along.zero = along.lowest = Keep::kNo;
      } else {
        return refuse_rule("pads behind the padded size " + quoted_size(size) + " in mode '" +
                           mode + "', whose rows depend on it");
      }
    }
    if (mode == "reflect" &&
        !node.sizes().at_most(SizeExpression(std::max(before, after)) + 1, size)) {
      return refuse_rule("reflects more rows than the padded size " + quoted_size(size) +
                         " has at its least; narrow the range of its size: --bind NAME=MIN..MAX");
    }
    along.is_resized = true;
    if (mode == "circular") return refuse_rule("pads with rows from the other end");
    rule.results.push_back(std::move(along));
  }
  // Rows of other dimensions hold what is put in, too.
  if (mode == "constant" && value != 0) {
    for (ResultDim& along : rule.results) {
      along.zero = Keep::kNo;
      if (!std::isfinite(value)) along.finite = Keep::kNo;
    }
  }
  if (mode == "constant" && !(value < 0 && std::isinf(value))) {
    for (ResultDim& along : rule.results) along.lowest = Keep::kNo;
  }
  return rule;
}

}  // namespace npu::padding
