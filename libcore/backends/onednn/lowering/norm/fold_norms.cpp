// SPDX-License-Identifier: Apache-2.0
// Batch norms behind an anchor with constant weights: folded into these and the bias, as kernels of
// the prologue. O(norms of the group).
#include <string>
#include <string_view>
#include <vector>

#include "kernels/norm/norms.hpp"
#include "lowering/norm/norm.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::onednn {

namespace {

std::optional<Value> vector_of(Lowering& lowering, const BoundNode& node, std::string_view name) {
  const auto tensor = node.tensor(name);
  if (!tensor) return std::nullopt;
  lowering.require_float(name, *tensor);
  return lowering.plain(lowering.operand(*tensor, DType::kFloat32));
}

}  // namespace

Lowered<FoldedWeights> fold_norms(Lowering& lowering, const GroupContext& context,
                                  const Value& weight, const std::optional<Value>& bias,
                                  std::int64_t groups, bool transposed) {
  FoldedWeights result{weight, bias};
  if (!context.has_epilogue()) return result;
  const KernelGroup& group = *context.group;
  for (std::size_t i = 1; i < group.nodes.size(); ++i) {
    const Node& node = lowering.graph().node(group.nodes[i]);
    if (fusion_role(node.op_type) != FusionRole::kBatchNorm) continue;
    const BoundNode arguments = bound(lowering.graph(), node);
    const Shape shape = dimensions(weight.layout);
    NormFold fold;
    fold.epsilon = static_cast<float>(arguments.number("eps"));
    fold.groups = transposed ? groups : 1;
    fold.rows = transposed ? shape[0] / groups : 1;
    fold.channels = transposed ? shape[1] : shape[0];
    for (std::size_t j = transposed ? 2 : 1; j < shape.size(); ++j) fold.inner *= shape[j];
    const std::int64_t channels = fold.channels * fold.groups;
    for (const char* name : {"running_mean", "running_var", "weight", "bias"}) {
      const auto tensor = arguments.tensor(name);
      if (tensor && lowering.shape(*tensor) != Shape{channels}) {
        return NotFused{"the batch norm's '" + std::string(name) + "' is not one number a channel"};
      }
    }
    const auto mean = vector_of(lowering, arguments, "running_mean");
    const auto variance = vector_of(lowering, arguments, "running_var");
    const auto scale = vector_of(lowering, arguments, "weight");
    const auto shift = vector_of(lowering, arguments, "bias");
    if (!mean || !variance) return NotFused{"the batch norm has no running statistics"};
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

}  // namespace npu::onednn
