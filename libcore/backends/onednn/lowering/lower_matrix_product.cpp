// SPDX-License-Identifier: Apache-2.0
// Linear layers and pointwise convolutions by the products of our own, where they were chosen.
#include <algorithm>

#include "lowering/convolution.hpp"
#include "lowering/lowering.hpp"
#include "npu/ops/op_catalogue.hpp"

namespace npu::onednn {

namespace {

/// What a product reads beside its source.
struct Factors {
  Value weight;  ///< [columns, inner..]
  std::optional<Value> bias;
  const Lowering::Norm* norm = nullptr;
};

/// The current group's epilogue, if a kernel of our own can do it.
struct Epilogue {
  PostOps post;
  std::vector<EpilogueStep> steps;
};
std::optional<Epilogue> epilogue_of(Lowering& lowering, const Value& source, const Layout& layout) {
  Epilogue result{make_post_ops(lowering, layout, {source}), {}};
  const auto steps = epilogue_steps(result.post, layout);
  if (!steps || result.post.reads.size() > kMaxEpilogueOperands) return std::nullopt;
  result.steps = *steps;
  return result;
}

/// What the step reads, the operands of the epilogue last.
std::vector<Value> reads_of(Lowering& lowering, const Value& source, const Factors& factors,
                            const PostOps& post) {
  std::vector<Value> reads{source, factors.weight};
  if (factors.norm != nullptr) reads.push_back(factors.norm->vectors);
  if (factors.bias) reads.push_back(lowering.plain(*factors.bias));
  for (const PrimitiveOperand& operand : post.reads) reads.push_back(operand.value);
  return reads;
}

/// Adds the kernel, of which shape and steps are set.
std::optional<Value> add_gemm(Lowering& lowering, PackedGemm gemm, const Value& source,
                              Factors factors, const Layout& layout, KernelChoice choice) {
  const auto epilogue = epilogue_of(lowering, source, layout);
  if (!epilogue) return std::nullopt;
  factors.weight =
      ordered_weights(lowering, factors.weight, gemm.weight_floats(), PackedGemmWeights{gemm});
  gemm.epilogue = epilogue->steps;
  gemm.has_bias = factors.bias.has_value();
  gemm.has_norm = factors.norm != nullptr;
  gemm.norm_relu = factors.norm != nullptr && factors.norm->relu;
  const std::vector<Value> reads = reads_of(lowering, source, factors, epilogue->post);
  const Value target = target_of(lowering, epilogue->post, DType::kFloat32, layout);
  const std::size_t scratch = gemm.scratch_bytes();
  lowering.note_choice(std::move(choice));
  lowering.add_kernel(reads, target, std::move(gemm), KernelKind::kCompute, scratch);
  return target;
}

/// The same for a few rows.
std::optional<Value> add_gemv(Lowering& lowering, Gemv gemv, const Value& source, Factors factors,
                              const Layout& layout, KernelChoice choice) {
  const auto epilogue = epilogue_of(lowering, source, layout);
  if (!epilogue) return std::nullopt;
  gemv.epilogue = epilogue->steps;
  gemv.has_bias = factors.bias.has_value();
  factors.weight = lowering.plain(factors.weight);
  const std::vector<Value> reads = reads_of(lowering, source, factors, epilogue->post);
  const Value target = target_of(lowering, epilogue->post, DType::kFloat32, layout);
  lowering.note_choice(std::move(choice));
  lowering.add_kernel(reads, target, std::move(gemv));
  return target;
}

/// Adds the first of the candidates if it is one of our own.
std::optional<Value> add_first(Lowering& lowering, const std::vector<Candidate>& candidates,
                               const Value& source, const Factors& factors, const Layout& layout) {
  const Candidate& first = candidates.front();
  if (const auto* gemv = std::get_if<Gemv>(&first.kernel)) {
    return add_gemv(lowering, *gemv, source, factors, layout, choice_of(candidates));
  }
  if (const auto* gemm = std::get_if<PackedGemm>(&first.kernel)) {
    return add_gemm(lowering, *gemm, source, factors, layout, choice_of(candidates));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> add_matrix_product(Lowering& lowering, const Value& a, const Value& weight,
                                        const std::optional<Value>& bias) {
  const Shape shape = dimensions(a.layout);
  const Shape weight_shape = dimensions(weight.layout);
  if (shape.size() != 2 || weight_shape.size() != 2 || strides_of(a.layout)[1] != 1) {
    return std::nullopt;
  }
  std::vector<Candidate> candidates = choose_product(
      {shape[0], shape[1], weight_shape[0], strides_of(a.layout)[0]}, lowering.machine());
  const auto result = add_first(lowering, candidates, a, {weight, bias},
                                plain_layout({shape[0], weight_shape[0]}, DType::kFloat32));
  if (result) return result;
  if (!std::holds_alternative<std::monostate>(candidates.front().kernel)) {
    refuse_first(candidates, "it does not do all that stands behind the node");
  }
  lowering.note_choice(choice_of(candidates));
  return std::nullopt;
}

std::optional<Value> add_pointwise(Lowering& lowering, const ConvolutionCall& call,
                                   const std::vector<Candidate>& candidates) {
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source =
      lowering.in_layout(call.source, blocked_layout(dimensions(call.source.layout), call.type));
  return add_first(lowering, candidates, source, {call.weight, call.bias},
                   blocked_layout(call.output, call.type));
}

Value add_norm_pointwise(Lowering& lowering, const ConvolutionCall& call,
                         const Lowering::Norm& norm) {
  const Shape weight = dimensions(call.weight.layout);
  if (call.type != DType::kFloat32 || norm.source.type != DType::kFloat32) {
    throw EpilogueRefused{"the kernel of a batch norm and a convolution computes in float32 only"};
  }
  if (!is_pointwise(weight, call.spatial, call.groups) || !lowering.is_constant(call.weight) ||
      !lowering.is_constant(norm.vectors) || is_pinned(lowering.node()) ||
      !suits_norm(pointwise_gemm(call.output, weight[1]), lowering.machine())) {
    throw EpilogueRefused{"the batch norm is no part of the convolution's kernel"};
  }
  const Value source =
      lowering.in_layout(norm.source, blocked_layout(dimensions(norm.source.layout), call.type));
  PackedGemm gemm = pointwise_gemm(call.output, weight[1]);
  gemm.use_strassen = suits_strassen(gemm);
  gemm.threads = lowering.machine().threads;
  const auto result =
      add_gemm(lowering, gemm, source, {call.weight, call.bias, &norm},
               blocked_layout(call.output, call.type),
               {{}, {{"onednn", "the batch norm in front would be a pass of its own"}}});
  if (!result) throw EpilogueRefused{};
  return *result;
}

void lower_norm_pointwise_group(Lowering& lowering, const FusionGroup& group) {
  lowering.enter_part(group.parts[0]);
  const Node& node = lowering.node();
  const Lowering::Norm norm =
      read_norm(lowering, BoundNode(lowering.graph(), node, find_op(node.op_type)->schema));
  lowering.lower_with_front(group.parts[1], norm);
}

}  // namespace npu::onednn
