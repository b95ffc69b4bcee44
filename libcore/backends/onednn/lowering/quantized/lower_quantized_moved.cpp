// SPDX-License-Identifier: Apache-2.0
// Resampling and padding of quantized numbers. Channels are last where there are any. A neighbour's
// number is that of the source, so that functions and another scale are a table in front of it;
// what is interpolated is rounded once, with the target's scale. Padding has the target's number of
// what it pads with.
#include <algorithm>
#include <cmath>

#include "lowering/movement/movement.hpp"
#include "lowering/quantized/quantized_op.hpp"
#include "lowering/sampling/sampling.hpp"

namespace npu::onednn {

namespace {

/// The rank of tensors with channels.
bool has_channels(const Shape& shape) { return shape.size() >= 3 && shape.size() <= 5; }

QuantizedResample kernel_of(const ResampleCall& resample, const Value& source) {
  const Shape& shape = dimensions(source.layout);
  QuantizedResample call;
  call.from = call.to = source.type;
  call.batch = shape[0];
  call.channels = shape[1];
  for (std::size_t i = 0; i < 3; ++i) {
    call.extents[i] = resample.kernel.extents[i];
    call.width[i] = resample.kernel.width[i];
    call.taps[i] = resample.kernel.taps[i];
  }
  call.least = range_of(call.to).least;
  call.most = range_of(call.to).most;
  return call;
}

}  // namespace

Lowered<Value> add_quantized_resample(Lowering& lowering, const QuantizedOp& op) {
  const ResampleCall resample = read_resample(lowering, bound(lowering.graph(), *op.node));
  const auto source = quantized_source(lowering, resample.input);
  if (!source) return source.refusal();
  const QuantizedTarget& target = *op.target;
  Value numbers = source->value;
  const std::int64_t* width = resample.kernel.width;
  const bool is_nearest = width[0] * width[1] * width[2] == 1;
  if (is_nearest) {
    const auto changed = converted(lowering, op, *source, op.steps);
    if (!changed) return changed.refusal();
    numbers = *changed;
  }
  QuantizedResample call = kernel_of(resample, numbers);
  if (!is_nearest) {
    const auto bounds = bounds_of(op);
    if (!bounds) return bounds.refusal();
    call.to = target.type;
    call.factor = source->scale / target.scale;
    if (!std::isfinite(call.factor)) return kFarScales;
    call.source_zero = source->zero_point;
    call.zero = target.zero_point;
    call.least = bounds->least;
    call.most = bounds->most;
  }
  const Value from = lowering.in_layout(
      numbers, channels_last_layout(lowering.shape(resample.input), numbers.type));
  const Value result = lowering.temporary(call.to, channels_last_layout(resample.output, call.to));
  lowering.add_kernel({from}, result, std::move(call));
  return result;
}

Lowered<Value> add_quantized_pad(Lowering& lowering, const QuantizedOp& op) {
  const BoundNode node = bound(lowering.graph(), *op.node);
  const PadCall pad = read_pad(lowering, node);
  if (element_count(pad.extent) == 0) return NotFused{"nothing of the operand is kept"};
  const auto source = quantized_source(lowering, op.node->inputs.front());
  if (!source) return source.refusal();
  const auto bounds = bounds_of(op);
  if (!bounds) return bounds.refusal();
  const QuantizedTarget& target = *op.target;
  const double number = std::nearbyint(pad.number / static_cast<double>(target.scale)) +
                        static_cast<double>(target.zero_point);
  if (std::isnan(number)) return NotFused{"no integer stands for what it pads with"};
  const auto numbers = converted(lowering, op, *source, op.steps);
  if (!numbers) return numbers.refusal();
  const auto around = static_cast<float>(
      std::clamp(number, static_cast<double>(bounds->least), static_cast<double>(bounds->most)));
  return add_pad(lowering, pad, *numbers, around, has_channels(pad.result));
}

}  // namespace npu::onednn
