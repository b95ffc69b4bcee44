// SPDX-License-Identifier: Apache-2.0
// What an anchor does to its result before it stores it: batch norms go into its weights, the rest
// of a group's nodes become post-ops of its primitive.
//
// An addition becomes oneDNN's sum, in the memory of the other operand, if nothing reads that
// operand later; else, like any arithmetic with a tensor, a binary post-op. Whatever has no
// post-op is refused, and lowering makes a step of each node.
#include <algorithm>

#include "kernels/epilogue.hpp"
#include "lowering/lowering.hpp"
#include "npu/ops/op_catalogue.hpp"

namespace npu::onednn {

namespace {

BoundNode bound(const Lowering& lowering, const Node& node) {
  return BoundNode(lowering.graph(), node, find_op(node.op_type)->schema);
}

FusionRole role_of(const Node& node) { return find_op(node.op_type)->role; }

bool is_norm(const Node& node) { return role_of(node) == FusionRole::kBatchNorm; }

/// An op that leaves the running value's elements in their order.
bool is_alias(const Node& node) {
  return role_of(node) == FusionRole::kSameOrder || role_of(node) == FusionRole::kPermute;
}

class Builder {
 public:
  Builder(Lowering& lowering, const Layout& target, std::initializer_list<Value> anchor_reads)
      : lowering_(lowering), target_(target), anchor_reads_(anchor_reads) {}

  void add(const Node& node, std::int32_t operand) {
    if (is_norm(node) || is_alias(node)) return;
    const BoundNode arguments = bound(lowering_, node);
    if (node.inputs.size() == 2) {
      return add_binary_node(node, arguments, node.inputs[operand == 0 ? 1 : 0]);
    }
    const std::string_view name = base_name(node.op_type);
    if (name == "add" || name == "sub" || name == "mul" || name == "rsub") {
      return add_function(number_function(lowering_, arguments));
    }
    if (name == "div") {
      const Shape ones(static_cast<std::size_t>(target_.data.ndims), 1);
      const Value divisor = lowering_.constant(static_cast<float>(arguments.number("other")));
      return add_binary_operand(name, 1.0F, lowering_.reshaped(divisor, ones));
    }
    for (const Eltwise& function : unary_functions(lowering_, arguments)) add_function(function);
  }

  PostOps take() { return std::move(result_); }

 private:
  void add_function(const Eltwise& function) {
    result_.operations.append_eltwise(1.0F, function.function, function.alpha, function.beta);
  }

  void add_binary_node(const Node& node, const BoundNode& arguments, TensorId other) {
    const std::string_view name = base_name(node.op_type);
    float alpha = 1.0F;
    if (arguments.find("alpha") != nullptr) {
      if (arguments.tensor("alpha")) throw EpilogueRefused{};
      alpha = static_cast<float>(arguments.number("alpha"));
    }
    std::int64_t elements = 1;
    for (int i = 0; i < target_.data.ndims; ++i) elements *= target_.data.dims[i];
    std::int64_t count = 1;
    for (const std::int64_t extent : lowering_.shape(other)) count *= extent;
    const bool is_sum = name == "add" || name == "sub";
    if (count == elements) {
      const Value value = full_operand(other);
      if (is_sum && accumulate(value, name == "sub" ? -alpha : alpha)) return;
      return add_binary_operand(name, alpha, value);
    }
    // One element for all, or one for every channel (dimension 1) or column (the last).
    Shape shape(static_cast<std::size_t>(target_.data.ndims), 1);
    if (count != 1) {
      const Node& anchor = lowering_.graph().node(lowering_.group()->nodes.front());
      const bool by_channel = role_of(anchor) == FusionRole::kConv;
      shape[by_channel ? 1 : shape.size() - 1] = count;
    }
    add_binary_operand(name, alpha,
                       lowering_.reshaped(lowering_.operand(other, DType::kFloat32), shape));
  }

  Value full_operand(TensorId other) {
    Value value = lowering_.operand(other);
    const Shape wanted = dimensions(target_);
    if (dimensions(value.layout) != wanted) value = lowering_.reshaped(value, wanted);
    return lowering_.in_layout(value, with_type(target_, value.type));
  }

  bool accumulate(const Value& value, float scale) {
    if (!lowering_.allows_sum() || result_.accumulated) return false;
    if (value.layout != target_ || !lowering_.can_overwrite(value)) return false;
    const auto shares = [&](const Value& read) { return read.buffer == value.buffer; };
    if (std::any_of(anchor_reads_.begin(), anchor_reads_.end(), shares)) return false;
    for (const PrimitiveOperand& read : result_.reads) {
      if (read.value.buffer == value.buffer) return false;
    }
    result_.operations.append_sum(scale);
    result_.accumulated = value;
    return true;
  }

  void add_binary_operand(std::string_view name, float alpha, const Value& value) {
    if (alpha != 1.0F) throw EpilogueRefused{};
    if (result_.accumulated && result_.accumulated->buffer == value.buffer) throw EpilogueRefused{};
    const dnnl::algorithm function = name == "add"   ? dnnl::algorithm::binary_add
                                     : name == "sub" ? dnnl::algorithm::binary_sub
                                     : name == "mul" ? dnnl::algorithm::binary_mul
                                                     : dnnl::algorithm::binary_div;
    const int index = result_.operations.len();
    result_.operations.append_binary(function, value.layout);
    result_.reads.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(index) | DNNL_ARG_SRC_1, value});
  }

  Lowering& lowering_;
  const Layout& target_;
  std::vector<Value> anchor_reads_;
  PostOps result_;
};

