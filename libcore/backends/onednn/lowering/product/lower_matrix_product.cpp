// SPDX-License-Identifier: Apache-2.0
// Products with constant weights by our kernels, where they were chosen.
#include <algorithm>
#include <utility>

#include "lowering/product/choose_product.hpp"
#include "lowering/product/product.hpp"

namespace npu::onednn {

namespace {

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
  lowering.add_kernel(reads, target, std::move(product), KernelKind::kCompute, std::move(choice));
  return target;
}

/// The same for one in float16.
Lowered<Value> add_half_gemm(Lowering& lowering, const GroupContext& context, HalfGemm gemm,
                             const Value& source, Factors factors, const Layout& layout,
                             KernelChoice choice) {
  const auto epilogue = own_epilogue(lowering, context, source, layout);
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
Lowered<Value> add_gemv(Lowering& lowering, const GroupContext& context, Gemv gemv,
                        const Value& source, Factors factors, const Layout& layout,
                        KernelChoice choice) {
  const auto epilogue = own_epilogue(lowering, context, source, layout);
  if (!epilogue) return epilogue.refusal();
  factors.weight = stored_as(lowering, lowering.plain(factors.weight), gemv.weight_type);
  return add_product(lowering, std::move(gemv), reads_of(lowering, source, factors, *epilogue),
                     factors, *epilogue, layout, std::move(choice));
}

}  // namespace

Value ordered_weights(Lowering& lowering, const Value& weight, std::size_t count, Kernel order) {
  const Value result = lowering.temporary(
      DType::kFloat32, plain_layout({static_cast<std::int64_t>(count)}, DType::kFloat32));
  lowering.add_kernel({lowering.plain(weight)}, result, std::move(order), KernelKind::kReorder);
  return result;
}

Lowered<Value> add_packed_gemm(Lowering& lowering, const GroupContext& context, PackedGemm gemm,
                               const Value& source, Factors factors, const Layout& layout,
                               KernelChoice choice) {
  const auto epilogue = own_epilogue(lowering, context, source, layout);
  if (!epilogue) return epilogue.refusal();
  factors.weight =
      ordered_weights(lowering, factors.weight, gemm.weight_floats(), PackedGemmWeights{gemm});
  factors.weight = stored_as(lowering, factors.weight, gemm.weight_type);
  gemm.has_norm = factors.norm != nullptr;
  gemm.norm_relu = factors.norm != nullptr && factors.norm->relu;
  return add_product(lowering, std::move(gemm), reads_of(lowering, source, factors, *epilogue),
                     factors, *epilogue, layout, std::move(choice));
}

Lowered<Value> add_first_product(Lowering& lowering, const GroupContext& context,
                                 const std::vector<Candidate>& candidates, const Value& source,
                                 const Factors& factors, const Layout& layout) {
  const Candidate& first = candidates.front();
  if (const auto* gemv = first.as<Gemv>()) {
    return add_gemv(lowering, context, *gemv, source, factors, layout, choice_of(candidates));
  }
  if (const auto* half = first.as<HalfGemm>()) {
    return add_half_gemm(lowering, context, *half, source, factors, layout, choice_of(candidates));
  }
  return add_packed_gemm(lowering, context, *first.as<PackedGemm>(), source, factors, layout,
                         choice_of(candidates));
}

OwnProduct add_matrix_product(Lowering& lowering, const GroupContext& context, const Value& a,
                              const Value& weight, const std::optional<Value>& bias,
                              bool wants_blocks) {
  const Shape shape = dimensions(a.layout);
  const Shape weight_shape = dimensions(weight.layout);
  if (shape.size() != 2 || weight_shape.size() != 2) return {};
  const std::int64_t lanes = lowering.machine().lanes();
  const std::int64_t rows = shape[0];
  const std::int64_t columns = weight_shape[0];
  ProductShape product{rows, shape[1], columns, strides_of(a.layout)[0]};
  product.entries = lowering.rows_in_entries(rows);
  if (!is_strided(a.layout)) {
    product.source_block = strides_of(a.layout)[1];
  } else if (strides_of(a.layout)[1] != 1) {
    return {};
  }
  Layout layout = plain_layout({rows, columns}, DType::kFloat32);
  if (wants_blocks && columns % lanes == 0) {
    layout = blocked_matrix(rows, columns, DType::kFloat32, lanes);
    product.blocked_target = true;
  }
  std::vector<Candidate> candidates = choose_product(product, context.epilogue, lowering.machine());
  while (candidates.front().is_own() && candidates.front().cycles) {
    auto result = add_first_product(lowering, context, candidates, a, {weight, bias}, layout);
    if (result) return {*std::move(result), {}};
    refuse_first(candidates, result.refusal().reason);
  }
  // Where entries share an order of weights, oneDNN's is what is left, not what is next.
  std::stable_partition(candidates.begin(), candidates.end(),
                        [](const Candidate& each) { return each.name == kOneDnn; });
  return {std::nullopt, choice_of(candidates)};
}

}  // namespace npu::onednn
