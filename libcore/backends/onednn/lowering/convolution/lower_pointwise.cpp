// SPDX-License-Identifier: Apache-2.0
// Pointwise convolutions by our products, where they were chosen, and with a batch norm
// in front, which the product multiplies its source with.
#include <utility>

#include "lowering/convolution/convolution.hpp"
#include "lowering/norm/norm.hpp"
#include "lowering/product/choose_product.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::onednn {

Lowered<Value> add_pointwise(Lowering& lowering, const GroupContext& context,
                             const ConvolutionCall& call,
                             const std::vector<Candidate>& candidates) {
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source =
      lowering.in_layout(call.source, lowering.blocked(dimensions(call.source.layout), call.type));
  return add_first_product(lowering, context, candidates, source, {call.weight, call.bias},
                           lowering.blocked(call.output, call.type));
}

Lowered<Value> add_norm_pointwise(Lowering& lowering, const GroupContext& context,
                                  const ConvolutionCall& call, const Norm& norm) {
  const Shape weight = dimensions(call.weight.layout);
  if (call.type != DType::kFloat32 || norm.source.type != DType::kFloat32) {
    return NotFused{"the kernel of a batch norm and a convolution computes in float32 only"};
  }
  if (!is_pointwise(weight, call.spatial, call.groups) || !lowering.is_constant(call.weight) ||
      !lowering.is_constant(norm.vectors) || is_pinned(lowering.node()) ||
      !suits_norm(pointwise_gemm(call.output, weight[1], lowering.machine()), lowering.machine())) {
    return NotFused{"the batch norm is no part of the convolution's kernel"};
  }
  if (auto refusal = operand_kernel_refusal(context.epilogue); !refusal.empty()) {
    return NotFused{std::move(refusal)};
  }
  const Value source =
      lowering.in_layout(norm.source, lowering.blocked(dimensions(norm.source.layout), call.type));
  PackedGemm gemm = pointwise_gemm(call.output, weight[1], lowering.machine());
  gemm.use_strassen = suits_strassen(gemm, lowering.machine());
  return add_packed_gemm(lowering, context, gemm, source, {call.weight, call.bias, &norm},
                         lowering.blocked(call.output, call.type),
                         {{}, {{"onednn", "the batch norm in front would be a pass of its own"}}});
}

Lowered<Done> lower_norm_pointwise_group(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  const auto front = lowering.enter(group.parts[0]);
  if (!front) return front.refusal();
  const Node& node = lowering.node();
  auto norm =
      read_norm(lowering, *front, BoundNode(lowering.graph(), node, find_op(node.op_type)->schema));
  if (!norm) return norm.refusal();
  return lower_with_front(lowering, group.parts[1], *std::move(norm));
}

}  // namespace npu::onednn
