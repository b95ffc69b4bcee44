// SPDX-License-Identifier: Apache-2.0
#pragma once

// How kernels of our own that convolve channels in blocks, with weights in an order of their own,
// become a step of the plan.

#include <utility>
#include <vector>

#include "lowering/convolution.hpp"

namespace npu::onednn {

/// Adds the first of the candidates, a `Kernel`, with the current group's epilogue. `order` brings
/// the row-major weights, as many as before, into the kernel's order.
template <typename Kernel>
Lowered<Value> add_own_convolution(Lowering& lowering, const ConvolutionCall& call,
                                   const std::vector<Candidate>& candidates,
                                   const StridedCopy& order) {
  Kernel kernel = std::get<Kernel>(candidates.front().kernel);
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source =
      lowering.in_layout(call.source, lowering.blocked(dimensions(call.source.layout), call.type));
  const Layout layout = lowering.blocked(call.output, call.type);
  const auto epilogue = own_epilogue(lowering, source, layout);
  if (!epilogue) return epilogue.refusal();
  const auto weights = static_cast<std::size_t>(span_elements(call.weight.layout));
  std::vector<Value> reads{source, ordered_weights(lowering, call.weight, weights, order)};
  if (call.bias) reads.push_back(*call.bias);
  for (const Value& operand : epilogue->bound.reads()) reads.push_back(operand);
  kernel.epilogue = epilogue->steps;
  kernel.has_bias = call.bias.has_value();
  const Value target = target_of(lowering, epilogue->bound.accumulated, call.type, layout);
  const std::size_t scratch = kernel.scratch_bytes();
  lowering.note_choice(choice_of(candidates));
  lowering.add_kernel(reads, target, std::move(kernel), KernelKind::kCompute, scratch);
  return target;
}

}  // namespace npu::onednn
