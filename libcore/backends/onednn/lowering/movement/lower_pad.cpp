// SPDX-License-Identifier: Apache-2.0
// Padding with a number, and cropping: the result is filled, and what is kept of the operand is
// copied into its middle. O(elements of the result).
#include <algorithm>

#include "lowering/engine/promotion.hpp"
#include "lowering/movement/movement.hpp"

namespace npu::onednn {

PadCall read_pad(Lowering& lowering, const BoundNode& node) {
  const TensorId self = first_operand(lowering);
  lowering.require_float("self", self);
  if (node.find("mode") != nullptr && node.string("mode") != "constant") {
    lowering.refuse("mode", "'" + node.string("mode") + "' is not supported; use 'constant'");
  }
  const std::vector<std::int64_t> pad = node.integers("pad");
  PadCall call;
  call.result = call.extent = lowering.shape(self);
  call.from.assign(call.extent.size(), 0);
  call.begin = call.from;
  if (pad.size() % 2 != 0 || pad.size() / 2 > call.result.size()) {
    lowering.invalid("argument 'pad': expected two numbers per dimension, found " +
                     std::to_string(pad.size()) + " for rank " +
                     std::to_string(call.result.size()));
  }
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    const std::size_t dimension = call.result.size() - 1 - i;
    const std::int64_t before = pad[2 * i];
    const std::int64_t after = pad[2 * i + 1];
    constexpr std::int64_t kMost = INT32_MAX;
    if (before < -kMost || before > kMost || after < -kMost || after > kMost) {
      lowering.refuse("pad", "a number is too large");
    }
    call.from[dimension] = std::max<std::int64_t>(0, -before);
    call.begin[dimension] = std::max<std::int64_t>(0, before);
    call.result[dimension] += before + after;
    call.extent[dimension] += std::min<std::int64_t>(0, after) - call.from[dimension];
    if (call.extent[dimension] < 0 || call.result[dimension] < 1) {
      lowering.refuse("pad", "more is cut off than the operand has");
    }
  }
  lowering.check_result(node.node().outputs.front(), call.result, lowering.dtype(self));
  const bool has_value = node.find("value") != nullptr && !node.is_none("value");
  call.number = has_value ? node.number("value") : 0.0;
  return call;
}

Value add_pad(Lowering& lowering, const PadCall& call, const Value& source, float number,
              bool channels_last) {
  Value kept = lowering.strided(source);
  for (std::size_t i = 0; i < call.from.size(); ++i) {
    if (call.extent[i] == dimensions(kept.layout)[i]) continue;
    kept = sliced(lowering, kept, i, call.from[i], call.extent[i]);
  }
  const Layout layout = channels_last ? channels_last_layout(call.result, kept.type)
                                      : plain_layout(call.result, kept.type);
  const Value target = lowering.temporary(kept.type, layout);
  // Fill and copy in one step: no step may read what another has half written.
  const auto strides = strides_of(target.layout);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) offset += call.begin[i] * strides[i];
  StridedCopy copy{dtype_size(kept.type), dimensions(kept.layout), strides_of(kept.layout),
                   strides};
  if (channels_last) {
    for (auto* list : {&copy.extents, &copy.source_strides, &copy.target_strides}) {
      std::rotate(list->begin() + 1, list->begin() + 2, list->end());
    }
  }
  copy.simplify();
  const std::int64_t count = element_count(call.result);
  lowering.add_kernel({kept}, target, PaddedCopy{kept.type, number, count, offset, std::move(copy)},
                      KernelKind::kMove);
  return target;
}

/// Constant padding, or cropping where a number is negative; where nothing is kept, a constant.
void lower_pad(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const PadCall call = read_pad(lowering, node);
  const TensorId self = first_operand(lowering);
  if (element_count(call.extent) == 0) {
    const DType dtype = lowering.dtype(self);
    return lowering.define_moved(lowering.result(), call.result, dtype,
                                 filled(lowering, call.result, dtype, Json(call.number)));
  }
  if (call.result == call.extent && call.extent == lowering.shape(self)) {
    return define_alias(lowering);
  }
  const Value target =
      add_pad(lowering, call, lowering.stored(self), static_cast<float>(call.number), false);
  lowering.define_computed(context, lowering.result(), call.result, lowering.dtype(self), target);
}

}  // namespace npu::onednn
