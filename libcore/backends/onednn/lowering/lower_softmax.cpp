// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax along one dimension.
#include "lowering/lowering.hpp"

namespace npu::onednn {

Value add_softmax(Lowering& lowering, const Value& value, std::size_t dimension, bool logarithm) {
  if (value.type == DType::kFloat32 && is_plain(value.layout)) {
    // oneDNN's, which bfloat16 keeps, loses NaN.
    const Shape shape = dimensions(value.layout);
    Softmax kernel;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      (i < dimension ? kernel.outer : i > dimension ? kernel.inner : kernel.count) *= shape[i];
    }
    kernel.logarithm = logarithm;
    const Value target = lowering.temporary(value.type, value.layout);
    lowering.add_kernel({value}, target, kernel);
    return target;
  }
  const Value source = lowering.dense(value);
  const Value target = lowering.temporary(source.type, source.layout);
  const auto kind = dnnl::prop_kind::forward_inference;
  const int axis = static_cast<int>(dimension);
  if (logarithm) {
    const dnnl::logsoftmax_forward::desc descriptor(kind, source.layout, axis);
    const dnnl::logsoftmax_forward::primitive_desc primitive(descriptor, lowering.attributes(),
                                                             lowering.engine());
    lowering.add_primitive(primitive, {{DNNL_ARG_SRC, source}}, target);
  } else {
    const dnnl::softmax_forward::desc descriptor(kind, source.layout, axis);
    const dnnl::softmax_forward::primitive_desc primitive(descriptor, lowering.attributes(),
                                                          lowering.engine());
    lowering.add_primitive(primitive, {{DNNL_ARG_SRC, source}}, target);
  }
  return target;
}

void lower_softmax(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  lowering.require_float("self", input);
  DType dtype = lowering.dtype(input);
  if (node.find("dtype") != nullptr && node.dtype("dtype")) dtype = *node.dtype("dtype");
  if (node.find("half_to_float") != nullptr && node.boolean("half_to_float")) {
    lowering.refuse("half_to_float", "is not supported");
  }
  if (dtype != DType::kFloat32 && dtype != DType::kBFloat16) {
    lowering.refuse("dtype", std::string(dtype_name(dtype)) + " is not supported");
  }
  const Shape& shape = lowering.shape(input);
  const std::size_t dimension =
      normalize_dimension(lowering, "dim", node.integer("dim"), shape.size());
  // A dtype argument converts the operand first, as PyTorch does.
  Value value = lowering.operand(
      input, lowering.dtype(input) == dtype ? lowering.compute_type() : DType::kFloat32);
  if (lowering.dtype(input) == DType::kFloat32 && dtype == DType::kBFloat16) {
    lowering.refuse("dtype", "bfloat16 for a float32 operand is not supported");
  }
  const bool logarithm = node.node().op_type.find("log_softmax") != std::string::npos;
  lowering.define_computed(lowering.result(), shape, dtype,
                           add_softmax(lowering, lowering.plain(value), dimension, logarithm));
}

}  // namespace npu::onednn
