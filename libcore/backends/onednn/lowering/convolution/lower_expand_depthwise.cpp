// SPDX-License-Identifier: Apache-2.0
// A pointwise convolution and the depthwise convolution behind it, as inverted residuals have
// them, in one kernel that never stores what is between the two.
#include "lowering/convolution/convolution.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::onednn {

namespace {

/// What stands behind an anchor, as steps without operands.
Lowered<std::vector<EpilogueStep>> plain_steps(const Epilogue& epilogue) {
  if (auto refusal = plain_kernel_refusal(epilogue); !refusal.empty()) {
    return NotFused{std::move(refusal)};
  }
  std::vector<EpilogueStep> steps;
  for (const EpilogueOp& op : epilogue.ops) steps.push_back(*op.step);
  return steps;
}

/// Whether the kernel computes in `type`, with so many channels of the source. Products of tiles
/// take less time than the kernel's pairs, what is stored between the convolutions included.
bool computes_in(const Lowering& lowering, DType type, std::int64_t channels) {
  const Machine& machine = lowering.machine();
  if (type == DType::kFloat32) return machine.has_avx512() || channels % machine.lanes() == 0;
  return type == DType::kBFloat16 && machine.multiplies_bfloat16 && !machine.multiplies_tiles &&
         channels % 2 == 0;
}

/// The convolution of one by one.
Lowered<Expansion> read_expansion(Lowering& lowering, const GroupContext& context,
                                  const Node& node) {
  const auto read = read_convolution(
      lowering, context, BoundNode(lowering.graph(), node, find_op(node.op_type)->schema));
  if (!read) return read.refusal();
  const ConvolutionCall& call = *read;
  const Shape weight = dimensions(call.weight.layout);
  if (!computes_in(lowering, call.type, weight[1])) {
    return NotFused{
        "the kernel of both convolutions computes in float32, without AVX-512 of channels that "
        "fill "
        "vectors, or in bfloat16 where the CPU multiplies pairs of such numbers but not tiles and "
        "the channels are even"};
  }
  if (call.groups != 1 || weight.size() != 4 || weight[2] != 1 || weight[3] != 1 ||
      weight[0] % lowering.machine().lanes() != 0 || !all_are(call.spatial.stride, 1) ||
      !all_are(call.spatial.pad_begin, 0) || !lowering.is_constant(call.weight) ||
      (call.bias && !lowering.is_constant(*call.bias)) || is_pinned(node)) {
    return NotFused{"the first convolution is no part of the second one's kernel"};
  }
  auto steps = plain_steps(context.epilogue);
  if (!steps) return steps.refusal();
  return Expansion{call.source, call.weight, call.bias, *std::move(steps)};
}

bool is_depthwise_part(Lowering& lowering, const ConvolutionCall& call, DType type) {
  const Shape weight = dimensions(call.weight.layout);
  const Spatial& spatial = call.spatial;
  return call.type == type && weight.size() == 4 && weight[1] == 1 && weight[0] == call.groups &&
         weight[2] == weight[3] && spatial.stride[0] == spatial.stride[1] &&
         all_are(spatial.dilation, 1) && spatial.pad_begin == spatial.pad_end &&
         lowering.is_constant(call.weight) && (!call.bias || lowering.is_constant(*call.bias)) &&
         !is_pinned(lowering.node());
}

}  // namespace

Lowered<Done> lower_expand_depthwise_group(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  const auto front = lowering.enter(group.parts[0]);
  if (!front) return front.refusal();
  auto expansion = read_expansion(lowering, *front, lowering.node());
  if (!expansion) return expansion.refusal();
  return lower_with_front(lowering, group.parts[1], *std::move(expansion));
}

Lowered<Value> add_expand_depthwise(Lowering& lowering, const GroupContext& context,
                                    const ConvolutionCall& call, const Expansion& expansion) {
  if (!is_depthwise_part(lowering, call, expansion.weight.type)) {
    return NotFused{"the kernel of both convolutions does not compute the second one"};
  }
  auto steps = plain_steps(context.epilogue);
  if (!steps) return steps.refusal();
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
  kernel.bfloat16 = call.type == DType::kBFloat16;
  kernel.expand_epilogue = expansion.epilogue;
  kernel.expand_has_bias = expansion.bias.has_value();
  kernel.depthwise_has_bias = call.bias.has_value();
  kernel.threads = lowering.machine().threads;
  kernel.isa = lowering.machine().isa;

  const Layout layout = lowering.blocked(call.output, call.type);
  kernel.depthwise_epilogue = *std::move(steps);

  const std::int64_t panel = 2 * lowering.machine().lanes();
  const PanelWeights expand{kernel.channels, kernel.source_channels, panel, kernel.bfloat16};
  const PanelWeights filter{kernel.channels, kernel.taps * kernel.taps, panel};
  const auto in_panels = [&](const Value& weight, const PanelWeights& order) {
    return ordered_weights(lowering, lowering.in_type(weight, DType::kFloat32), order.floats(),
                           order);
  };
  std::vector<Value> reads{
      lowering.in_layout(expansion.source, lowering.blocked(source, call.type)),
      in_panels(expansion.weight, expand), in_panels(call.weight, filter)};
  if (expansion.bias) reads.push_back(*expansion.bias);
  if (call.bias) reads.push_back(*call.bias);
  const Value target = lowering.temporary(call.type, layout);
  lowering.add_kernel(reads, target, std::move(kernel), KernelKind::kCompute,
                      {{}, {{"onednn", "it would store what is between the two convolutions"}}});
  return target;
}

}  // namespace npu::onednn
