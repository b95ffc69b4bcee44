// SPDX-License-Identifier: Apache-2.0
// Linear layers and pointwise convolutions by the products of our own, where they were chosen.
#include <algorithm>

#include "lowering/convolution.hpp"
#include "lowering/lowering.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::onednn {

namespace {

/// What a product reads beside its source.
struct Factors {
  Value weight;  ///< [columns, inner..]
  std::optional<Value> bias;
  const Lowering::Norm* norm = nullptr;
};

/// What the step reads, the operands of the epilogue last.
std::vector<Value> reads_of(Lowering& lowering, const Value& source, const Factors& factors,
                            const OwnEpilogue& epilogue) {
  std::vector<Value> reads{source, factors.weight};
  if (factors.norm != nullptr) reads.push_back(factors.norm->vectors);
  if (factors.bias) reads.push_back(lowering.plain(*factors.bias));
  for (const Value& operand : epilogue.bound.reads()) reads.push_back(operand);
  return reads;
}

/// Constant weights, rounded to a type of 16 bits, if that is what a product reads.
Value stored_as(Lowering& lowering, const Value& weight, DType type) {
  if (type == DType::kFloat32) return weight;
  const std::int64_t count = span_elements(weight.layout);
  const Value result = lowering.temporary(type, plain_layout({count}, type));
  lowering.add_kernel({weight}, result, HalfWeights{count, type}, KernelKind::kReorder);
  return result;
}

/// Adds a kernel of which all is set but its epilogue and whether there is a bias. `reads` are
/// reads_of() and what else it reads.
template <typename Product>
Value add_product(Lowering& lowering, Product product, const std::vector<Value>& reads,
                  const Factors& factors, const OwnEpilogue& epilogue, const Layout& layout,
                  KernelChoice choice) {
  product.epilogue = epilogue.steps;
  product.has_bias = factors.bias.has_value();
  const Value target = target_of(lowering, epilogue.bound.accumulated, DType::kFloat32, layout);
  std::size_t scratch = 0;
  if constexpr (requires { product.scratch_bytes(); }) scratch = product.scratch_bytes();
  lowering.note_choice(std::move(choice));
  lowering.add_kernel(reads, target, std::move(product), KernelKind::kCompute, scratch);
  return target;
}

/// Adds the kernel, of which the shape is set.
Lowered<Value> add_gemm(Lowering& lowering, PackedGemm gemm, const Value& source, Factors factors,
                        const Layout& layout, KernelChoice choice) {
  const auto epilogue = own_epilogue(lowering, source, layout);
  if (!epilogue) return epilogue.refusal();
  factors.weight =
      ordered_weights(lowering, factors.weight, gemm.weight_floats(), PackedGemmWeights{gemm});
  factors.weight = stored_as(lowering, factors.weight, gemm.weight_type);
  gemm.has_norm = factors.norm != nullptr;
  gemm.norm_relu = factors.norm != nullptr && factors.norm->relu;
  return add_product(lowering, std::move(gemm), reads_of(lowering, source, factors, *epilogue),
                     factors, *epilogue, layout, std::move(choice));
}

/// The same for one in float16.
Lowered<Value> add_half_gemm(Lowering& lowering, HalfGemm gemm, const Value& source,
                             Factors factors, const Layout& layout, KernelChoice choice) {
  const auto epilogue = own_epilogue(lowering, source, layout);
  if (!epilogue) return epilogue.refusal();
  const Value plain = lowering.plain(factors.weight);
  const auto count = static_cast<std::int64_t>(gemm.weight_halves());
  const Value weight = lowering.temporary(DType::kFloat16, plain_layout({count}, DType::kFloat16));
  lowering.add_kernel({plain}, weight, HalfGemmWeights{gemm.columns, gemm.inner, gemm.threads},
                      KernelKind::kReorder);
  const Value scale =
      ordered_weights(lowering, plain, gemm.scales(), ColumnScales{gemm.columns, gemm.inner});
  factors.weight = weight;
  std::vector<Value> reads = reads_of(lowering, source, factors, *epilogue);
  reads.insert(reads.begin() + 2, scale);
  return add_product(lowering, std::move(gemm), reads, factors, *epilogue, layout,
                     std::move(choice));
}

/// The same for a few rows.
Lowered<Value> add_gemv(Lowering& lowering, Gemv gemv, const Value& source, Factors factors,
                        const Layout& layout, KernelChoice choice) {
  const auto epilogue = own_epilogue(lowering, source, layout);
  if (!epilogue) return epilogue.refusal();
  factors.weight = stored_as(lowering, lowering.plain(factors.weight), gemv.weight_type);
  return add_product(lowering, std::move(gemv), reads_of(lowering, source, factors, *epilogue),
                     factors, *epilogue, layout, std::move(choice));
}

/// Adds the first of the candidates, a Gemv, a HalfGemm or a PackedGemm.
Lowered<Value> add_first(Lowering& lowering, const std::vector<Candidate>& candidates,
                         const Value& source, const Factors& factors, const Layout& layout) {
  const Candidate& first = candidates.front();
  if (const auto* gemv = std::get_if<Gemv>(&first.kernel)) {
    return add_gemv(lowering, *gemv, source, factors, layout, choice_of(candidates));
  }
  if (const auto* half = std::get_if<HalfGemm>(&first.kernel)) {
    return add_half_gemm(lowering, *half, source, factors, layout, choice_of(candidates));
  }
  return add_gemm(lowering, std::get<PackedGemm>(first.kernel), source, factors, layout,
                  choice_of(candidates));
}

}  // namespace

