// SPDX-License-Identifier: Apache-2.0
// Convolutions by implicit GEMM: channels in blocks, weights by taps and panels of target channels.
#include "lowering/convolution.hpp"

namespace npu::onednn {

namespace {

/// Brings [target channels, source channels, taps..] into the kernel's order.
StridedCopy panel_copy(const ImplicitGemm& kernel) {
  const std::int64_t panel = kernel.panel();
  const std::int64_t taps = kernel.all_taps();
  const std::int64_t inputs = kernel.source_channels;
  StridedCopy copy{sizeof(float),
                   {kernel.target_channels / panel, taps, inputs, panel},
                   {panel * inputs * taps, 1, taps, inputs * taps},
                   {taps * inputs * panel, inputs * panel, panel, 1}};
  copy.simplify();
  return copy;
}

}  // namespace

Lowered<Value> add_implicit_gemm(Lowering& lowering, const ConvolutionCall& call,
                                 const std::vector<Candidate>& candidates) {
  ImplicitGemm kernel = std::get<ImplicitGemm>(candidates.front().kernel);
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source =
      lowering.in_layout(call.source, lowering.blocked(dimensions(call.source.layout), call.type));
  const Layout layout = lowering.blocked(call.output, call.type);
  const auto epilogue = bind_epilogue(lowering, layout, {source});
  if (!epilogue) return epilogue.refusal();
  auto steps = steps_of(*epilogue);
  if (!steps) return steps.refusal();
  const auto count =
      static_cast<std::size_t>(kernel.target_channels * kernel.source_channels * kernel.all_taps());
  std::vector<Value> reads{source,
                           ordered_weights(lowering, call.weight, count, panel_copy(kernel))};
  if (call.bias) reads.push_back(*call.bias);
  for (const Value& operand : epilogue->reads()) reads.push_back(operand);
  kernel.epilogue = *std::move(steps);
  kernel.has_bias = call.bias.has_value();
  const Value target = target_of(lowering, epilogue->accumulated, call.type, layout);
  const std::size_t scratch = kernel.scratch_bytes();
  lowering.note_choice(choice_of(candidates));
  lowering.add_kernel(reads, target, std::move(kernel), KernelKind::kCompute, scratch);
  return target;
}

}  // namespace npu::onednn
