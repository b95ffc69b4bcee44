// SPDX-License-Identifier: Apache-2.0
// Tensors that follow from arguments alone.
#include "ops/op_name.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {

std::string fill_element(Emitter& emitter, const BoundNode& node, int, const Index&) {
  const std::string_view name = functional_name(node.node().op_type);
  const DType dtype = emitter.dtype(node.node().outputs[0]);
  if (name.starts_with("zero") || name == "new_zeros") return literal(0.0, dtype);
  if (name.starts_with("ones") || name == "new_ones") return literal(1.0, dtype);
  if (name == "fill" || name.ends_with("_like")) {
    const TensorId self = tensor_of(emitter, node, "self");
    emitter.expect_shape(node.node(), 0, emitter.shape(self));
  }
  const char* argument = node.find("fill_value") != nullptr ? "fill_value"
                         : node.find("value") != nullptr    ? "value"
                                                            : "s";
  if (node.tensor(argument)) {
    const TensorId value = *node.tensor(argument);
    if (!emitter.shape(value).empty()) emitter.refuse(node.node(), "its value is no scalar");
    return emitter.element_as(value, {}, dtype);
  }
  return operand(emitter, node, argument, {}, dtype);
}

std::string copy_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  emitter.expect_shape(node.node(), 0, emitter.shape(tensor_of(emitter, node, "self")));
  return operand(emitter, node, "src", index, emitter.dtype(node.node().outputs[0]));
}

std::string arange_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const DType dtype = emitter.dtype(node.node().outputs[0]);
  const double start = node.find("start") != nullptr ? node.number("start") : 0;
  const double step = node.find("step") != nullptr ? node.number("step") : 1;
  const DType wide = is_floating_point(dtype) ? dtype : DType::kInt64;
  return cast_value("(" + literal(start, wide) + " + " + literal(step, wide) + " * (" +
                        value_type(wide) + ")" + index.at(0) + ")",
                    wide, dtype);
}

std::string linspace_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const DType dtype = emitter.dtype(node.node().outputs[0]);
  const std::int64_t count = emitter.model().count(node.node().outputs[0]);
  if (!is_floating_point(dtype)) emitter.refuse(node.node(), "it needs floats");
  const double start = node.number("start");
  const double end = node.number("end");
  const std::string step =
      literal(count > 1 ? (end - start) / static_cast<double>(count - 1) : 0.0, dtype);
  const std::string place = "(" + value_type(dtype) + ")" + index.at(0);
  // From the nearer end, as PyTorch computes it.
  return "(" + index[0] + " < " + std::to_string(count / 2) + " ? " + literal(start, dtype) +
         " + " + step + " * " + place + " : " + literal(end, dtype) + " - " + step + " * (" +
         std::to_string(count - 1) + " - " + place + "))";
}

}  // namespace npu::opencl
