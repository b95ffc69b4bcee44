// SPDX-License-Identifier: Apache-2.0
// An op that computes, and what is done to its result before it is stored.
//
// All of these patterns follow the only reader of the running value; they differ in what may join.
// A chain stops at joins. A convolution or matrix product of general patterns takes element-wise
// ops and, between them, aliases; what it took has a name. As kernels compute it, it takes batch
// norms, which are folded into known weights, then functions, sums and products with another
// tensor, and views, as far as a primitive does them. Anchors are visited from the end of the list,
// so that of two whose results are added the one that is computed later takes the addition, when
// the other result exists. Each node is looked at by at most as many anchors as it has operands:
// O(nodes + edges).
#include <algorithm>
#include <optional>

#include "ops/schema.hpp"
#include "passes/fusion/node_facts.hpp"
#include "passes/fusion/patterns.hpp"

namespace npu::fusion {
namespace {

constexpr std::size_t kMostPostOps = 15;

// ---- named by what was taken ----

// What an epilogue op is to the named patterns: 'B' batch norm, 'A' activation, 'P' add of another
// activation, 'b' add of a bias, 'E' anything else.
char letter_of(const FusionBuilder& builder, const Link& op) {
  const NodeFacts& facts = builder.facts(op.node);
  if (facts.role == Role::kBatchNorm) return 'B';
  if (is_activation(facts.role)) return 'A';
  if (facts.role != Role::kAdd) return 'E';
  for (const TensorId id : builder.operands(op.node)) {
    if (id == op.tensor) continue;
    if (is_weight(builder, id)) return 'b';
    return builder.elements(id) == builder.elements(op.tensor) ? 'P' : 'E';
  }
  return 'E';
}

// The pattern that a sequence of letters after an anchor stands for, if any.
std::optional<Pattern> named_pattern(Role role, std::string_view letters) {
  const bool conv = role == Role::kConv;
  if (!is_product(role)) return std::nullopt;
  if (letters == "B") return conv ? "conv-bn"_pattern : "linear-bn-act"_pattern;
  if (letters == "BA") return conv ? "conv-bn-act"_pattern : "linear-bn-act"_pattern;
  if (letters == "A") return conv ? "conv-act"_pattern : "linear-act"_pattern;
  if (letters == "P" || letters == "PA" || letters == "BP" || letters == "BPA") {
    return "residual"_pattern;
  }
  return std::nullopt;
}

void grow_anchor(FusionBuilder& builder, std::int32_t anchor) {
  constexpr std::size_t kLongestName = 3;
  const bool any = builder.enabled("epilogue"_pattern, anchor);
  NodeList nodes{anchor};
  std::string letters;
  Pattern accepted = "epilogue"_pattern;
  bool is_plain = true;
  bool accepted_plain = true;
  follow(builder, Readers::kAll, builder.most(), nodes, [&](const Link& next) {
    const Step step = epilogue_step(builder, next);
    if (step != Step::kAccept) return step;
    const char letter = letter_of(builder, next);
    if (letter != 'b') letters += letter;
    is_plain = is_plain && letter != 'P' && letter != 'E';
    const auto named = named_pattern(builder.role(anchor), letters);
    if (!any && (!named || !builder.enabled(*named, anchor))) {
      return letters.size() > kLongestName ? Step::kStop : Step::kPass;
    }
    accepted = named.value_or("epilogue"_pattern);
    accepted_plain = is_plain;
    return Step::kAccept;
  });
  Group& group = builder.add_group(std::move(nodes), accepted);
  group.anchor = anchor;
  group.absorbs = true;
  group.plain = accepted_plain;
}

// ---- as kernels compute it ----

Pattern post_op_pattern(Role anchor) {
  if (anchor == Role::kConv) return "conv-post-ops"_pattern;
  return anchor == Role::kBatchNorm ? "norm-relu"_pattern : "product-post-ops"_pattern;
}

/// A function of one number that a primitive computes before it stores. Those that oneDNN computes
/// without NaN or beyond their range are kernels of their own: exp, hardsigmoid, softplus. So is
/// GELU: a separate pass over the result takes less time than the primitive's post-op, and is
/// exact.
bool is_post_function(Role role) {
  if (is_activation(role)) {
    return role != Role::kRareActivation && role != Role::kHardSigmoid && role != Role::kGelu;
  }
  return role == Role::kUnary || role == Role::kSquare || role == Role::kSqrt;
}

/// True for those that are to the last places, wherever they are computed; as post-ops the others
/// are as near as npu-onednn(7) says, which is too far where integers follow.
bool is_exact_function(Role role) {
  return (role >= Role::kRelu && role <= Role::kClip) || role == Role::kHardSwish ||
         role == Role::kUnary || role == Role::kSquare || role == Role::kSqrt;
}

/// What of the readers behind an anchor a primitive does before it stores.
class PostOps {
 public:
  PostOps(const FusionBuilder& builder, const std::vector<bool>& deciding, std::int32_t anchor)
      : builder_(builder), deciding_(deciding), anchor_(anchor), role_(builder.role(anchor)) {
    const Shape& shape = info(builder.node(anchor).outputs.front()).shape;
    columns_ = shape.empty() ? 1 : shape.back();
  }

