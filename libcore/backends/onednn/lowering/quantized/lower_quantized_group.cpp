// SPDX-License-Identifier: Apache-2.0
// Groups of an op on dequantized tensors and the quantization behind it, without a float tensor in
// memory, but for an attention's scores. Convolutions and products are primitives
// (lower_quantized_product.cpp, lower_quantized_attention.cpp); a sum or product
// of two tensors is one of our kernels; ops that only move or compare elements run on the numbers
// as they are; and functions of one operand, like a change of scale, are tables of 256 numbers.
// Tables are made when a model is compiled, by the very kernels that would compute the function on
// floats, so they are exact.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lowering/elementwise/elementwise.hpp"
#include "lowering/engine/node_functions.hpp"
#include "lowering/engine/op_table.hpp"
#include "lowering/quantized/quantized.hpp"
#include "lowering/quantized/quantized_op.hpp"
#include "lowering/sampling/sampling.hpp"
#include "ops/broadcast_runs.hpp"
#include "ops/moved_ops.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::onednn {

namespace {

Lowered<QuantizedTarget> read_target(const Lowering& lowering, NodeId id) {
  const Node& node = lowering.graph().node(id);
  const BoundNode arguments = bound(lowering.graph(), node);
  if (arguments.find("scale") == nullptr)
    return NotFused{"the result has a scale for each channel"};
  QuantizedTarget target;
  target.node = &node;
  target.id = id;
  target.type = lowering.dtype(node.outputs.front());
  target.scale = static_cast<float>(conversion_number(lowering, arguments, "scale"));
  target.zero_point = conversion_integer(lowering, arguments, "zero_point");
  target.least = conversion_integer(lowering, arguments, "quant_min");
  target.most = conversion_integer(lowering, arguments, "quant_max");
  if (!is_byte(target.type)) return NotFused{"the result is not int8 or uint8"};
  const auto [low, high] = range_of(target.type);
  if (!std::isnormal(target.scale) || target.scale < 0.0F || target.least < low ||
      target.most > high || target.least > target.most || target.zero_point < low ||
      target.zero_point > high) {
    return NotFused{"the scale, the zero point or the range of the result is unusual"};
  }
  return target;
}

/// The functions that a node of one operand stands for.
std::vector<Eltwise> functions_of(const Lowering& lowering, const Node& node) {
  const FusionRole role = fusion_role(node.op_type);
  const BoundNode arguments = bound(lowering.graph(), node);
  if (role >= FusionRole::kAdd && role <= FusionRole::kDiv) {
    return {number_function(lowering, arguments)};
  }
  if (role == FusionRole::kHardSigmoid) {
    // The bounds first, so that the linear part is one with the quantization behind it.
    return {{dnnl::algorithm::eltwise_clip, -3.0F, 3.0F},
            {dnnl::algorithm::eltwise_linear, 1.0F / 6.0F, 0.5F}};
  }
  return unary_functions(lowering, arguments);
}

/// What stands between the op and the quantization.
Lowered<QuantizedOp> read_op(Lowering& lowering, const KernelGroup& group) {
  const Graph& graph = lowering.graph();
  QuantizedOp op;
  op.node = &graph.node(group.nodes.front());
  op.result = graph.node(group.nodes.back()).outputs.front();
  TensorId value = op.node->outputs.front();
  for (std::size_t i = 1; i < group.nodes.size(); ++i) {
    const Node& node = graph.node(group.nodes[i]);
    if (is_quantization(node.op_type)) {
      auto target = read_target(lowering, group.nodes[i]);
      if (!target) return target.refusal();
      op.target = *target;
      break;
    }
    if (fusion_role(node.op_type) == FusionRole::kBatchNorm) {
      if (i != 1 || fusion_role(op.node->op_type) != FusionRole::kConv) {
        return NotFused{"batch norm '" + node.name + "' is not behind a convolution"};
      }
      op.norm = &node;
    } else if (node.inputs.size() == 2) {
      const TensorId other = node.inputs[node.inputs[0] == value ? 1 : 0];
      const Dequantization* addend = lowering.dequantization(other);
      if (addend == nullptr || !addend->is_activation() ||
          fusion_role(node.op_type) != FusionRole::kAdd ||
          bound(lowering.graph(), node).number("alpha") != 1.0) {
        return NotFused{"node '" + node.name + "' adds something else than int8 numbers"};
      }
      op.steps.push_back({std::nullopt, *addend, group.nodes[i]});
    } else {
      for (const Eltwise& function : functions_of(lowering, node)) {
        op.steps.push_back({function, std::nullopt, group.nodes[i]});
      }
    }
    value = node.outputs.front();
  }
  return op;
}

/// The numbers of the target for each of 256 numbers of the source, made when a model is compiled.
Value add_table(Lowering& lowering, const QuantizedOp& op, DType type, float scale,
                std::int64_t zero_point, const std::vector<QuantizedStep>& steps) {
  std::vector<std::byte> numbers(256);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::byte>(i);
  const Value all = lowering.constant(type, {256}, std::move(numbers));
  Value floats = lowering.temporary(DType::kFloat32, plain_layout({256}, DType::kFloat32));
  Dequantize call;
  call.from = type;
  call.inner = 256;
  lowering.add_kernel(
      {all, lowering.constant(scale), lowering.constant(static_cast<float>(zero_point))}, floats,
      call);
  for (const QuantizedStep& step : steps) floats = add_function(lowering, *step.function, floats);
  return add_quantize(lowering, bound(lowering.graph(), *op.target->node), floats);
}

}  // namespace

