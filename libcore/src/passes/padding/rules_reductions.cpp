// SPDX-License-Identifier: Apache-2.0
// Rules of ops that bring rows together: norms, softmax, sums, extremes, scans, recurrent nets.
// Along other dimensions they treat rows alike. O(rank) for a node.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ops/op_name.hpp"
#include "passes/padding/row_rules.hpp"
#include "passes/padding/rule_parts.hpp"
#include "passes/padding/state_readers.hpp"

namespace npu::padding {
namespace {

std::int32_t same_place(std::int32_t dim) { return dim; }

}  // namespace

double variance_correction(const BoundNode& node) {
  if (node.find("unbiased") != nullptr) return node.boolean("unbiased") ? 1 : 0;
  return node.is_none("correction") ? 1 : node.number("correction");
}

ReducedDims reduced_dims(const PaddedNode& node, std::size_t operand,
                         const std::vector<std::int32_t>& dims) {
  ReducedDims reduced;
  const std::int32_t rank = node.rank(operand);
  reduced.is_reduced.assign(index_of(rank), 0);
  for (const std::int32_t dim : dims) reduced.is_reduced[index_of(dim)] = 1;
  const bool keeps = static_cast<std::int32_t>(node.result().size()) == rank;
  std::int32_t next = 0;
  for (std::int32_t d = 0; d < rank; ++d) {
    const bool is_gone = reduced.is_reduced[index_of(d)] != 0;
    reduced.place.push_back(is_gone ? -1 : next);
    if (!is_gone || keeps) ++next;
  }
  return reduced;
}

NodeRule norm_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  NodeRule rule;
  const std::int32_t rank = node.rank(0);
  std::int32_t first = 2;  // of group and instance norms: all behind the channels
  bool has_channels = true;
  const char* what =
      name.find("group") != std::string_view::npos ? "a group norm" : "an instance norm";
  if (name.find("layer_norm") != std::string_view::npos || name == "rms_norm") {
    first = rank - static_cast<std::int32_t>(node.bound().integers("normalized_shape").size());
    has_channels = false;
    what = name == "rms_norm" ? "an rms norm" : "a layer norm";
  }
  for (std::int32_t d = first; d < rank; ++d) {
    if (!node.operand_varies(0, d)) continue;
    return refuse_rule(std::string(what) + " over " + quoted_size(node.operand(0)[index_of(d)]) +
                       " mixes padding into its statistics (no rule yet)");
  }
  if (has_channels && rank > 1 && node.operand_varies(0, 1)) {
    return refuse_rule(std::string(what) + " has channels that vary");
  }
  add_rowwise(rule, node, 0, 0, same_place, Keep::kNo, Keep::kAll);
  // The mean and the deviation of native forms: a row each.
  for (std::size_t r = 1; r < node.node().outputs.size(); ++r) {
    const auto width = static_cast<std::int32_t>(node.result(r).size());
    add_rowwise(
        rule, node, 0, static_cast<std::int32_t>(r),
        [&](std::int32_t d) { return d < width ? d : -1; }, Keep::kNo, Keep::kAll);
  }
  return rule;
}

NodeRule softmax_rule(const PaddedNode& node) {
  NodeRule rule;
  const auto dim = node.dimension("dim", node.rank(0));
  if (!dim) return refuse_rule("its dim is out of range");
  const bool is_log = node.node().op_type.find("log_softmax") != std::string::npos;
  rule.value = is_log ? node.value(0) : ValueClass::kFinite;
  for (const std::int32_t d : node.varying_dims(0)) {
    ResultDim along = moved_dim(0, d, {0, d});
    along.zero = Keep::kNo;
    along.lowest = Keep::kNo;
    if (d == *dim) {
      along.repeat = Keep::kNo;
      along.finite = Keep::kNo;
      along.zero = is_log ? Keep::kNo : Keep::kYes;
      along.lowest = is_log ? Keep::kYes : Keep::kNo;
      along.overwritten = Place{0, d};
      along.only_if_finite = true;
      rule.needs.push_back(need_at({0, d}, {kLowests}, Fill::kLowest));
    } else if (node.operand_varies(0, *dim)) {
      // Minus infinity behind the valid numbers of the same row gives 0, or minus infinity.
      along.overwritten = Place{0, *dim};
      if (is_log) along.finite = Keep::kNo;
    }
    rule.results.push_back(std::move(along));
  }
  return rule;
}