  bool takes(const Link& next) {
    const Node& node = builder_.node(next.node);
    if (node.outputs.size() != 1) return false;
    const TensorInfo& value = info(next.tensor);
    const TensorInfo& result = info(node.outputs.front());
    if (result.dtype != value.dtype) return false;
    const bool is_first = node.inputs.front() == next.tensor;
    if (is_first && keeps_row_major(builder_, next.node)) {
      return is_matrix_product(role_) || result.shape == value.shape;
    }
    if (result.shape != value.shape) return false;
    const Role role = fusion_role(node.op_type);
    if (role_ == Role::kBatchNorm) return role == Role::kRelu;
    BindError error;
    const OpInfo* op = find_op(node.op_type);
    if (op == nullptr) return false;
    const auto bound = BoundNode::try_bind(builder_.graph(), node, op->schema, error);
    if (!bound) return false;
    if (builder_.role(next.node) == Role::kBatchNorm) {
      return is_first && takes_norm(*bound, value.shape);
    }
    const bool is_function = is_post_function(role) && is_first && node.inputs.size() == 1;
    const bool decides = deciding_[index_of(node.outputs.front())];
    const bool joins = is_function ? is_exact_function(role) || !decides
                                   : role >= Role::kAdd && role <= Role::kDiv &&
                                         takes_arithmetic(node, role, next.tensor);
    norms_open_ = norms_open_ && !joins;
    return joins;
  }

 private:
  const TensorInfo& info(TensorId id) const { return builder_.tensor(id); }

  /// Batch norm after a convolution with known weights: a factor and a term per channel.
  bool takes_norm(const BoundNode& norm, const Shape& shape) const {
    const bool is_matrix = role_ == Role::kLinear && shape.size() == 2;
    return norms_open_ && (role_ == Role::kConv || is_matrix) &&
           has_known_operands(builder_, builder_.node(anchor_)) &&
           has_known_operands(builder_, norm.node()) && norm.tensor("running_mean") &&
           norm.tensor("running_var");
  }

  bool takes_arithmetic(const Node& node, Role role, TensorId value) const {
    if (node.inputs.size() == 1) return true;  // a number
    const bool is_first = node.inputs.front() == value;
    const bool commutes = role == Role::kAdd || role == Role::kMul;
    if (node.inputs.size() != 2 || role == Role::kRsub || (!is_first && !commutes)) return false;
    if (!is_first && find_member(node.attrs(), "alpha") != nullptr) return false;
    const TensorInfo& other = info(node.inputs[is_first ? 1 : 0]);
    return other.dtype == info(value).dtype &&
           (other.shape == info(value).shape || broadcasts(other.shape, info(value).shape));
  }

  /// One element for all, or one for every channel or column.
  bool broadcasts(const Shape& from, const Shape& to) const {
    std::int64_t count = 1;
    for (const std::int64_t extent : from) count *= extent;
    if (count == 1) return from.size() <= to.size();
    if (is_matrix_product(role_)) {
      return count == columns_ && from.back() == columns_ && to.back() == columns_;
    }
    const std::size_t rank = to.size();
    return rank > 1 && from.size() + 1 >= rank && from.size() <= rank &&
           from[from.size() + 1 - rank] == to[1] && count == to[1];
  }