Lowered<Value> converted(Lowering& lowering, const QuantizedOp& op, const QuantizedSource& source,
                         const std::vector<QuantizedStep>& steps) {
  const QuantizedTarget& target = *op.target;
  for (const QuantizedStep& step : steps) {
    if (!step.function) return NotFused{"a table does not add tensors"};
  }
  const DType type = source.value.type;
  if (steps.empty() && target.is_whole() && type == target.type && source.scale == target.scale &&
      source.zero_point == target.zero_point) {
    return source.value;
  }
  const Value table = add_table(lowering, op, type, source.scale, source.zero_point, steps);
  const Value numbers = without_gaps(lowering, source.value);
  const Value result = lowering.temporary(target.type, with_type(numbers.layout, target.type));
  ByteTable call;
  call.count = span_elements(numbers.layout);
  lowering.add_kernel({numbers, table}, result, call);
  return result;
}

Lowered<IntegerRange> bounds_of(const QuantizedOp& op) {
  const QuantizedTarget& target = *op.target;
  IntegerRange range{target.least, target.most};
  for (const QuantizedStep& step : op.steps) {
    const bool is_relu = step.function &&
                         step.function->function == dnnl::algorithm::eltwise_relu &&
                         step.function->alpha == 0.0F;
    const bool is_clip = step.function && step.function->function == dnnl::algorithm::eltwise_clip;
    if (!is_relu && !is_clip) return NotFused{"the kernel has no other functions than bounds"};
    const auto at = [&](float bound) {
      const float number =
          std::nearbyint(bound / target.scale) + static_cast<float>(target.zero_point);
      return static_cast<std::int64_t>(
          std::clamp(number, static_cast<float>(range.least), static_cast<float>(range.most)));
    };
    const std::int64_t least = at(is_relu ? 0.0F : step.function->alpha);
    if (is_clip) range.most = at(step.function->beta);
    range.least = least;
  }
  return range;
}