NodeRule sum_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  NodeRule rule;
  rule.value = node.value(0) == ValueClass::kFinite ? ValueClass::kFinite : ValueClass::kAny;
  const std::int32_t rank = node.rank(0);
  std::vector<std::int32_t> dims;
  if (name.find("adaptive_avg_pool") != std::string_view::npos) {
    for (std::int32_t d = rank - spatial_rank(node.node().op_type); d < rank; ++d) {
      dims.push_back(d);
    }
  } else {
    dims = node.dimensions("dim", rank);
  }
  const ReducedDims reduced = reduced_dims(node, 0, dims);
  const bool is_log_sum = name == "logsumexp";
  const bool is_variance = name == "var" || name == "std";
  bool is_padded = false;
  for (std::int32_t d = 0; d < rank; ++d) {
    if (reduced.is_reduced[index_of(d)] == 0 || !node.operand_varies(0, d)) continue;
    is_padded = true;
    if (is_variance) {
      rule.consumed.push_back({0, d});
    } else {
      rule.needs.push_back(is_log_sum ? need_at({0, d}, {kLowests}, Fill::kLowest)
                                      : need_at({0, d}, {kZeros}, Fill::kZero));
    }
  }
  const bool is_mean = name == "mean" || name.find("adaptive") != std::string_view::npos;
  const bool is_sum =
      name == "sum" || (name == "linalg_vector_norm" && node.number_or("ord", 2) == 2);
  if (is_padded && is_mean) rule.rewriting = Rewriting::kMean;
  if (is_padded && name.find("adaptive") != std::string_view::npos) {
    for (const std::int32_t d : dims) {
      if (node.result()[index_of(d)].constant() == 1) continue;
      return refuse_rule("adaptive pooling to other sizes than 1 has windows that depend on " +
                         quoted_size(node.operand(0)[index_of(d)]));
    }
  }
  if (is_padded && is_variance) {
    const double correction = variance_correction(node.bound());
    if (correction != 0 && correction != 1) {
      return refuse_rule(fmt::format("its correction is {}, expected 0 or 1", correction));
    }
    rule.rewriting = Rewriting::kVariance;
  } else if (is_padded && !is_mean && !is_sum && !is_log_sum) {
    return refuse_rule(std::string(name) + " over a size that varies has no padding rule");
  }
  const Keep zero = is_sum || is_mean ? Keep::kAll : Keep::kNo;
  for (std::size_t r = 0; r < node.node().outputs.size(); ++r) {
    add_rowwise(
        rule, node, 0, static_cast<std::int32_t>(r),
        [&](std::int32_t d) { return reduced.place[index_of(d)]; }, zero, Keep::kAll);
  }
  return rule;
}

NodeRule extreme_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  NodeRule rule;
  rule.value = node.value(0);
  const std::int32_t rank = node.rank(0);
  std::vector<std::int32_t> dims;
  if (name.find("adaptive_max_pool") != std::string_view::npos) {
    for (std::int32_t d = rank - spatial_rank(node.node().op_type); d < rank; ++d) {
      dims.push_back(d);
      if (node.operand_varies(0, d) && node.result()[index_of(d)].constant() != 1) {
        return refuse_rule("adaptive pooling to other sizes than 1 has windows that depend on " +
                           quoted_size(node.operand(0)[index_of(d)]));
      }
    }
  } else {
    dims = node.dimensions("dim", rank);
  }
  const ReducedDims reduced = reduced_dims(node, 0, dims);
  const bool is_max = name.find("max") != std::string_view::npos && name != "aminmax";
  const bool is_index = name.starts_with("arg") || node.node().outputs.size() > 1;
  std::int32_t padded = 0;
  for (std::int32_t d = 0; d < rank; ++d) {
    if (reduced.is_reduced[index_of(d)] == 0 || !node.operand_varies(0, d)) continue;
    ++padded;
    std::vector<TailClass> accepted{kRepeats};
    if (is_max) accepted.push_back(kLowests);
    if (name == "any") accepted.push_back(kZeros);
    rule.needs.push_back(need_at({0, d}, std::move(accepted), Fill::kEdge));
  }
  if (padded > 0 && is_index && dims.size() > 1) {
    return refuse_rule("an index into dimensions taken together depends on their sizes");
  }
  for (std::size_t r = 0; r < node.node().outputs.size(); ++r) {
    add_rowwise(
        rule, node, 0, static_cast<std::int32_t>(r),
        [&](std::int32_t d) { return reduced.place[index_of(d)]; },
        is_index && r > 0 ? Keep::kNo : Keep::kAll, Keep::kAll);
  }
  return rule;
}