  const FusionBuilder& builder_;
  const std::vector<bool>& deciding_;
  std::int32_t anchor_;
  Role role_;
  std::int64_t columns_ = 1;
  bool norms_open_ = true;
};

void grow_post_ops(FusionBuilder& builder, const std::vector<bool>& deciding, std::int32_t anchor) {
  const Pattern pattern = post_op_pattern(builder.role(anchor));
  if (!builder.enabled(pattern, anchor)) return;
  NodeList nodes{anchor};
  PostOps ops(builder, deciding, anchor);
  follow(builder, Readers::kNeeded, std::min(kMostPostOps + 1, builder.most()), nodes,
         [&](const Link& next) { return ops.takes(next) ? Step::kAccept : Step::kStop; });
  if (nodes.size() < 2) return;
  builder.add_group(std::move(nodes), pattern).anchor = anchor;
}

Pattern reduction_pattern(Role role) {
  if (role == Role::kLayerNorm) return "layer-norm"_pattern;
  return role == Role::kRmsNorm ? "rms-norm"_pattern : "reduction"_pattern;
}

}  // namespace

Step epilogue_step(const FusionBuilder& builder, const Link& next) {
  const NodeFacts& facts = builder.facts(next.node);
  if (facts.alias) return facts.keeps_elements ? Step::kPass : Step::kStop;
  return builder.is_epilogue_op(next.node, next.tensor) ? Step::kAccept : Step::kStop;
}

void match_chains(FusionBuilder& builder) {
  match_each(builder, "chain"_pattern, [&](std::int32_t n) {
    const Role role = builder.role(n);
    NodeList nodes;
    if (!is_product(role) && role != Role::kBatchNorm && role != Role::kAdd) return nodes;
    nodes.push_back(n);
    follow(builder, Readers::kAll, builder.most(), nodes, [&](const Link& next) {
      const std::span<const TensorId> read = builder.operands(next.node);
      const bool joins_nothing = std::all_of(read.begin(), read.end(), [&](TensorId id) {
        return id == next.tensor || is_weight(builder, id);
      });
      if (!joins_nothing || !builder.enters_first(next.node, next.tensor) ||
          !builder.is_epilogue_op(next.node, next.tensor)) {
        return Step::kStop;
      }
      const Role after = builder.role(next.node);
      if (after == Role::kBatchNorm && is_product(role) && nodes.size() == 1) return Step::kAccept;
      return is_activation(after) ? Step::kLast : Step::kStop;
    });
    if (nodes.size() < 2) nodes.clear();
    return nodes;
  });
}

void match_post_ops(FusionBuilder& builder) {
  if (!builder.enabled("conv-post-ops"_pattern) && !builder.enabled("product-post-ops"_pattern) &&
      !builder.enabled("norm-relu"_pattern)) {
    return;
  }
  const std::vector<bool> deciding = deciding_tensors(builder.graph());
  // A batch norm is an anchor only if no convolution absorbs it.
  for (const bool norms : {false, true}) {
    for (std::int32_t n = builder.size(); n-- > 0;) {
      ++builder.steps();
      const Role role = builder.role(n);
      if (norms ? role != Role::kBatchNorm : !is_product(role)) continue;
      if (is_kernel_anchor(builder, n)) grow_post_ops(builder, deciding, n);
    }
  }
}

void grow_anchors(FusionBuilder& builder) {
  for (std::int32_t n = builder.size(); n-- > 0;) {
    const bool is_anchor =
        builder.facts(n).kind == OpKind::kAnchor && !builder.node(n).outputs.empty();
    if (is_anchor && builder.free(n)) grow_anchor(builder, n);
  }
}

void grow_reductions(FusionBuilder& builder) {
  for (std::int32_t n = builder.size(); n-- > 0;) {
    if (!builder.free(n) || builder.facts(n).kind != OpKind::kReduction) continue;
    const Pattern pattern = reduction_pattern(builder.role(n));
    if (!builder.enabled(pattern, n)) continue;
    NodeList nodes{n};
    follow(builder, Readers::kAll, builder.most(), nodes,
           [&](const Link& next) { return epilogue_step(builder, next); });
    builder.add_group(std::move(nodes), pattern).absorbs = true;
  }
}

}  // namespace npu::fusion
