// SPDX-License-Identifier: Apache-2.0
// Conversions between dtypes. float32 and bfloat16 convert in whatever layout the value has; other
// types have no blocked layouts.
#include <cstring>

#include "lowering/lowering.hpp"

namespace npu::onednn {

void lower_to(Lowering& lowering, const BoundNode& node) {
  if (lowering.node().inputs.empty()) lowering.invalid("the op has no operand");
  const TensorId self = lowering.node().inputs.front();
  const DType from = lowering.dtype(self);
  DType to = from;
  if (node.find("dtype") != nullptr) to = node.dtype("dtype").value_or(from);
  if (node.node().op_type == "aten.type_as.default") {
    to = lowering.dtype(tensor_argument(lowering, node, "other"));
  }
  const Shape& shape = lowering.shape(self);
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
    return lowering.define_computed(lowering.result(), shape, to, target);
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
    return lowering.define_computed(lowering.result(), shape, to, target);
  }
  // Kept as float32: a copy, which define_computed rounds.
  const Value target = lowering.temporary(value.type, value.layout);
  const auto bytes = span_elements(value.layout) * static_cast<std::int64_t>(sizeof(float));
  lowering.add_kernel({value}, target, CopyBytes{bytes});
  lowering.define_computed(lowering.result(), shape, to, target);
}

}  // namespace npu::onednn
