// SPDX-License-Identifier: Apache-2.0
// Rules of ops whose results are made of windows of rows: convolutions, pooling, resampling.
//
// Whether a window of a valid result reaches rows behind the valid ones is asked of the sizes as
// expressions: where it never does, nothing is needed. O(spatial dimensions x samples).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/moved_ops.hpp"
#include "ops/op_name.hpp"
#include "passes/padding/row_rules.hpp"
#include "passes/padding/rule_parts.hpp"

namespace npu::padding {
namespace {

/// A window along one dimension.
struct Window {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t before = 0;  ///< rows that are taken to lie in front of the first one
  std::int64_t after = 0;
  std::int64_t dilation = 1;

  std::int64_t span() const { return dilation * (size - 1) + 1; }
  bool is_pointwise() const { return size == 1 && stride == 1 && before == 0 && after == 0; }
};

constexpr std::int64_t kMostWindow = 1 << 20;

bool is_sound(const Window& window) {
  const auto fits = [](std::int64_t value, std::int64_t least) {
    return value >= least && value <= kMostWindow;
  };
  return fits(window.size, 1) && fits(window.stride, 1) && fits(window.before, 0) &&
         fits(window.after, 0) && fits(window.dilation, 1);
}

/// The number of windows.
SizeExpression window_count(const SizeExpression& rows, const Window& window) {
  const SizeExpression free = rows + (window.before + window.after - window.span());
  return free.floor_divide(window.stride) + 1;
}

/// The row behind the last one that a valid window reads.
SizeExpression window_reach(const SizeExpression& results, const Window& window) {
  return (results - 1) * window.stride + (window.span() - window.before);
}

/// Rows of which each window that begins in front of them has one. O(rows in front).
std::int64_t rows_of_window(const Window& window) {
  std::int64_t rows = 1;
  for (std::int64_t begin = -window.before; begin < 0; begin += window.stride) {
    const std::int64_t first = (begin % window.dilation + window.dilation) % window.dilation;
    rows = std::max(rows, first + 1);
  }
  return rows;
}

std::string no_window_text(std::int32_t dim) {
  return "its result has not the size that its windows give along dimension " + std::to_string(dim);
}

std::int64_t element_or(const std::vector<std::int64_t>& list, std::size_t i,
                        std::int64_t otherwise) {
  if (list.empty()) return otherwise;
  return list[std::min(i, list.size() - 1)];
}

/// Windows of a node by spatial dimension; nothing if an argument is not understood.
std::optional<std::vector<Window>> convolution_windows(const PaddedNode& node, std::size_t weight,
                                                       std::size_t spatial) {
  const BoundNode& bound = node.bound();
  const Shape& shape = node.operand_info(weight).shape;
  if (shape.size() != spatial + 2) return std::nullopt;
  const std::vector<std::int64_t> stride = bound.integers("stride");
  const std::vector<std::int64_t> dilation = bound.integers("dilation");
  std::vector<Window> windows;
  const BoundArgument* padding = bound.find("padding");
  const bool is_text = padding != nullptr && padding->value.is_string();
  const std::string text = is_text ? bound.string("padding") : std::string();
  if (is_text && text != "same" && text != "valid") return std::nullopt;
  const std::vector<std::int64_t> rows =
      is_text ? std::vector<std::int64_t>{0} : bound.integers("padding");
  for (std::size_t i = 0; i < spatial; ++i) {
    Window window{.size = shape[i + 2],
                  .stride = element_or(stride, i, 1),
                  .before = element_or(rows, i, 0),
                  .after = element_or(rows, i, 0),
                  .dilation = element_or(dilation, i, 1)};
    if (!is_sound(window)) return std::nullopt;
    if (text == "same") {
      const std::int64_t total = window.span() - 1;
      window.before = total / 2;
      window.after = total - window.before;
    }
    windows.push_back(window);
  }
  return windows;
}

bool is_transposed(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  if (name.starts_with("conv_transpose")) return true;
  return node.bound().find("transposed") != nullptr && node.bound().boolean("transposed");
}

/// One spatial dimension of a transposed convolution; false if its result has another size.
bool add_transposed_dim(NodeRule& rule, const PaddedNode& node, std::int32_t dim,
                        const Window& window, std::int64_t extra) {
  const SizeExpression& rows = node.operand(0)[index_of(dim)];
  const SizeExpression& results = node.result()[index_of(dim)];
  const SizeExpression first = rows * window.stride - window.before;  // that a tail row adds to
  const SizeExpression count = first + (window.span() - window.stride - window.after + extra);
  if (!node.same(count, results)) return false;
  const Place place{0, dim};
  rule.results.push_back(
      {.result = 0, .dim = dim, .from = {place}, .finite = Keep::kAll, .is_resized = true});
  if (!node.sizes().at_most(results, first)) {
    rule.needs.push_back(need_at(place, {kZeros}, Fill::kZero));
  }
  return true;
}

}  // namespace

NodeRule convolution_rule(const PaddedNode& node) {
  const std::size_t input = node.argument("input").value_or(0);
  const auto weight = node.argument("weight");
  const std::int32_t rank = node.rank(input);
  if (input != 0 || !weight || rank < 3 || node.operand_varies(*weight) ||
      static_cast<std::int32_t>(node.result().size()) != rank) {
    return refuse_rule("there is no padding rule for this form of a convolution");
  }
  if (node.operand_varies(0, 1)) return refuse_rule("its channels vary");
  const auto windows = convolution_windows(node, *weight, index_of(rank - 2));
  if (!windows) return refuse_rule("there is no padding rule for this form of a convolution");
  const bool has_bias = node.argument("bias").has_value();
  const Keep zero = has_bias ? Keep::kNo : Keep::kAll;
  NodeRule rule;
  rule.value = node.value(0) == ValueClass::kFinite ? ValueClass::kFinite : ValueClass::kAny;
  add_rowwise(
      rule, node, 0, 0, [](std::int32_t d) { return d == 0 ? 0 : -1; }, zero, Keep::kAll);
  const bool transposed = is_transposed(node);
  for (std::int32_t d = 2; d < rank; ++d) {
    if (!node.operand_varies(0, d)) continue;
    const Window& window = (*windows)[index_of(d - 2)];
    const Place place{0, d};
    if (window.is_pointwise()) {
      ResultDim along = moved_dim(0, d, place);
      along.zero = zero;
      along.lowest = Keep::kNo;
      rule.results.push_back(std::move(along));
      continue;
    }
    if (transposed) {
      const std::vector<std::int64_t> extra = node.bound().integers("output_padding");
      const std::int64_t rows = element_or(extra, index_of(d - 2), 0);
      if (rows < 0 || rows > kMostWindow || !add_transposed_dim(rule, node, d, window, rows)) {
        return refuse_rule(no_window_text(d));
      }
      continue;
    }
    const SizeExpression& rows = node.operand(0)[index_of(d)];
    const SizeExpression& results = node.result()[index_of(d)];
    if (!node.same(window_count(rows, window), results)) return refuse_rule(no_window_text(d));
    rule.results.push_back(
        {.result = 0, .dim = d, .from = {place}, .finite = Keep::kAll, .is_resized = true});
    if (!node.sizes().at_most(window_reach(results, window), rows)) {
      rule.needs.push_back(need_at(place, {kZeros}, Fill::kZero));
    }
  }
  return rule;
}

NodeRule pool_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const bool is_max = name.find("max") != std::string_view::npos;
  const int spatial = spatial_rank(node.node().op_type);
  const std::int32_t rank = node.rank(0);
  if (spatial == 0 || rank < spatial) {
    return refuse_rule("there is no padding rule for this form of pooling");
  }
  const BoundNode& bound = node.bound();
  const std::vector<std::int64_t> size = bound.integers("kernel_size");
  const std::vector<std::int64_t> stride = bound.integers("stride");
  const std::vector<std::int64_t> padding = bound.integers("padding");
  const std::vector<std::int64_t> dilation =
      is_max ? bound.integers("dilation") : std::vector<std::int64_t>{1};
  const bool rounds_up = bound.boolean("ceil_mode");
  const std::int32_t first = rank - spatial;
  NodeRule rule;
  rule.value = node.value(0);
  bool has_windows = false;
  add_rowwise(
      rule, node, 0, 0, [&](std::int32_t d) { return d < first ? d : -1; }, Keep::kAll, Keep::kAll);
  for (std::int32_t d = first; d < rank; ++d) {
    if (!node.operand_varies(0, d)) continue;
    has_windows = true;
    const auto i = index_of(d - first);
    const std::int64_t window_size = element_or(size, i, 1);
    const Window window{.size = window_size,
                        .stride = element_or(stride, i, window_size),
                        .before = element_or(padding, i, 0),
                        .after = element_or(padding, i, 0),
                        .dilation = element_or(dilation, i, 1)};
    if (!is_sound(window)) return refuse_rule("there is no padding rule for this form of pooling");
    if (rounds_up) {
      return refuse_rule(
          "pooling that rounds the number of windows up has windows that depend on " +
          quoted_size(node.operand(0)[index_of(d)]));
    }
    const SizeExpression& rows = node.operand(0)[index_of(d)];
    const SizeExpression& results = node.result()[index_of(d)];
    if (!node.same(window_count(rows, window), results)) return refuse_rule(no_window_text(d));
    const Place place{0, d};
    rule.results.push_back(
        {.result = 0, .dim = d, .from = {place}, .finite = Keep::kAll, .is_resized = true});
    if (node.sizes().at_most(window_reach(results, window), rows)) continue;
    if (is_max) {
      if (const std::int64_t least = rows_of_window(window);
          !node.sizes().at_most(SizeExpression(least), rows)) {
        return refuse_rule("a window has nothing but padding where the padded size " +
                           quoted_size(rows) + " is below " + std::to_string(least) +
                           "; narrow the range of its size: --bind NAME=MIN..MAX");
      }
      std::vector<TailClass> accepted{kLowests};
      if (window.dilation == 1) accepted.push_back(kRepeats);
      rule.needs.push_back(
          need_at(place, std::move(accepted), window.dilation == 1 ? Fill::kEdge : Fill::kLowest));
    } else {
      if (!bound.boolean("count_include_pad")) {
        return refuse_rule("an average pool whose divisor leaves padding out depends on " +
                           quoted_size(rows));
      }
      rule.needs.push_back(need_at(place, {kZeros}, Fill::kZero));
    }
  }
  if (has_windows && node.node().outputs.size() > 1) {
    for (const TensorId id : {node.node().outputs[1]}) {
      const auto& outputs = node.graph().graph_outputs();
      if (!node.graph().tensor(id).consumers.empty() ||
          std::find(outputs.begin(), outputs.end(), id) != outputs.end()) {
        return refuse_rule("an index of pooling depends on the sizes of all dimensions");
      }
    }
    // Nothing reads the indices.
    for (const std::int32_t d : node.varying_dims(1)) {
      rule.results.push_back({.result = 1, .dim = d, .finite = Keep::kYes});
    }
  }
  return rule;
}

