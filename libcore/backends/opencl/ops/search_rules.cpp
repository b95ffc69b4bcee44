// SPDX-License-Identifier: Apache-2.0
// Loops over one dimension whose result is a place or a running sum.
#include <algorithm>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {

// argmax, argmin, and max and min over a dimension, which give values and places. The first of
// equal elements counts, and NaN above all.
std::string arg_element(Emitter& emitter, const BoundNode& node, int result, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const Shape& shape = emitter.shape(self);
  const DType dtype = emitter.dtype(self);
  const std::string_view name = functional_name(node.node().op_type);
  const bool gives_values = !name.starts_with("arg");
  const bool keeps = node.boolean("keepdim");
  const bool is_flat = node.is_none("dim");
  Shape expected;
  std::size_t d = 0;
  std::int64_t extent = emitter.model().count(self);
  if (!is_flat) {
    d = static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape.size()));
    expected = shape;
    if (!shape.empty()) {
      extent = shape[d];
      expected[d] = 1;
      if (!keeps) expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(d));
    }
  } else if (keeps) {
    expected.assign(shape.size(), 1);
  }
  if (extent == 0) emitter.refuse(node.node(), "it looks through no elements");
  for (std::size_t i = 0; i < node.node().outputs.size(); ++i) {
    const bool is_place = !gives_values || i == 1;
    emitter.expect_shape(node.node(), static_cast<int>(i), expected);
    emitter.expect_dtype(node.node(), static_cast<int>(i), is_place ? DType::kInt64 : dtype);
  }
  const std::string best = emitter.fresh("m");
  const std::string place = emitter.fresh("m");
  const std::string step = emitter.fresh("k");
  const auto source = [&](const std::string& at) {
    if (is_flat) return index_of_place(at, shape);
    Index from = index;
    if (shape.empty()) return from;
    if (keeps) from[d] = at;
    if (!keeps) from.insert(from.begin() + static_cast<std::ptrdiff_t>(d), at);
    return from;
  };
  emitter.line(value_type(dtype) + " " + best + " = 0;");
  emitter.line("long " + place + " = -1;");
  emitter.open("for (" + emitter.index_type() + " " + step + " = 0; " + step + " < " +
               std::to_string(extent) + "; ++" + step + ")");
  const std::string value = emitter.element(self, source(step));
  const std::string sign = name.find("max") != std::string_view::npos ? " > " : " < ";
  const std::string is_nan = is_floating_point(dtype) ? " || (" + value + " != " + value + " && " +
                                                            best + " == " + best + ")"
                                                      : "";
  emitter.open("if (" + place + " < 0 || " + value + sign + best + is_nan + ")");
  emitter.line(best + " = " + value + ";");
  emitter.line(place + " = " + step + ";");
  emitter.close();
  emitter.close();
  return gives_values && result == 0 ? best : place;
}

std::string cumsum_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const DType to = emitter.dtype(node.node().outputs[0]);
  const Shape& shape = emitter.shape(self);
  const auto stated = node.dtype("dtype");
  emitter.expect_dtype(node.node(), 0,
                       stated                                   ? *stated
                       : is_floating_point(emitter.dtype(self)) ? emitter.dtype(self)
                                                                : DType::kInt64);
  if (shape.empty()) return emitter.element_as(self, index, to);
  const auto d =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape.size()));
  std::string sum = emitter.fresh("s");
  const std::string step = emitter.fresh("k");
  emitter.line(value_type(to) + " " + sum + " = 0;");
  emitter.open("for (" + emitter.index_type() + " " + step + " = 0; " + step + " <= " + index[d] +
               "; ++" + step + ")");
  Index source = index;
  source[d] = step;
  emitter.line(sum + " += " + emitter.element_as(self, source, to) + ";");
  emitter.close();
  return sum;
}

}  // namespace npu::opencl
