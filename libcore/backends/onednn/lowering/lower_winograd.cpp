// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's algorithm: channels in blocks of 16, weights transformed when
// they are compiled.
#include <algorithm>
#include <iterator>
#include <vector>

#include "lowering/convolution.hpp"

namespace npu::onednn {

std::int64_t convolution_depth(const Graph& graph) {
  std::vector<std::int64_t> depths(graph.tensors().size(), 0);
  std::int64_t deepest = 1;
  for (const Node& node : graph.nodes()) {
    std::int64_t depth = 0;
    for (const TensorId id : node.inputs) {
      depth = std::max(depth, depths[index_of(id)]);
    }
    if (node.op_type.starts_with("aten.conv") && node.inputs.size() > 1) {
      const Shape& weight = graph.tensor(node.inputs[1]).shape;
      const bool has_taps =
          std::any_of(weight.begin() + std::min<std::ptrdiff_t>(2, std::ssize(weight)),
                      weight.end(), [](std::int64_t extent) { return extent > 1; });
      if (has_taps) ++depth;
    }
    for (const TensorId id : node.outputs) depths[index_of(id)] = depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

Lowered<Value> add_winograd(Lowering& lowering, const ConvolutionCall& call,
                            const std::vector<Candidate>& candidates) {
  Winograd kernel = std::get<Winograd>(candidates.front().kernel);
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source =
      lowering.in_layout(call.source, blocked_layout(dimensions(call.source.layout), call.type));
  const Layout layout = blocked_layout(call.output, call.type);
  const auto epilogue = bind_epilogue(lowering, layout, {source});
  if (!epilogue) return epilogue.refusal();
  auto steps = steps_of(*epilogue);
  if (!steps) return steps.refusal();
  const Value weight =
      ordered_weights(lowering, call.weight, kernel.weight_floats(), WinogradWeights{kernel});
  kernel.epilogue = *std::move(steps);
  kernel.has_bias = call.bias.has_value();
  std::vector<Value> reads{source, weight};
  if (call.bias) reads.push_back(*call.bias);
  for (const Value& operand : epilogue->reads()) reads.push_back(operand);
  const Value target = target_of(lowering, epilogue->accumulated, call.type, layout);
  const std::size_t scratch = kernel.scratch_bytes();
  lowering.note_choice(choice_of(candidates));
  lowering.add_kernel(reads, target, std::move(kernel), KernelKind::kCompute, scratch);
  return target;
}

}  // namespace npu::onednn
