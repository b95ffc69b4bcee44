// SPDX-License-Identifier: Apache-2.0
// The table of rules: which class an op belongs to, by kind, role and name in the catalogue.
//
// A rule says of a node what its results have along each dimension that varies, and what it needs.
// Whatever a rule leaves unexplained is refused here, so that a rule can only be too strict.
// O(log names + rule) for a node.
#include "passes/padding/row_rules.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "ops/align_class.hpp"
#include "ops/moved_ops.hpp"
#include "ops/op_name.hpp"
#include "passes/padding/rule_parts.hpp"
#include "support/text.hpp"

namespace npu::padding {
namespace {

constexpr std::array<RowRule, 24> kRowRules{{
    {"attention", attention_rule},
    {"concatenate", concatenate_rule},
    {"convolution", convolution_rule},
    {"create", create_rule},
    {"expand", expand_rule},
    {"extreme", extreme_rule},
    {"gather", gather_rule},
    {"norm", norm_rule},
    {"order", order_rule},
    {"pad", pad_rule},
    {"permute", permute_rule},
    {"pointwise", pointwise_rule},
    {"pool", pool_rule},
    {"product", product_rule},
    {"recurrent", recurrent_rule},
    {"resample", resample_rule},
    {"reshape", reshape_rule},
    {"scatter", scatter_rule},
    {"slice", slice_rule},
    {"softmax", softmax_rule},
    {"split", split_rule},
    {"sum", sum_rule},
    {"tail", tail_rule},
    {"triangle", triangle_rule},
}};

struct NamedClass {
  std::string_view name;
  std::string_view rule;
};

// Ops whose class neither kind nor role tells; sorted.
constexpr NamedClass kNamedClasses[] = {
    {"adaptive_avg_pool1d", "sum"},
    {"adaptive_avg_pool2d", "sum"},
    {"adaptive_avg_pool3d", "sum"},
    {"adaptive_max_pool1d", "extreme"},
    {"adaptive_max_pool2d", "extreme"},
    {"alias", "pointwise"},
    {"all", "extreme"},
    {"amax", "extreme"},
    {"amin", "extreme"},
    {"aminmax", "extreme"},
    {"any", "extreme"},
    {"arange", "create"},
    {"argmax", "extreme"},
    {"argmin", "extreme"},
    {"argsort", "order"},
    {"chunk", "split"},
    {"contiguous", "pointwise"},
    {"copy", "create"},
    {"cumprod", "order"},
    {"cumsum", "order"},
    {"detach", "pointwise"},
    {"embedding", "gather"},
    {"empty", "create"},
    {"empty_like", "create"},
    {"eye", "create"},
    {"fill", "create"},
    {"flip", "order"},
    {"full", "create"},
    {"full_like", "create"},
    {"gather", "gather"},
    {"glu", "split"},
    {"gru", "recurrent"},
    {"index", "gather"},
    {"index_select", "gather"},
    {"lift_fresh", "pointwise"},
    {"linspace", "create"},
    {"lstm", "recurrent"},
    {"max", "extreme"},
    {"meshgrid", "expand"},
    {"min", "extreme"},
    {"narrow", "slice"},
    {"new_empty", "create"},
    {"new_full", "create"},
    {"new_ones", "create"},
    {"new_zeros", "create"},
    {"one_hot", "gather"},
    {"ones", "create"},
    {"ones_like", "create"},
    {"pixel_shuffle", "reshape"},
    {"pixel_unshuffle", "reshape"},
    {"repeat", "expand"},
    {"rnn_relu", "recurrent"},
    {"rnn_tanh", "recurrent"},
    {"roll", "order"},
    {"scalar_tensor", "create"},
    {"select", "slice"},
    {"sort", "order"},
    {"split", "split"},
    {"split_with_sizes", "split"},
    {"take_along_dim", "gather"},
    {"tensor_split", "split"},
    {"tile", "expand"},
    {"topk", "order"},
    {"tril", "triangle"},
    {"triu", "triangle"},
    {"unbind", "split"},
    {"zero", "create"},
    {"zeros", "create"},
    {"zeros_like", "create"},
};

constexpr bool classes_are_sorted() {
  for (std::size_t i = 1; i < std::size(kNamedClasses); ++i) {
    if (!(kNamedClasses[i - 1].name < kNamedClasses[i].name)) return false;
  }
  return true;
}
static_assert(classes_are_sorted());

std::string_view class_of(const OpInfo& op) {
  if (op.op_type == kGetitem) return "split";
  if (op.op_type == "npu.tail") return "tail";
  if (op.op_type == "npu.length_mask") return "gather";
  if (op.op_type == kChannelNorm) return "pointwise";
  if (op.op_type == "aten.max.other" || op.op_type == "aten.min.other") return "pointwise";
  std::string_view name = functional_name(op.op_type);
  if (name.starts_with("_adaptive")) name.remove_prefix(1);
  const auto* row = std::ranges::lower_bound(kNamedClasses, name, {}, &NamedClass::name);
  if (row != std::end(kNamedClasses) && row->name == name) return row->rule;
  if (name.starts_with("expand") || name == "broadcast_to") return "expand";
  if (is_resampling(op.op_type)) return "resample";
  if (op.role == FusionRole::kAttention) return "attention";
  switch (align_class(op.op_type)) {
    case AlignClass::kGemm:
      return op.kind == OpKind::kAnchor ? "product" : std::string_view();
    case AlignClass::kConv:
      return "convolution";
    case AlignClass::kPool:
      return "pool";
    case AlignClass::kReduce:
      return "sum";
    case AlignClass::kTranspose:
      return "permute";
    case AlignClass::kConcatenate:
      return "concatenate";
    case AlignClass::kScatter:
      return "scatter";
    case AlignClass::kPad:
      return "pad";
    case AlignClass::kSlice:
      return "slice";
    case AlignClass::kReshape:
      return "reshape";
    case AlignClass::kNormalization:
      return "norm";
    case AlignClass::kSoftmax:
      return "softmax";
    case AlignClass::kNone:
      break;
  }
  if (op.kind == OpKind::kElementwise || op.kind == OpKind::kBroadcast) return "pointwise";
  return {};
}

bool holds_place(const NodeRule& rule, const Place& place) {
  const auto is_it = [&](const std::vector<Place>& places) {
    return std::find(places.begin(), places.end(), place) != places.end();
  };
  return is_it(rule.consumed) ||
         std::any_of(rule.results.begin(), rule.results.end(),
                     [&](const ResultDim& along) { return is_it(along.from); }) ||
         std::any_of(rule.needs.begin(), rule.needs.end(),
                     [&](const TailNeed& need) { return is_it(need.places); });
}

NodeRule refuse_operator(const Node& node) {
  return refuse_rule("there is no padding rule for operator '" + short_text(node.op_type) + "'");
}

// Why a rule does not explain a node: a dimension that varies is not in it, or not once.
std::string unexplained(const PaddedNode& node, const NodeRule& rule) {
  for (std::size_t i = 0; i < node.operands(); ++i) {
    for (std::int32_t d = 0; d < node.rank(i); ++d) {
      if (!node.operand_varies(i, d)) continue;
      if (holds_place(rule, {static_cast<std::int32_t>(i), d})) continue;
      return "dimension " + std::to_string(d) + " of operand " + std::to_string(i) + ", " +
             quoted_size(node.operand(i)[index_of(d)]) + ", has no padding rule here";
    }
  }
  for (std::size_t r = 0; r < node.node().outputs.size(); ++r) {
    for (std::int32_t d = 0; d < static_cast<std::int32_t>(node.result(r).size()); ++d) {
      const auto count =
          std::count_if(rule.results.begin(), rule.results.end(), [&](const ResultDim& along) {
            return along.result == static_cast<std::int32_t>(r) && along.dim == d;
          });
      if (count == (node.result_varies(r, d) ? 1 : 0)) continue;
      return "dimension " + std::to_string(d) + " of result " + std::to_string(r) + ", " +
             quoted_size(node.result(r)[index_of(d)]) + ", does not follow from its operands";
    }
  }
  return {};
}

// Why the sizes of a node are not those that its rule takes for granted.
std::string wrong_size(const PaddedNode& node, const NodeRule& rule) {
  for (const ResultDim& along : rule.results) {
    if (along.is_resized) continue;
    const SizeExpression& size = node.result(index_of(along.result))[index_of(along.dim)];
    for (const Place& place : along.from) {
      const SizeExpression& from = node.operand(index_of(place.operand))[index_of(place.dim)];
      if (node.same(from, size)) continue;
      return "dimension " + std::to_string(along.dim) + " of its result is " + quoted_size(size) +
             ", that of operand " + std::to_string(place.operand) + " is " + quoted_size(from);
    }
  }
  return {};
}

}  // namespace

std::span<const RowRule> row_rules() { return kRowRules; }

const RowRule* find_row_rule(const OpInfo& op) {
  const std::string_view name = class_of(op);
  const auto* row = std::ranges::lower_bound(kRowRules, name, {}, &RowRule::name);
  return row != kRowRules.end() && row->name == name ? row : nullptr;
}

NodeRule node_rule(const PaddedNode& node, const OpInfo& op) {
  const RowRule* row = find_row_rule(op);
  if (row == nullptr) return refuse_operator(node.node());
  NodeRule rule = row->apply(node);
  if (!rule.refusal.empty()) return rule;
  rule.refusal = unexplained(node, rule);
  if (rule.refusal.empty()) rule.refusal = wrong_size(node, rule);
  return rule;
}

NodeRule rule_of_node(const Graph& graph, const Node& node, const PaddedSizes& sizes,
                      const TensorSizes& shapes, const IdVector<TensorId, TensorTails>& tails) {
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr || node.outputs.empty()) {
    return refuse_operator(node);
  }
  try {
    BindError error;
    const auto bound = BoundNode::try_bind(graph, node, op->schema, error);
    if (!bound) return refuse_rule("argument '" + error.argument + "': " + error.text);
    return node_rule(PaddedNode(graph, node, *bound, sizes, shapes, tails), *op);
  } catch (const Error& error) {
    return refuse_rule(error.message());
  }
}

}  // namespace npu::padding
