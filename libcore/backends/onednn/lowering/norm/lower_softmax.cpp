// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax along one dimension.
#include "lowering/norm/norm.hpp"

namespace npu::onednn {

Value add_softmax(Lowering& lowering, const Value& value, std::size_t dimension, bool logarithm) {
  // In float32 whatever the operand's type: oneDNN's softmax of bfloat16 rounds the exponentials
  // before it divides them, and loses NaN.
  const Value source = lowering.plain(lowering.in_type(value, DType::kFloat32));
  const Shape shape = dimensions(source.layout);
  Softmax kernel;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    (i < dimension ? kernel.outer : i > dimension ? kernel.inner : kernel.count) *= shape[i];
  }
  kernel.logarithm = logarithm;
  const Value target = lowering.temporary(source.type, source.layout);
  lowering.add_kernel({source}, target, kernel);
  return target;
}

void lower_softmax(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
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
      input, lowering.dtype(input) == dtype ? context.compute_type : DType::kFloat32);
  if (lowering.dtype(input) == DType::kFloat32 && dtype == DType::kBFloat16) {
    lowering.refuse("dtype", "bfloat16 for a float32 operand is not supported");
  }
  const bool logarithm = node.node().op_type.find("log_softmax") != std::string::npos;
  lowering.define_computed(context, lowering.result(), shape, dtype,
                           add_softmax(lowering, lowering.plain(value), dimension, logarithm));
}

}  // namespace npu::onednn