Lowered<Value> add_packed_gemm(Lowering& lowering, const PackedGemm& gemm, const Value& source,
                               const Value& weight, const std::optional<Value>& bias,
                               const Layout& layout, KernelChoice choice) {
  return add_gemm(lowering, gemm, source, {weight, bias}, layout, std::move(choice));
}

std::optional<Value> add_matrix_product(Lowering& lowering, const Value& a, const Value& weight,
                                        const std::optional<Value>& bias, bool wants_blocks) {
  const Shape shape = dimensions(a.layout);
  const Shape weight_shape = dimensions(weight.layout);
  if (shape.size() != 2 || weight_shape.size() != 2) return std::nullopt;
  const std::int64_t lanes = lowering.machine().lanes();
  const std::int64_t rows = shape[0];
  const std::int64_t columns = weight_shape[0];
  ProductShape product{rows, shape[1], columns, strides_of(a.layout)[0]};
  if (!is_strided(a.layout)) {
    product.source_block = strides_of(a.layout)[1];
  } else if (strides_of(a.layout)[1] != 1) {
    return std::nullopt;
  }
  Layout layout = plain_layout({rows, columns}, DType::kFloat32);
  if (wants_blocks && columns % lanes == 0) {
    layout = blocked_matrix(rows, columns, DType::kFloat32, lanes);
    product.blocked_target = true;
  }
  std::vector<Candidate> candidates =
      choose_product(product, lowering.epilogue(), lowering.machine());
  while (candidates.front().is_own()) {
    auto result = add_first(lowering, candidates, a, {weight, bias}, layout);
    if (result) return *std::move(result);
    refuse_first(candidates, result.refusal().reason);
  }
  lowering.note_choice(choice_of(candidates));
  return std::nullopt;
}

Lowered<Value> add_pointwise(Lowering& lowering, const ConvolutionCall& call,
                             const std::vector<Candidate>& candidates) {
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source =
      lowering.in_layout(call.source, lowering.blocked(dimensions(call.source.layout), call.type));
  return add_first(lowering, candidates, source, {call.weight, call.bias},
                   lowering.blocked(call.output, call.type));
}

Lowered<Value> add_norm_pointwise(Lowering& lowering, const ConvolutionCall& call,
                                  const Lowering::Norm& norm) {
  const Shape weight = dimensions(call.weight.layout);
  if (call.type != DType::kFloat32 || norm.source.type != DType::kFloat32) {
    return NotFused{"the kernel of a batch norm and a convolution computes in float32 only"};
  }
  if (!is_pointwise(weight, call.spatial, call.groups) || !lowering.is_constant(call.weight) ||
      !lowering.is_constant(norm.vectors) || is_pinned(lowering.node()) ||
      !suits_norm(pointwise_gemm(call.output, weight[1], lowering.machine()), lowering.machine())) {
    return NotFused{"the batch norm is no part of the convolution's kernel"};
  }
  if (auto refusal = operand_kernel_refusal(lowering.epilogue()); !refusal.empty()) {
    return NotFused{std::move(refusal)};
  }
  const Value source =
      lowering.in_layout(norm.source, lowering.blocked(dimensions(norm.source.layout), call.type));
  PackedGemm gemm = pointwise_gemm(call.output, weight[1], lowering.machine());
  gemm.use_strassen = suits_strassen(gemm);
  return add_gemm(lowering, gemm, source, {call.weight, call.bias, &norm},
                  lowering.blocked(call.output, call.type),
                  {{}, {{"onednn", "the batch norm in front would be a pass of its own"}}});
}

Lowered<Done> lower_norm_pointwise_group(Lowering& lowering, const FusionGroup& group) {
  if (auto done = lowering.enter_part(group.parts[0]); !done) return done;
  const Node& node = lowering.node();
  auto norm = read_norm(lowering, BoundNode(lowering.graph(), node, find_op(node.op_type)->schema));
  if (!norm) return norm.refusal();
  return lowering.lower_with_front(group.parts[1], *std::move(norm));
}

}  // namespace npu::onednn
