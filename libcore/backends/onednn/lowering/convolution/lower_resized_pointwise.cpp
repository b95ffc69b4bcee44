// SPDX-License-Identifier: Apache-2.0
// Interpolations of parts of the channels and the pointwise convolution behind them, as heads that
// join the levels of a pyramid have them. Both are linear, one in space and one in channels, so
// that they may change places: each part is multiplied with its columns of the weights where it has
// few pixels, and the results are interpolated and added up in the convolution's result. In real
// numbers that is the same; sums are in another order. O(pixels of the parts * channels * channels
// of the result + pixels of the result * channels of the result * parts).
#include "lowering/convolution/convolution.hpp"
#include "lowering/movement/movement.hpp"
#include "lowering/product/choose_product.hpp"
#include "lowering/sampling/sampling.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kChannelStep = 16;  // of a product's extents

/// The product of a part as it is, in blocks of channels.
Lowered<Value> add_part(Lowering& lowering, const GroupContext& context,
                        const ConvolutionCall& call, const Value& source, const Value& weight,
                        const std::optional<Value>& bias) {
  const Shape from = dimensions(source.layout);
  Shape shape = from;
  shape[1] = call.output[1];
  PackedGemm gemm = pointwise_gemm(shape, from[1], lowering.machine());
  gemm.use_strassen = suits_strassen(gemm, lowering.machine());
  Value read = source;
  if (source.layout == channels_last_layout(from, source.type)) {
    gemm.source = {gemm.rows * gemm.inner, gemm.inner, lowering.machine().lanes()};
  } else {
    read = lowering.in_layout(source, lowering.blocked(from, source.type));
  }
  return add_packed_gemm(lowering, context, gemm, read, {weight, bias},
                         lowering.blocked(shape, call.type),
                         {{}, {{"onednn", "it would read the parts interpolated"}}});
}

void add_interpolated(Lowering& lowering, Resample kernel, const Value& source,
                      const Value& target) {
  const Shape shape = dimensions(source.layout);
  const std::int64_t lanes = lowering.machine().lanes();
  kernel.planes = shape[0] * shape[1] / lanes;
  kernel.lanes = lanes;
  kernel.type = source.type;
  kernel.threads = lowering.machine().threads;
  lowering.add_kernel({source}, target, std::move(kernel));
}

}  // namespace

Lowered<Done> lower_resized_pointwise_group(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  const Graph& graph = lowering.graph();
  const auto joins = [&](NodeId id) {
    return id.valid() && std::find(group.nodes.begin(), group.nodes.end(), id) != group.nodes.end();
  };
  const Node& convolution = graph.node(group.parts.back().nodes.front());
  const Node& cat = graph.node(graph.tensor(convolution.inputs.front()).producer);
  Resized resized;
  for (const TensorId id : cat.inputs) {
    const NodeId producer = graph.tensor(id).producer;
    if (!joins(producer)) {
      Resample copy;
      copy.taps[0].clear();
      resized.parts.push_back({lowering.operand(id, DType::kFloat32), std::move(copy)});
      continue;
    }
    ResampleCall call = read_resample(lowering, bound(graph, graph.node(producer)));
    resized.parts.push_back(
        {lowering.operand(call.input, DType::kFloat32), std::move(call.kernel)});
  }
  resized.source = resized.parts.front().source;
  resized.source.layout = plain_layout(lowering.shape(cat.outputs.front()), resized.source.type);
  return lower_with_front(lowering, group.parts.back(), std::move(resized));
}

Lowered<Value> add_resized_pointwise(Lowering& lowering, const GroupContext& context,
                                     const ConvolutionCall& call, const Resized& resized) {
  const Shape weight = dimensions(call.weight.layout);
  if (call.type != DType::kFloat32 || !lowering.is_constant(call.weight) ||
      !is_pointwise(weight, call.spatial, call.groups) || weight[0] % kChannelStep != 0 ||
      is_pinned(lowering.node())) {
    return NotFused{"the interpolations do not change places with the convolution"};
  }
  bool has_relu = false;
  for (const EpilogueOp& op : context.epilogue.ops) {
    if (!op.step || !op.step->is_plain_relu()) {
      return NotFused{"the kernel of an interpolation does not compute '" + std::string(op.op) +
                      "' behind it"};
    }
    has_relu = true;
  }
  // The part that needs no interpolation comes first: its product is where the others are added.
  std::vector<std::size_t> order;
  std::vector<std::int64_t> begins{0};
  for (std::size_t i = 0; i < resized.parts.size(); ++i) {
    const auto& part = resized.parts[i];
    const Shape shape = dimensions(part.source.layout);
    if (part.source.type != DType::kFloat32 || shape[1] % kChannelStep != 0) {
      return NotFused{"parts of other types, or of other channels than multiples of 16"};
    }
    begins.push_back(begins.back() + shape[1]);
    const bool is_copy = part.resample.taps[0].empty() || part.resample.is_copy();
    order.insert(is_copy ? order.begin() : order.end(), i);
  }
  const auto is_copy = [&](std::size_t i) {
    const Resample& kernel = resized.parts[i].resample;
    return kernel.taps[0].empty() || kernel.is_copy();
  };
  if (order.size() < 2 || is_copy(order[1])) {
    return NotFused{"more than one part is not interpolated"};
  }
  GroupContext bare = context;  // the last interpolation has the ReLU
  bare.epilogue = {};
  const Value matrix = lowering.reshaped(call.weight, {weight[0], weight[1]});
  std::optional<Value> target;
  for (const std::size_t i : order) {
    const auto& part = resized.parts[i];
    const Value columns = sliced(lowering, matrix, 1, begins[i], begins[i + 1] - begins[i]);
    const auto product = add_part(lowering, bare, call, part.source, lowering.plain(columns),
                                  target ? std::nullopt : call.bias);
    if (!product) return product.refusal();
    if (is_copy(i)) {
      target = *product;
      continue;
    }
    Resample kernel = part.resample;
    kernel.adds = target.has_value();
    kernel.relu = has_relu && i == order.back();
    if (!target) target = lowering.temporary(call.type, lowering.blocked(call.output, call.type));
    add_interpolated(lowering, std::move(kernel), *product, *target);
  }
  return *target;
}

}  // namespace npu::onednn
