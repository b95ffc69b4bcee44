// SPDX-License-Identifier: Apache-2.0
// Squeeze and excitation as one kernel of this backend.
#include "lowering/convolution/convolution.hpp"
#include "lowering/engine/channel_layout.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

/// A pointwise convolution on one pixel.
struct Layer {
  Value weight{};  ///< plain float32, [out, in, 1, 1]
  std::optional<Value> bias;
};

Lowered<Layer> read_layer(Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const BoundNode bound(lowering.graph(), node, find_op(node.op_type)->schema);
  const bool is_transposed =
      node.op_type == "aten.convolution.default" && bound.boolean("transposed");
  if (is_transposed || bound.integer("groups") != 1 ||
      !all_are(spatial_argument(lowering, bound, "padding", 2, 0), 0)) {
    return NotFused{"a convolution of the gate has groups, padding, or is transposed"};
  }
  Layer layer;
  layer.weight =
      lowering.plain(lowering.operand(tensor_argument(lowering, bound, "weight"), DType::kFloat32));
  if (const auto bias = bound.tensor("bias")) {
    layer.bias = lowering.plain(lowering.operand(*bias, DType::kFloat32));
  }
  if (!lowering.is_constant(layer.weight)) return NotFused{"a weight of the gate is not constant"};
  return layer;
}

EpilogueStep activation_of(FusionRole role) {
  if (role == FusionRole::kSilu) return {EpilogueStep::Kind::kSwish, 1.0F, 0.0F};
  if (role == FusionRole::kHardSwish) return {EpilogueStep::Kind::kHardSwish, 0.0F, 0.0F};
  return {EpilogueStep::Kind::kRelu, 0.0F, 0.0F};
}

}  // namespace

Lowered<Done> lower_squeeze_excite_group(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  const Graph& graph = lowering.graph();
  const Node& product = graph.node(group.nodes[5]);
  const TensorId input = graph.node(group.nodes[0]).inputs.front();
  const Shape& shape = lowering.shape(input);
  const DType type = context.compute_type;
  if (type != DType::kFloat32 && type != DType::kBFloat16) {
    return NotFused{"the kernel computes in float32 and bfloat16 only"};
  }
  const auto read_hidden = read_layer(lowering, group.nodes[1]);
  if (!read_hidden) return read_hidden.refusal();
  const auto read_gate = read_layer(lowering, group.nodes[3]);
  if (!read_gate) return read_gate.refusal();
  const Layer& hidden = *read_hidden;
  const Layer& gate = *read_gate;
  const Shape hidden_shape = dimensions(hidden.weight.layout);
  if (hidden_shape[1] != shape[1] ||
      dimensions(gate.weight.layout) != Shape{shape[1], hidden_shape[0], 1, 1}) {
    return NotFused{"the gate's weights do not fit its channels"};
  }
  Value source = lowering.operand(input, type);
  auto space = channel_layout(source.layout);
  const std::int64_t lanes = lowering.machine().lanes();
  const auto is_last = [&] {
    return space && space->lanes == shape[1] && shape[1] > lanes && shape[1] % lanes == 0;
  };
  const auto fits = [&] {
    return is_last() || (space && SqueezeExcite::supports(space->lanes, lowering.machine().isa) &&
                         space->channels() == shape[1]);
  };
  if (!fits() && lowering.machine().has_avx2()) {
    source = lowering.in_layout(source, lowering.blocked(shape, type));
    space = channel_layout(source.layout);
  }
  if (!fits()) return NotFused{"the channels do not lie in whole vectors"};
  SqueezeExcite kernel;
  kernel.type = type;
  kernel.batch = shape[0];
  kernel.channels = shape[1];
  kernel.lanes = lanes;
  kernel.channels_last = is_last();
  kernel.spatial = space->spatial;
  kernel.hidden = hidden_shape[0];
  kernel.activation = activation_of(find_op(graph.node(group.nodes[2]).op_type)->role);
  kernel.hard_gate = functional_name(graph.node(group.nodes[4]).op_type) == "hardsigmoid";
  kernel.has_hidden_bias = hidden.bias.has_value();
  kernel.has_gate_bias = gate.bias.has_value();
  kernel.threads = lowering.machine().threads;

  const Value ordered = lowering.temporary(DType::kFloat32, gate.weight.layout);
  lowering.add_kernel({gate.weight}, ordered,
                      GateWeights{kernel.channels, kernel.lanes, kernel.hidden},
                      KernelKind::kReorder);
  std::vector<Value> reads{source, hidden.weight, ordered};
  if (hidden.bias) reads.push_back(*hidden.bias);
  if (gate.bias) reads.push_back(*gate.bias);
  const bool in_place = lowering.can_overwrite(source);
  if (in_place) lowering.note_overwritten(source);
  const Value target = in_place ? source : lowering.temporary(type, source.layout);
  lowering.add_kernel(reads, target, kernel);
  lowering.define_computed(context, product.outputs.front(), shape, lowering.dtype(input), target);
  return Done{};
}

}  // namespace npu::onednn
