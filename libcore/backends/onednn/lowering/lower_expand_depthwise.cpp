// SPDX-License-Identifier: Apache-2.0
// Convolutions of one by one with a depthwise convolution behind them, as inverted residuals have
// them: the first is left to the second, which computes both in one kernel. What has to hold for
// the second is checked when the first is met, so that nothing is left that nobody computes.
#include <algorithm>

#include "lowering/convolution.hpp"

namespace npu::onednn {

namespace {

/// In pixels, so that a thread's buffer has a few MiB at most.
constexpr std::int64_t kWidestRow = 8192;

/// A depthwise convolution that the kernel runs, on `channels` channels.
bool suits_depthwise(const Lowering& lowering, const Node& node, TensorId source,
                     std::int64_t channels) {
  const auto reader = convolution_reader(lowering, node, source);
  if (!reader) return false;
  const Shape& weight = reader->weight;
  const Spatial& spatial = reader->spatial;
  return reader->source[3] <= kWidestRow && weight[0] == channels && weight[1] == 1 &&
         weight[2] == weight[3] && reader->groups == channels &&
         ExpandDepthwise::supports(weight[2], spatial.stride[0]) &&
         spatial.stride[0] == spatial.stride[1] && all_are(spatial.dilation, 1) &&
         std::max(spatial.pad_begin[0], spatial.pad_begin[1]) < weight[2] &&
         lowering.dtype(source) == DType::kFloat32;
}

}  // namespace

std::optional<Value> defer_expansion(Lowering& lowering, const ConvolutionCall& call) {
  const Shape weight = dimensions(call.weight.layout);
  if (!lowering.machine().has_avx512() || call.type != DType::kFloat32 || call.groups != 1 ||
      weight.size() != 4 || weight[2] != 1 || weight[3] != 1 || weight[0] % 16 != 0 ||
      !all_are(call.spatial.stride, 1) || !all_are(call.spatial.pad_begin, 0) ||
      !lowering.is_constant(call.weight) || (call.bias && !lowering.is_constant(*call.bias)) ||
      is_pinned(lowering.node())) {
    return std::nullopt;
  }
  const NodeId last = lowering.has_epilogue() ? lowering.group()->nodes.back() : NodeId{};
  const TensorId result = lowering.has_epilogue() ? lowering.graph().node(last).outputs.front()
                                                  : lowering.node().outputs.front();
  const NodeId reader = lowering.sole_reader(result);
  if (reader.value < 0 || lowering.shape(result) != call.output ||
      !suits_depthwise(lowering, lowering.graph().node(reader), result, weight[0])) {
    return std::nullopt;
  }
  const Layout layout = blocked_layout(call.output, call.type);
  const PostOps post = make_post_ops(lowering, layout, {call.source});
  const auto epilogue = epilogue_steps(post, layout);
  if (!epilogue || std::any_of(epilogue->begin(), epilogue->end(),
                               [](const EpilogueStep& step) { return step.has_operand(); })) {
    return std::nullopt;
  }
  lowering.defer(result, {call.source, call.weight, call.bias, *epilogue}, reader);
  return lowering.temporary(call.type, layout);
}

Value add_expand_depthwise(Lowering& lowering, const ConvolutionCall& call,
                           const Lowering::Expansion& expansion) {
  const Shape source = dimensions(expansion.source.layout);
  ExpandDepthwise kernel;
  kernel.batch = source[0];
  kernel.source_channels = source[1];
  kernel.channels = call.output[1];
  for (std::size_t i = 0; i < 2; ++i) {
    kernel.source_extent[i] = source[i + 2];
    kernel.target_extent[i] = call.output[i + 2];
    kernel.pad[i] = call.spatial.pad_begin[i];
  }
  kernel.taps = dimensions(call.weight.layout)[2];
  kernel.stride = call.spatial.stride[0];
  kernel.expand_epilogue = expansion.epilogue;
  kernel.expand_has_bias = expansion.bias.has_value();
  kernel.depthwise_has_bias = call.bias.has_value();
  kernel.threads = lowering.machine().threads;

  const Layout layout = blocked_layout(call.output, call.type);
  const PostOps post = make_post_ops(lowering, layout, {call.source, expansion.source});
  const auto epilogue = epilogue_steps(post, layout);
  if (!epilogue) throw EpilogueRefused{};
  for (const EpilogueStep& step : *epilogue) {
    if (step.has_operand()) throw EpilogueRefused{};
  }
  kernel.depthwise_epilogue = *epilogue;

  const Value input =
      lowering.in_layout(expansion.source, blocked_layout(source, expansion.source.type));
  std::vector<Value> reads{
      input,
      ordered_weights(lowering, expansion.weight,
                      static_cast<std::size_t>(kernel.channels * kernel.source_channels),
                      PanelWeights{kernel.channels, kernel.source_channels}),
      ordered_weights(lowering, call.weight,
                      static_cast<std::size_t>(kernel.channels * kernel.taps * kernel.taps),
                      PanelWeights{kernel.channels, kernel.taps * kernel.taps})};
  if (expansion.bias) reads.push_back(*expansion.bias);
  if (call.bias) reads.push_back(*call.bias);
  const Value target = lowering.temporary(call.type, layout);
  const std::size_t scratch = kernel.scratch_bytes();
  lowering.note_choice({{}, {{"onednn", "it would store what is between the two convolutions"}}});
  lowering.add_kernel(reads, target, std::move(kernel), KernelKind::kCompute, scratch);
  return target;
}

}  // namespace npu::onednn