namespace {

/// An operand that is broadcast, as it lies beside the other one.
struct BroadcastPair {
  Value whole;
  Value part;
  BroadcastRuns runs;
};

Lowered<BroadcastPair> lay_out(Lowering& lowering, const Value& whole, const Value& part) {
  BroadcastPair pair{without_gaps(lowering, whole), part, {}};
  const Shape shape = dimensions(pair.whole.layout);
  if (dimensions(part.layout) == shape) {
    pair.part = lowering.in_layout(part, with_type(pair.whole.layout, part.type));
    pair.runs.inner = span_elements(pair.whole.layout);
    return pair;
  }
  const bool has_channels = shape.size() >= 3 && shape.size() <= 5;
  const bool is_last =
      has_channels && pair.whole.layout == channels_last_layout(shape, pair.whole.type);
  Shape full = dimensions(part.layout);
  const auto runs = is_last ? broadcast_runs_of_channels(shape, full) : broadcast_runs(shape, full);
  if (!runs) return NotFused{"an operand is broadcast along too many runs of dimensions"};
  pair.runs = *runs;
  if (!is_last) pair.whole = lowering.plain(pair.whole);
  full.insert(full.begin(), shape.size() - full.size(), 1);
  const Value reshaped = lowering.reshaped(part, full);
  pair.part = is_last ? lowering.in_layout(reshaped, channels_last_layout(full, part.type))
                      : lowering.plain(reshaped);
  return pair;
}

/// A sum or product of two tensors, one of which may be broadcast.
Lowered<Value> add_arithmetic(Lowering& lowering, const QuantizedOp& op) {
  const FusionRole role = fusion_role(op.node->op_type);
  const BoundNode node = bound(lowering.graph(), *op.node);
  const auto first = quantized_source(lowering, op.node->inputs[0]);
  if (!first) return first.refusal();
  const auto second = quantized_source(lowering, op.node->inputs[1]);
  if (!second) return second.refusal();
  QuantizedSource a = *first;
  QuantizedSource b = *second;
  const float alpha =
      node.find("alpha") != nullptr ? static_cast<float>(node.number("alpha")) : 1.0F;
  const QuantizedTarget& target = *op.target;
  QuantizedBinary call;
  call.multiplies = role == FusionRole::kMul;
  call.a_factor = a.scale / target.scale;
  call.b_factor = call.multiplies ? b.scale : alpha * b.scale / target.scale;
  if (role == FusionRole::kSub) call.b_factor = -call.b_factor;
  const Shape& shape = lowering.shape(op.node->outputs.front());
  if (dimensions(a.value.layout) != shape) {
    std::swap(a, b);
    std::swap(call.a_factor, call.b_factor);
  }
  if (dimensions(a.value.layout) != shape) {
    return NotFused{"both operands are broadcast"};
  }
  if (!std::isfinite(call.a_factor) || !std::isfinite(call.b_factor)) return kFarScales;
  call.a_zero = a.zero_point;
  call.b_zero = b.zero_point;
  call.zero = target.zero_point;
  const auto bounds = bounds_of(op);
  if (!bounds) return bounds.refusal();
  call.least = bounds->least;
  call.most = bounds->most;
  const auto pair = lay_out(lowering, a.value, b.value);
  if (!pair) return pair.refusal();
  call.a_type = pair->whole.type;
  call.b_type = pair->part.type;
  call.to = target.type;
  call.repeat = pair->runs.repeat;
  call.outer = pair->runs.outer;
  call.inner_repeat = pair->runs.inner_repeat;
  call.inner = pair->runs.inner;
  const Value result = lowering.temporary(target.type, with_type(pair->whole.layout, target.type));
  lowering.add_kernel({pair->whole, pair->part}, result, call);
  return result;
}

/// Ops whose results are elements of their operands, or the largest of some.
Lowered<Value> add_moved(Lowering& lowering, const GroupContext& context, const QuantizedOp& op) {
  const LoweringRow* row = find_lowering(op.node->op_type);
  if (row == nullptr || !(std::holds_alternative<MoveFunction>(row->lower) ||
                          std::holds_alternative<ComputeFunction>(row->lower))) {
    return NotFused{"no kernel moves its elements"};
  }
  const auto run = [&](const Value& numbers) {
    const TensorId input = op.node->inputs.front();
    const std::optional<Value> floats = lowering.replace_by_numbers(input, numbers);
    GroupContext moving = context;
    moving.moves_numbers = true;
    moving.compute_type = numbers.type;
    lower_bound(*row, lowering, moving, bound(lowering.graph(), *op.node));
    return lowering.take_numbers(op.node->outputs.front(), input, floats);
  };
  auto source = quantized_source(lowering, op.node->inputs.front());
  if (!source) return source.refusal();
  QuantizedSource moved = *source;
  moved.value = run(moved.value);
  return converted(lowering, op, moved, op.steps);
}

/// The means over all dimensions behind the channels.
Lowered<AverageWindows> plane_windows(const Lowering& lowering, const BoundNode& node) {
  AverageWindows result;
  result.input = lowering.shape(tensor_argument(lowering, node, "self"));
  const std::size_t rank = result.input.size();
  std::vector<bool> is_reduced(rank, false);
  for (const std::int64_t dim : node.integers("dim")) {
    is_reduced[normalize_dimension(lowering, "dim", dim, rank)] = true;
  }
  result.output = result.input;
  for (std::size_t i = 0; i < rank; ++i) {
    if (rank < 3 || rank > 5 || is_reduced[i] != (i >= 2)) {
      return NotFused{"the mean is over other dimensions than those of planes"};
    }
    if (i < 2) continue;
    result.output[i] = 1;
    result.windows.push_back({{0, result.input[i], result.input[i]}});
  }
  return result;
}

Lowered<Value> add_average(Lowering& lowering, const QuantizedOp& op) {
  const BoundNode node = bound(lowering.graph(), *op.node);
  if (!op.steps.empty()) return NotFused{"the kernel has no functions behind an average"};
  const auto source = quantized_source(lowering, op.node->inputs.front());
  if (!source) return source.refusal();
  const auto windows = fusion_role(op.node->op_type) == FusionRole::kMean
                           ? plane_windows(lowering, node)
                           : Lowered<AverageWindows>(read_average(lowering, node));
  if (!windows) return windows.refusal();
  const QuantizedTarget& target = *op.target;
  QuantizedAverage call;
  call.from = source->value.type;
  call.to = target.type;
  call.batch = windows->input[0];
  call.channels = windows->input[1];
  const std::size_t missing = 3 - windows->windows.size();
  for (std::size_t i = 0; i < windows->windows.size(); ++i) {
    call.extents[missing + i] = windows->input[i + 2];
    call.windows[missing + i] = windows->windows[i];
  }
  call.divisor_override = windows->divisor;
  call.factor = source->scale / target.scale;
  if (!std::isfinite(call.factor)) return kFarScales;
  call.source_zero = source->zero_point;
  call.zero = target.zero_point;
  call.least = target.least;
  call.most = target.most;
  const Value batched = lowering.reshaped(source->value, windows->input);
  const Value numbers =
      lowering.in_layout(batched, channels_last_layout(windows->input, call.from));
  const Value result =
      lowering.temporary(target.type, channels_last_layout(windows->output, target.type));
  lowering.add_kernel({numbers}, result, std::move(call));
  const Shape& stated = lowering.shape(op.node->outputs.front());
  if (checked_element_count(stated) != checked_element_count(windows->output)) {
    return NotFused{"the result has another shape than its operand gives"};
  }
  return lowering.reshaped(result, stated);
}

/// Operands with numbers of the target's in a row.
Lowered<Value> add_joined(Lowering& lowering, const QuantizedOp& op) {
  const std::vector<TensorId>& inputs = op.node->inputs;
  Shape shape = lowering.shape(inputs.front());
  const std::size_t axis = normalize_dimension(
      lowering, "dim", bound(lowering.graph(), *op.node).integer("dim"), shape.size());
  shape[axis] = 0;
  const bool has_channels = shape.size() >= 3 && shape.size() <= 5;
  const auto layout_of = [&](const Shape& of) {
    return has_channels ? channels_last_layout(of, op.target->type)
                        : plain_layout(of, op.target->type);
  };
  std::vector<Layout> layouts;
  std::vector<PrimitiveOperand> reads;
  for (const TensorId id : inputs) {
    const auto source = quantized_source(lowering, id);
    if (!source) return source.refusal();
    const auto numbers = converted(lowering, op, *source, op.steps);
    if (!numbers) return numbers.refusal();
    layouts.push_back(layout_of(lowering.shape(id)));
    reads.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(reads.size()),
                     lowering.in_layout(*numbers, layouts.back())});
    shape[axis] += lowering.shape(id)[axis];
  }
  lowering.check_result(op.node->outputs.front(), shape, DType::kFloat32);
  const dnnl::concat::primitive_desc primitive(layout_of(shape), static_cast<int>(axis), layouts,
                                               lowering.engine(), Lowering::attributes());
  const Value result = lowering.temporary(op.target->type, layout_of(shape));
  lowering.add_primitive(primitive, reads, result);
  return result;
}

}  // namespace