namespace {

/// How many times a resampling repeats a row, if that is the same for all sizes; 0 if not.
std::int64_t resampling_factor(const PaddedNode& node, std::int32_t dim) {
  const SizeExpression& rows = node.operand(0)[index_of(dim)];
  const SizeExpression& results = node.result()[index_of(dim)];
  for (std::int64_t factor = 1; factor <= 64; ++factor) {
    if (node.same(rows * factor, results)) return factor;
  }
  return 0;
}

// The factors that a node states are those of the sizes.
bool states_factor(const PaddedNode& node, std::size_t spatial, std::size_t i,
                   std::int64_t factor) {
  std::optional<double> stated;
  constexpr std::string_view kNames[] = {"scales", "scales_d", "scales_h", "scales_w"};
  if (const BoundArgument* list = node.bound().find("scale_factors");
      list != nullptr && list->value.is_array() && i < list->value.size()) {
    stated = json_number(list->value[i]);
  }
  const std::size_t name = spatial == 1 ? 0 : 4 - spatial + i;
  const double number = node.number_or(kNames[name], 0);
  if (number != 0) stated = number;
  return !stated || *stated == static_cast<double>(factor);
}

bool is_weighed(std::string_view op_type) {
  return (op_type.find("linear") != std::string_view::npos || is_cubic(op_type)) &&
         !op_type.starts_with("aten._");
}

// Whether each dimension has as many rows for a row at all sizes, and all lie alike.
bool keeps_factors(const PaddedNode& node, std::size_t spatial) {
  for (std::size_t i = 0; i < spatial; ++i) {
    const auto dim = static_cast<std::int32_t>(i + 2);
    if (!node.operand_varies(0, dim)) {
      if (node.result_varies(0, dim) && node.operand(0)[i + 2].constant() != 1) return false;
      continue;
    }
    const std::int64_t factor = resampling_factor(node, dim);
    if (factor == 0 || (factor != 1 && node.bound().boolean("align_corners"))) return false;
  }
  return true;
}

// Factors that need not be the quotients of the sizes.
bool states_factors(const PaddedNode& node, std::size_t spatial) {
  for (std::size_t i = 0; i < spatial; ++i) {
    if (!states_factor(node, spatial, i, 0)) return true;
  }
  return false;
}

// Where a result lies between the rows of the operand depends on both sizes: each dimension is read
// at places that are computed (rewrite_rows.cpp).
NodeRule resampled_rule(const PaddedNode& node) {
  NodeRule rule;
  rule.value = node.value(0);
  rule.rewriting = Rewriting::kResampled;
  for (std::int32_t d = 0; d < node.rank(0); ++d) {
    const bool has_rows = node.operand_varies(0, d);
    if (!node.result_varies(0, d)) {
      if (has_rows) rule.consumed.push_back({0, d});
      continue;
    }
    ResultDim along{.result = 0, .dim = d, .finite = Keep::kAll, .is_resized = true};
    if (has_rows) along.from.push_back({0, d});
    rule.results.push_back(std::move(along));
  }
  return rule;
}

}  // namespace