NodeRule order_rule(const PaddedNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const std::int32_t rank = node.rank(0);
  const bool is_scan = name == "cumsum" || name == "cumprod";
  std::vector<std::int32_t> dims;
  if (name == "flip" || name == "roll") {
    dims = node.dimensions("dims", rank);
  } else if (const auto dim = node.dimension("dim", rank)) {
    dims = {*dim};
  }
  if (dims.empty()) return refuse_rule("its dim is out of range");
  NodeRule rule;
  rule.value = node.value(0);
  if (is_scan && rule.value != ValueClass::kFinite) rule.value = ValueClass::kAny;
  const auto runs_along = [&](std::int32_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  for (std::int32_t d = 0; d < rank; ++d) {
    if (!node.operand_varies(0, d)) continue;
    if (runs_along(d) && !is_scan) {
      return refuse_rule("'" + std::string(family_name(node.node().op_type)) +
                         "' moves rows of the padded dimension " + std::to_string(d) +
                         "; compile for exact sizes with --bind, or leave it out of the bucketed "
                         "part");
    }
    for (std::size_t r = 0; r < node.node().outputs.size(); ++r) {
      ResultDim along = moved_dim(static_cast<std::int32_t>(r), d, {0, d});
      if (is_scan) along.lowest = Keep::kNo;
      if (r > 0 || name == "argsort") along.zero = along.lowest = Keep::kNo;
      if (runs_along(d)) {
        along.repeat = Keep::kNo;
        along.zero = Keep::kNo;
        along.repeat_from_zero = name == "cumsum";
      }
      rule.results.push_back(std::move(along));
    }
  }
  return rule;
}

NodeRule recurrent_rule(const PaddedNode& node) {
  NodeRule rule;
  if (node.bound().boolean("bidirectional")) {
    return refuse_rule("a bidirectional recurrence reads its padding first");
  }
  const bool batch_first = node.bound().boolean("batch_first");
  const std::int32_t rank = node.rank(0);
  if (rank != 3) return refuse_rule("a recurrence without a batch has no padding rule");
  const std::int32_t time = batch_first ? 1 : 0;
  const std::int32_t batch = batch_first ? 0 : 1;
  if (node.operand_varies(0, 2)) return refuse_rule("its width varies");
  if (node.operand_varies(0, time)) {
    const StateReaders readers = state_readers(node.graph(), node.node());
    if (!readers.refusal.empty()) return refuse_rule(readers.refusal);
    if (!readers.whole.empty() || !readers.last_layer.empty()) {
      rule.rewriting = Rewriting::kLastState;
    }
    ResultDim along = shifted_dim(0, time, {0, time});
    along.zero = Keep::kNo;
    along.lowest = Keep::kNo;
    rule.results.push_back(std::move(along));
  }
  if (!node.operand_varies(0, batch)) return rule;
  for (std::size_t r = 0; r < node.node().outputs.size(); ++r) {
    const std::int32_t place = r == 0 ? batch : 1;
    ResultDim along{.result = static_cast<std::int32_t>(r), .dim = place};
    for (std::size_t i = 0; i < node.operands(); ++i) {
      const std::int32_t dim = i == 0 ? batch : 1;
      if (!node.operand_varies(i, dim)) continue;
      along.from.push_back({static_cast<std::int32_t>(i), dim});
    }
    along.repeat = Keep::kAll;
    along.finite = Keep::kAll;
    rule.results.push_back(std::move(along));
  }
  return rule;
}

}  // namespace npu::padding