Lowered<Done> lower_quantized_group(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  auto op = read_op(lowering, group);
  if (!op) return op.refusal();
  const FusionRole role = fusion_role(op->node->op_type);
  const auto result = [&]() -> Lowered<Value> {
    if (role == FusionRole::kConv) return add_quantized_convolution(lowering, *op);
    if (is_matrix_product(role)) return add_quantized_product(lowering, *op);
    if (role == FusionRole::kAttention) return add_quantized_attention(lowering, *op);
    if (!op->target) return NotFused{"nothing quantizes the result"};
    if (role == FusionRole::kCat) return add_joined(lowering, *op);
    if (is_resampling(op->node->op_type)) return add_quantized_resample(lowering, *op);
    if (is_padding(op->node->op_type)) return add_quantized_pad(lowering, *op);
    if (op->node->inputs.size() == 2) return add_arithmetic(lowering, *op);
    if (role == FusionRole::kMean || role == FusionRole::kGlobalPool ||
        functional_name(op->node->op_type).starts_with("avg_pool")) {
      return add_average(lowering, *op);
    }
    if (role == FusionRole::kWindow || role == FusionRole::kSameOrder ||
        role == FusionRole::kPermute || moves_elements(op->node->op_type)) {
      return add_moved(lowering, context, *op);
    }
    const auto source = quantized_source(lowering, op->node->inputs.front());
    if (!source) return source.refusal();
    std::vector<QuantizedStep> steps;
    for (const Eltwise& function : functions_of(lowering, *op->node)) {
      steps.push_back({function, std::nullopt});
    }
    steps.insert(steps.end(), op->steps.begin(), op->steps.end());
    return converted(lowering, *op, *source, steps);
  }();
  if (!result) return result.refusal();
  // Nodes that are lowered alone say what is wrong with them.
  if (dimensions(result->layout) !=
      dimensions(plain_layout(lowering.shape(op->result), result->type))) {
    return NotFused{"the result has another shape than its operands give"};
  }
  lowering.define_moved(op->result, lowering.shape(op->result),
                        op->target ? op->target->type : DType::kFloat32, *result);
  return Done{};
}

}  // namespace npu::onednn