NodeRule resample_rule(const PaddedNode& node) {
  const std::string& op_type = node.node().op_type;
  const auto spatial = index_of(spatial_rank(op_type));
  const std::int32_t rank = node.rank(0);
  if (spatial == 0 || rank != static_cast<std::int32_t>(spatial) + 2) {
    return refuse_rule("there is no padding rule for this form of resampling");
  }
  const bool is_nearest = op_type.find("nearest") != std::string::npos;
  if (is_weighed(op_type) && node.operand_info(0).dtype == DType::kFloat32 &&
      !keeps_factors(node, spatial) && !states_factors(node, spatial)) {
    return resampled_rule(node);
  }
  const bool aligns = !is_nearest && node.bound().boolean("align_corners");
  NodeRule rule;
  rule.value = node.value(0);
  add_rowwise(
      rule, node, 0, 0, [](std::int32_t d) { return d < 2 ? d : -1; }, Keep::kAll, Keep::kAll);
  for (std::int32_t d = 2; d < rank; ++d) {
    if (!node.operand_varies(0, d)) {
      if (!node.result_varies(0, d)) continue;
      if (node.operand(0)[index_of(d)].constant() != 1) {
        return refuse_rule("its result varies, its operand does not");
      }
      // Of one row every mode gives copies, to the last bit where it has one weight.
      rule.results.push_back({.result = 0,
                              .dim = d,
                              .repeat = is_nearest ? Keep::kYes : Keep::kNo,
                              .finite = Keep::kAll});
      continue;
    }
    const std::int64_t factor = resampling_factor(node, d);
    const Place place{0, d};
    if (factor == 0 || !states_factor(node, spatial, index_of(d - 2), factor)) {
      return refuse_rule("resampling to a size that is no multiple of " +
                         quoted_size(node.operand(0)[index_of(d)]) +
                         " reads other rows for each size; if it always is one, say so: --bind "
                         "NAME=MIN..MAX:STEP");
    }
    if (aligns && factor != 1) {
      return refuse_rule("resampling with aligned corners reads other rows for each size");
    }
    ResultDim along = moved_dim(0, d, place);
    along.lowest = Keep::kNo;
    along.is_resized = true;
    if (is_cubic(op_type)) along.repeat = Keep::kNo;
    if (!is_nearest && factor != 1) {
      along.zero = Keep::kNo;
      rule.needs.push_back(need_at(place, {kRepeats}, Fill::kEdge));
    }
    rule.results.push_back(std::move(along));
  }
  return rule;
}

}  // namespace npu::padding
