// SPDX-License-Identifier: Apache-2.0
// PyTorch's quantized_decomposed ops on single elements, in float32 and in the order in which
// PyTorch computes them: round(x * (1 / scale)) + zero point, cut to a range, and back.
#include <cmath>
#include <limits>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {
namespace {

constexpr DType kWide = DType::kFloat32;

/// The number that belongs to an element of `axis`, of a tensor with one for each.
std::string along_axis(Emitter& emitter, const BoundNode& node, TensorId numbers,
                       const Index& index, DType to = kWide) {
  const Shape& shape = emitter.shape(tensor_of(emitter, node, "input"));
  const auto axis =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("axis"), shape.size()));
  if (shape.empty() || emitter.shape(numbers) != Shape{shape[axis]}) {
    emitter.refuse(node.node(), "its scales or zero points do not fit its axis");
  }
  return emitter.element_as(numbers, {index.at(axis)}, to);
}

bool is_per_channel(const BoundNode& node) { return node.find("axis") != nullptr; }

double scale_of(const Emitter& emitter, const BoundNode& node) {
  const double scale = node.number("scale");
  if (std::isnan(scale) || scale == 0) emitter.refuse(node.node(), "its scale is 0 or no number");
  return scale;
}

/// The range of a dtype that it may quantize to.
std::pair<std::int64_t, std::int64_t> range_of(const Emitter& emitter, const BoundNode& node,
                                               DType dtype) {
  if (dtype == DType::kInt8) return {INT8_MIN, INT8_MAX};
  if (dtype == DType::kUInt8) return {0, UINT8_MAX};
  if (dtype == DType::kInt16) return {INT16_MIN, INT16_MAX};
  emitter.refuse(node.node(), "expected a result of int8, uint8 or int16");
}

void check_float(const Emitter& emitter, const BoundNode& node, TensorId tensor) {
  if (emitter.dtype(tensor) == kWide) return;
  emitter.refuse(node.node(), "expected an operand of float32");
}

}  // namespace

std::string quantize_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId input = tensor_of(emitter, node, "input");
  const DType dtype = emitter.dtype(node.node().outputs[0]);
  const auto [low, high] = range_of(emitter, node, dtype);
  const std::int64_t least = node.integer("quant_min");
  const std::int64_t most = node.integer("quant_max");
  if (least < low || least > most || most > high) {
    emitter.refuse(node.node(), "quant_min and quant_max are no range of its dtype");
  }
  check_float(emitter, node, input);
  const bool divides = node.boolean("divide_by_scale");
  std::string factor;
  std::string zero;
  if (is_per_channel(node)) {
    check_float(emitter, node, tensor_of(emitter, node, "scales"));
    factor = along_axis(emitter, node, tensor_of(emitter, node, "scales"), index);
    if (!divides) factor = emitter.define(kWide, "1.0f / " + factor);
    zero = along_axis(emitter, node, tensor_of(emitter, node, "zero_points"), index);
  } else {
    const double scale = scale_of(emitter, node);
    factor = literal(divides ? scale : 1.0 / scale, kWide);
    zero = literal(node.integer("zero_point"), kWide);
  }
  const std::string value = emitter.define(kWide, emitter.element(input, index));
  const std::string whole =
      emitter.define(kWide, "rint(" + value + (divides ? " / " : " * ") + factor + ") + " + zero);
  const std::string cut =
      "fmin(fmax(" + whole + ", " + literal(least, kWide) + "), " + literal(most, kWide) + ")";
  // What is no number becomes the least one where ONNX says so, and 0 as a cast of it on a CPU.
  const std::string bounded =
      divides ? cut : "(" + whole + " != " + whole + " ? 0.0f : " + cut + ")";
  return cast_value(bounded, kWide, dtype);
}

std::string dequantize_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId input = tensor_of(emitter, node, "input");
  const DType from = emitter.dtype(input);
  if (from != DType::kInt8 && from != DType::kUInt8 && from != DType::kInt16 &&
      from != DType::kInt32) {
    emitter.refuse(node.node(), "expected an operand of int8, uint8, int16 or int32");
  }
  emitter.expect_dtype(node.node(), 0, kWide);
  if (!is_per_channel(node)) {
    const std::string value = emitter.element_as(input, index, kWide);
    return "((" + value + " - " + literal(node.integer("zero_point"), kWide) + ") * " +
           literal(node.number("scale"), kWide) + ")";
  }
  const TensorId scales = tensor_of(emitter, node, "scales");
  check_float(emitter, node, scales);
  const std::string scale = along_axis(emitter, node, scales, index);
  const auto zeros = node.tensor("zero_points");
  if (!zeros) return "(" + emitter.element_as(input, index, kWide) + " * " + scale + ")";
  // Whole numbers are subtracted as such: float32 does not hold all of int32.
  const DType exact = is_floating_point(emitter.dtype(*zeros)) ? kWide : DType::kInt64;
  const std::string zero = along_axis(emitter, node, *zeros, index, exact);
  return "((float)(" + emitter.element_as(input, index, exact) + " - " + zero + ") * " + scale +
         ")";
}

}  // namespace npu::opencl
