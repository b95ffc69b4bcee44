// SPDX-License-Identifier: Apache-2.0
// Conversions between dtypes. float32 and bfloat16 convert in whatever layout the value has; other
// types have no blocked layouts.
#include <cstring>

#include "lowering/engine/promotion.hpp"
#include "lowering/movement/movement.hpp"

namespace npu::onednn {

namespace {

/// Floats as float16 holds them, kept as float32.
void round_to_float16(Lowering& lowering, const GroupContext& context, TensorId self) {
  const Shape& shape = lowering.shape(self);
  const Value stored = lowering.dense(lowering.stored(self));
  if (!Cast::supports(stored.type)) {
    lowering.refuse("dtype", "conversion from " + std::string(dtype_name(stored.type)) +
                                 " to float16 is not supported");
  }
  const Value floats = has_primitive_type(stored.type)
                           ? lowering.in_type(stored, DType::kFloat32)
                           : cast_value(lowering, lowering.plain(stored), DType::kFloat32);
  const std::int64_t count = span_elements(floats.layout);
  const Value halves =
      lowering.temporary(DType::kFloat16, with_type(floats.layout, DType::kFloat16));
  lowering.add_kernel({floats}, halves, Convert{DType::kFloat32, DType::kFloat16, count});
  const Value result = lowering.temporary(DType::kFloat32, floats.layout);
  lowering.add_kernel({halves}, result, Convert{DType::kFloat16, DType::kFloat32, count},
                      KernelKind::kReorder);
  lowering.define_computed(context, lowering.result(), shape, DType::kFloat32, result);
}

}  // namespace

void lower_to(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  if (lowering.node().inputs.empty()) lowering.invalid("the op has no operand");
  const TensorId self = lowering.node().inputs.front();
  const DType from = lowering.dtype(self);
  DType to = from;
  if (node.find("dtype") != nullptr) to = node.dtype("dtype").value_or(from);
  if (node.node().op_type == "aten.type_as.default") {
    to = lowering.dtype(tensor_argument(lowering, node, "other"));
  }
  const Shape& shape = lowering.shape(self);
  if (to == DType::kFloat32 && lowering.rounds_to_float16())
    return round_to_float16(lowering, context, self);
  if (from == to) {
    return lowering.define_moved(lowering.result(), shape, to, lowering.stored(self));
  }
  const auto is_float = [](DType type) {
    return type == DType::kFloat32 || type == DType::kBFloat16;
  };
  if (!Cast::supports(from) || !Cast::supports(to)) {
    lowering.refuse("dtype", "conversion from " + std::string(dtype_name(from)) + " to " +
                                 std::string(dtype_name(to)) + " is not supported");
  }
  if (!is_float(from) || !is_float(to)) {
    const Value source = lowering.plain(lowering.stored(self));
    Cast call;
    call.from = source.type;
    call.to = lowering.storage_type(to);
    call.count = span_elements(source.layout);
    const Value target = lowering.temporary(call.to, plain_layout(shape, call.to));
    lowering.add_kernel({source}, target, call);
    return lowering.define_computed(context, lowering.result(), shape, to, target);
  }
  const Value value = lowering.dense(lowering.stored(self));
  if (lowering.storage_type(to) == value.type && to == DType::kFloat32) {
    return lowering.define_moved(lowering.result(), shape, to, value);
  }
  if (lowering.storage_type(to) != DType::kFloat32 || value.type != DType::kFloat32) {
    // A kernel of the node itself, not a conversion on the way to it.
    const DType type = lowering.storage_type(to);
    const Value target = lowering.temporary(type, with_type(value.layout, type));
    lowering.add_kernel({value}, target, Convert{value.type, type, span_elements(value.layout)});
    return lowering.define_computed(context, lowering.result(), shape, to, target);
  }
  // Kept as float32: a copy, which define_computed rounds.
  const Value target = lowering.temporary(value.type, value.layout);
  const auto bytes = span_elements(value.layout) * static_cast<std::int64_t>(sizeof(float));
  lowering.add_kernel({value}, target, CopyBytes{bytes});
  lowering.define_computed(context, lowering.result(), shape, to, target);
}

}  // namespace npu::onednn
