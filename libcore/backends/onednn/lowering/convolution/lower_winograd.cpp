// SPDX-License-Identifier: Apache-2.0
// Convolutions by Winograd's algorithm: channels in blocks, weights
// transformed when they are compiled. With dilation, pixels that are a multiple of it apart become
// images of their own; frames of a video are images where they lie.
#include <algorithm>
#include <iterator>
#include <vector>

#include "lowering/convolution/convolution.hpp"

namespace npu::onednn {

namespace {

/// Copies pixels between an image in blocks of channels and the images of its phases, [N, dilation,
/// dilation, blocks, h, w] of which each has those that are a multiple of the dilation apart.
StridedCopy phase_copy(const Shape& image, const std::vector<std::int64_t>& dilation,
                       std::int64_t lanes, bool gathers) {
  constexpr std::size_t kElement = 16;  // bytes
  constexpr std::int64_t kFloats = kElement / sizeof(float);
  const std::int64_t pixel = lanes / kFloats;
  const std::int64_t blocks = image[1] / lanes;
  const std::int64_t h = image[2] / dilation[0];
  const std::int64_t w = image[3] / dilation[1];
  const std::int64_t row = image[3] * pixel;
  const std::int64_t plane = image[2] * row;
  const std::int64_t phase = blocks * h * w * pixel;
  StridedCopy copy{kElement,
                   {image[0], dilation[0], dilation[1], blocks, h, w, pixel},
                   {blocks * plane, row, pixel, plane, dilation[0] * row, dilation[1] * pixel, 1},
                   {dilation[0] * dilation[1] * phase, dilation[1] * phase, phase, h * w * pixel,
                    w * pixel, pixel, 1}};
  if (!gathers) std::swap(copy.source_strides, copy.target_strides);
  return copy;
}

/// The shape of the images of all phases.
Shape phases_of(const Shape& image, const std::vector<std::int64_t>& dilation) {
  return {image[0] * dilation[0] * dilation[1], image[1], image[2] / dilation[0],
          image[3] / dilation[1]};
}

}  // namespace

Lowered<Value> add_winograd(Lowering& lowering, const GroupContext& context,
                            const ConvolutionCall& call, const std::vector<Candidate>& candidates) {
  Winograd kernel = *candidates.front().as<Winograd>();
  // Laid out first: a sum must not overwrite the memory that the source is then read from.
  const Value source =
      lowering.in_layout(call.source, lowering.blocked(dimensions(call.source.layout), call.type));
  const Layout layout = lowering.blocked(call.output, call.type);
  const auto epilogue = own_epilogue(lowering, context, source, layout);
  if (!epilogue) return epilogue.refusal();
  const bool has_phases = !all_are(call.spatial.dilation, 1);
  if (has_phases && (!epilogue->bound.reads().empty() || epilogue->bound.accumulated)) {
    return NotFused{"operands of the epilogue lie like the result, not like its phases"};
  }
  const Value weight =
      ordered_weights(lowering, call.weight, kernel.weight_floats(), WinogradWeights{kernel});
  kernel.epilogue = epilogue->steps;
  kernel.has_bias = call.bias.has_value();
  std::vector<Value> reads{source, weight};
  const std::vector<std::int64_t>& dilation = call.spatial.dilation;
  if (has_phases) {
    const Shape image = dimensions(source.layout);
    reads[0] =
        lowering.temporary(call.type, lowering.blocked(phases_of(image, dilation), call.type));
    lowering.add_kernel({source}, reads[0],
                        phase_copy(image, dilation, lowering.machine().lanes(), true),
                        KernelKind::kReorder);
  }
  if (call.bias) reads.push_back(*call.bias);
  for (const Value& operand : epilogue->bound.reads()) reads.push_back(operand);
  const Value target =
      has_phases ? lowering.temporary(call.type,
                                      lowering.blocked(phases_of(call.output, dilation), call.type))
                 : target_of(lowering, epilogue->bound.accumulated, call.type, layout);
  lowering.add_kernel(reads, target, std::move(kernel), KernelKind::kCompute,
                      choice_of(candidates));
  if (!has_phases) return target;
  const Value result = lowering.temporary(call.type, layout);
  lowering.add_kernel({target}, result,
                      phase_copy(call.output, dilation, lowering.machine().lanes(), false),
                      KernelKind::kReorder);
  return result;
}

}  // namespace npu::onednn