std::optional<Value> vector_of(Lowering& lowering, const BoundNode& node, std::string_view name,
                               std::int64_t count) {
  const auto tensor = node.tensor(name);
  if (!tensor) return std::nullopt;
  if (lowering.shape(*tensor) != Shape{count}) throw EpilogueRefused{};
  lowering.require_float(name, *tensor);
  return lowering.plain(lowering.operand(*tensor, DType::kFloat32));
}

std::optional<EpilogueStep> eltwise_step(const dnnl::post_ops& operations, int index) {
  using Kind = EpilogueStep::Kind;
  float scale = 1.0F;
  float alpha = 0.0F;
  float beta = 0.0F;
  dnnl::algorithm function{};
  operations.get_params_eltwise(index, scale, function, alpha, beta);
  if (scale != 1.0F) return std::nullopt;
  switch (function) {
    case dnnl::algorithm::eltwise_relu:
      return EpilogueStep{Kind::kRelu, alpha, beta};
    case dnnl::algorithm::eltwise_clip:
    case dnnl::algorithm::eltwise_clip_v2:
      return EpilogueStep{Kind::kClip, alpha, beta};
    case dnnl::algorithm::eltwise_linear:
      return EpilogueStep{Kind::kLinear, alpha, beta};
    case dnnl::algorithm::eltwise_hardswish:
      return EpilogueStep{Kind::kHardSwish, alpha, beta};
    case dnnl::algorithm::eltwise_swish:
      return EpilogueStep{Kind::kSwish, alpha, beta};
    default:
      return std::nullopt;
  }
}

}  // namespace

PostOps make_post_ops(Lowering& lowering, const Layout& target,
                      std::initializer_list<Value> anchor_reads) {
  if (!lowering.has_epilogue()) return {};
  Builder builder(lowering, target, anchor_reads);
  const FusionGroup& group = *lowering.group();
  for (std::size_t i = 1; i < group.nodes.size(); ++i) {
    builder.add(lowering.graph().node(group.nodes[i]), group.operand[i - 1]);
  }
  return builder.take();
}

Value target_of(Lowering& lowering, const PostOps& post, DType type, const Layout& layout) {
  if (!post.accumulated) return lowering.temporary(type, layout);
  lowering.note_overwritten(*post.accumulated);
  return *post.accumulated;
}

std::optional<std::vector<EpilogueStep>> epilogue_steps(const PostOps& post, const Layout& target) {
  using Kind = EpilogueStep::Kind;
  std::vector<EpilogueStep> result;
  for (int i = 0; i < post.operations.len(); ++i) {
    if (post.operations.kind(i) == dnnl::primitive::kind::eltwise) {
      const auto step = eltwise_step(post.operations, i);
      if (!step) return std::nullopt;
      result.push_back(*step);
    } else if (post.operations.kind(i) == dnnl::primitive::kind::sum) {
      float scale = 1.0F;
      post.operations.get_params_sum(i, scale);
      result.push_back({Kind::kAccumulate, scale, 0.0F});
    } else {
      dnnl::algorithm function{};
      dnnl::memory::desc operand;
      post.operations.get_params_binary(i, function, operand);
      const bool is_sum = function == dnnl::algorithm::binary_add;
      if (operand != target || (!is_sum && function != dnnl::algorithm::binary_mul)) {
        return std::nullopt;
      }
      result.push_back({is_sum ? Kind::kAdd : Kind::kMultiply, 0.0F, 0.0F});
    }
  }
  return result;
}

FoldedWeights fold_norms(Lowering& lowering, const Value& weight, const std::optional<Value>& bias,
                         std::int64_t groups, bool transposed) {
  FoldedWeights result{weight, bias};
  if (!lowering.has_epilogue()) return result;
  const FusionGroup& group = *lowering.group();
  for (std::size_t i = 1; i < group.nodes.size(); ++i) {
    const Node& node = lowering.graph().node(group.nodes[i]);
    if (!is_norm(node)) continue;
    const BoundNode arguments = bound(lowering, node);
    const Shape shape = dimensions(weight.layout);
    NormFold fold;
    fold.epsilon = static_cast<float>(arguments.number("eps"));
    fold.groups = transposed ? groups : 1;
    fold.rows = transposed ? shape[0] / groups : 1;
    fold.channels = transposed ? shape[1] : shape[0];
    for (std::size_t j = transposed ? 2 : 1; j < shape.size(); ++j) fold.inner *= shape[j];
    const std::int64_t channels = fold.channels * fold.groups;
    const auto mean = vector_of(lowering, arguments, "running_mean", channels);
    const auto variance = vector_of(lowering, arguments, "running_var", channels);
    const auto scale = vector_of(lowering, arguments, "weight", channels);
    const auto shift = vector_of(lowering, arguments, "bias", channels);
    if (!mean || !variance) throw EpilogueRefused{};
    const Value source = lowering.plain(lowering.in_type(result.weight, DType::kFloat32));
    std::vector<Value> reads{source, *variance};
    fold.has_scale = scale.has_value();
    if (scale) reads.push_back(*scale);
    const Value folded = lowering.temporary(DType::kFloat32, source.layout);
    lowering.add_kernel(reads, folded, FoldNormWeights{fold});
    std::vector<Value> terms{*variance, *mean};
    if (scale) terms.push_back(*scale);
    fold.has_shift = shift.has_value();
    if (shift) terms.push_back(*shift);
    fold.has_bias = result.bias.has_value();
    if (result.bias) terms.push_back(lowering.plain(*result.bias));
    const Value folded_bias =
        lowering.temporary(DType::kFloat32, plain_layout({channels}, DType::kFloat32));
    lowering.add_kernel(terms, folded_bias, FoldNormBias{fold});
    result = {folded, folded_bias};
  }
  return result;
}

bool is_reference(const dnnl::primitive_desc& primitive) {
  return std::string_view(primitive.impl_info_str()).starts_with("ref");
}

}  // namespace npu::onednn
