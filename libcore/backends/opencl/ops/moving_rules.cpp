// SPDX-License-Identifier: Apache-2.0
// Ops whose every element is one element of an operand, or a number, by its place alone.
#include <algorithm>
#include <optional>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"
#include "support/checked.hpp"

namespace npu::opencl {
namespace {

/// Emits `name = value;` under a condition.
template <typename Value>
void assign_if(Emitter& emitter, const std::string& condition, const std::string& name,
               Value&& value) {
  emitter.open("if (" + condition + ")");
  emitter.line(name + " = " + value() + ";");
  emitter.close();
}

std::string variable(Emitter& emitter, DType dtype, const std::string& value) {
  std::string name = emitter.fresh("v");
  emitter.line(value_type(dtype) + " " + name + " = " + value + ";");
  return name;
}

/// A size that JSON states, times or plus another; refuses what does not fit.
std::int64_t sized(const Emitter& emitter, const BoundNode& node,
                   std::optional<std::int64_t> size) {
  if (!size || *size < 0) emitter.refuse(node.node(), "a size is negative or too large");
  return *size;
}

/// The size that a dimension has with what is added on both sides.
std::optional<std::int64_t> padded(std::int64_t size, std::int64_t before, std::int64_t after) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(size, before, &sum) || __builtin_add_overflow(sum, after, &sum)) {
    return std::nullopt;
  }
  return sum;
}

}  // namespace

std::string cat_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  const TensorId out = node.node().outputs[0];
  const DType dtype = emitter.dtype(out);
  const Shape& shape = emitter.shape(out);
  const auto d =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape.size()));
  const std::string place = emitter.define(emitter.index_type(), index.at(d));
  std::string value = variable(emitter, dtype, literal(0.0, dtype));
  std::int64_t begin = 0;
  for (const TensorId tensor : tensors) {
    const Shape& part = emitter.shape(tensor);
    if (part == Shape{0}) continue;  // PyTorch lets it stand beside any shape
    Shape expected = shape;
    if (part.size() != shape.size()) emitter.refuse(node.node(), "an operand has another rank");
    expected[d] = part[d];
    if (part != expected) emitter.refuse(node.node(), "its operands do not fit together");
    const std::int64_t end = begin + part[d];
    Index source = index;
    source[d] = plus(place, -begin);
    assign_if(emitter,
              place + " >= " + std::to_string(begin) + " && " + place + " < " + std::to_string(end),
              value, [&] { return emitter.element_as(tensor, source, dtype); });
    begin = end;
  }
  if (begin != shape[d]) emitter.refuse(node.node(), "its operands do not fill its result");
  return value;
}

std::string stack_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  const TensorId out = node.node().outputs[0];
  const DType dtype = emitter.dtype(out);
  Shape shape = emitter.shape(out);
  const auto d =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape.size()));
  if (shape.empty() || shape[d] != static_cast<std::int64_t>(tensors.size())) {
    emitter.refuse(node.node(), "its operands do not fill its result");
  }
  Index source = index;
  source.erase(source.begin() + static_cast<std::ptrdiff_t>(d));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(d));
  std::string value = variable(emitter, dtype, literal(0.0, dtype));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (emitter.shape(tensors[i]) != shape)
      emitter.refuse(node.node(), "an operand has another shape");
    assign_if(emitter, index[d] + " == " + std::to_string(i), value,
              [&] { return emitter.element_as(tensors[i], source, dtype); });
  }
  return value;
}

std::string pad_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const Shape& from = emitter.shape(self);
  const DType dtype = emitter.dtype(self);
  const std::vector<std::int64_t> pads = node.integers("pad");
  if (pads.size() % 2 != 0 || pads.size() > 2 * from.size()) {
    emitter.refuse(node.node(), "it has too many pads");
  }
  if (std::ranges::any_of(pads, [](auto pad) { return pad < -INT32_MAX || pad > INT32_MAX; })) {
    emitter.refuse(node.node(), "a pad is too large");
  }
  if (node.find("mode") != nullptr && node.string("mode") != "constant") {
    emitter.refuse(node.node(), "only constant padding is supported");
  }
  Shape expected = from;
  Index source = index;
  std::string inside = "1";
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    const std::size_t d = from.size() - 1 - i;
    expected[d] = sized(emitter, node, padded(from[d], pads[2 * i], pads[2 * i + 1]));
    source[d] = emitter.define(emitter.index_type(), plus(index.at(d), -pads[2 * i]));
    inside += " && " + source[d] + " >= 0 && " + source[d] + " < " + std::to_string(from[d]);
  }
  emitter.expect_shape(node.node(), 0, expected);
  const bool has_value = node.find("value") != nullptr && !node.is_none("value");
  std::string value =
      variable(emitter, dtype, literal(has_value ? node.number("value") : 0.0, dtype));
  assign_if(emitter, inside, value, [&] { return emitter.element(self, source); });
  return value;
}

std::string flip_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  Index source = index;
  const Shape& shape = emitter.shape(self);
  for (const std::int64_t each : node.integers("dims")) {
    const auto d = static_cast<std::size_t>(dimension_of(emitter, node, each, shape.size()));
    if (shape.empty()) continue;
    source.at(d) = "(" + std::to_string(shape.at(d) - 1) + " - " + index[d] + ")";
  }
  return emitter.element(self, source);
}

std::string roll_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const std::vector<std::int64_t> shifts = node.integers("shifts");
  const std::vector<std::int64_t> dims = node.integers("dims");
  const Shape& shape = emitter.shape(self);
  const auto shifted = [](const std::string& place, std::int64_t shift, std::int64_t extent) {
    if (extent == 0) return place;
    return modulo(plus(place, (extent - shift % extent) % extent), extent);
  };
  if (shifts.empty()) emitter.refuse(node.node(), "it has no shifts");
  if (dims.empty()) {
    const std::int64_t count = emitter.model().count(self);
    const std::string place = emitter.define(
        emitter.index_type(), shifted(linear_place(index, shape), shifts.at(0), count));
    return emitter.element(self, index_of_place(place, shape));
  }
  if (dims.size() != shifts.size()) emitter.refuse(node.node(), "it has not one shift a dimension");
  Index source = index;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto d = static_cast<std::size_t>(dimension_of(emitter, node, dims[i], shape.size()));
    source.at(d) = shifted(source.at(d), shifts[i], shape.at(d));
  }
  return emitter.element(self, source);
}

std::string repeat_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const Shape& from = emitter.shape(self);
  std::vector<std::int64_t> repeats =
      node.integers(node.find("repeats") != nullptr ? "repeats" : "dims");
  while (repeats.size() < from.size()) repeats.insert(repeats.begin(), 1);
  Shape expected(repeats.size(), 1);
  std::copy(from.rbegin(), from.rend(), expected.rbegin());
  const std::size_t skipped = repeats.size() - from.size();
  Index source(from.size());
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    expected[d] = sized(emitter, node, checked_multiply(expected[d], repeats[d]));
    if (d >= skipped && d < index.size()) {
      source[d - skipped] = repeats[d] == 1
                                ? index[d]
                                : modulo(index[d], std::max<std::int64_t>(from[d - skipped], 1));
    }
  }
  emitter.expect_shape(node.node(), 0, expected);
  return emitter.element(self, source);
}

std::string repeat_interleave_element(Emitter& emitter, const BoundNode& node, int,
                                      const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const std::int64_t repeats = node.integer("repeats");
  const Shape& shape = emitter.shape(self);
  if (repeats < 1) emitter.refuse(node.node(), "'repeats' is not positive");
  if (node.is_none("dim")) {
    const auto count = checked_multiply(emitter.model().count(self), repeats);
    emitter.expect_shape(node.node(), 0, {sized(emitter, node, count)});
    const std::string place = emitter.define(emitter.index_type(), divided(index.at(0), repeats));
    return emitter.element(self, index_of_place(place, shape));
  }
  const auto d =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape.size()));
  Shape expected = shape;
  expected.at(d) = sized(emitter, node, checked_multiply(expected.at(d), repeats));
  emitter.expect_shape(node.node(), 0, expected);
  Index source = index;
  source[d] = divided(index[d], repeats);
  return emitter.element(self, source);
}

std::string shuffle_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const Shape& from = emitter.shape(self);
  const std::string_view name = functional_name(node.node().op_type);
  if (from.size() < 3) emitter.refuse(node.node(), "its operand has too few dimensions");
  Index source = index;
  if (name == "channel_shuffle" || name == "native_channel_shuffle") {
    const std::int64_t groups = node.integer("groups");
    if (groups < 1 || from[1] % groups != 0) emitter.refuse(node.node(), "groups do not fit");
    emitter.expect_shape(node.node(), 0, from);
    source[1] =
        plus(times(modulo(index.at(1), groups), from[1] / groups), divided(index[1], groups));
    return emitter.element(self, source);
  }
  const bool is_up = name == "pixel_shuffle";
  const std::int64_t r = node.integer(is_up ? "upscale_factor" : "downscale_factor");
  if (r < 1 || r > INT32_MAX) emitter.refuse(node.node(), "its factor does not fit");
  const std::size_t c = from.size() - 3;
  Shape expected = from;
  if (r < 1 || (is_up ? from[c] % (r * r) != 0 : from[c + 1] % r != 0 || from[c + 2] % r != 0)) {
    emitter.refuse(node.node(), "its factor does not fit");
  }
  if (is_up) {
    expected[c] /= r * r;
    expected[c + 1] *= r;
    expected[c + 2] *= r;
    emitter.expect_shape(node.node(), 0, expected);
    source[c] = plus(plus(times(index[c], r * r), times(modulo(index[c + 1], r), r)),
                     modulo(index[c + 2], r));
    source[c + 1] = divided(index[c + 1], r);
    source[c + 2] = divided(index[c + 2], r);
  } else {
    expected[c] *= r * r;
    expected[c + 1] /= r;
    expected[c + 2] /= r;
    emitter.expect_shape(node.node(), 0, expected);
    source[c] = divided(index[c], r * r);
    source[c + 1] = plus(times(index[c + 1], r), modulo(divided(index[c], r), r));
    source[c + 2] = plus(times(index[c + 2], r), modulo(index[c], r));
  }
  return emitter.element(self, source);
}

std::string triangle_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const DType dtype = emitter.dtype(self);
  if (index.size() < 2) emitter.refuse(node.node(), "its operand has too few dimensions");
  const std::int64_t diagonal = node.integer("diagonal");
  const bool is_upper = functional_name(node.node().op_type) == "triu";
  const std::string value = emitter.element(self, index);
  return "(" + index.back() + " - " + index[index.size() - 2] + (is_upper ? " >= " : " <= ") + "(" +
         std::to_string(diagonal) + ") ? " + value + " : " + literal(0.0, dtype) + ")";
}

// slice_scatter and select_scatter: the operand with a part replaced.
ScatteredPart scattered_part(const Emitter& emitter, const BoundNode& node) {
  const Shape& shape = emitter.shape(tensor_of(emitter, node, "self"));
  ScatteredPart part;
  part.dimension =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape.size()));
  if (shape.empty()) emitter.refuse(node.node(), "a scalar has no parts");
  const std::int64_t extent = shape[part.dimension];
  part.selects = functional_name(node.node().op_type) == "select_scatter";
  const auto clamped = [extent](std::int64_t place) {
    return std::clamp<std::int64_t>(place < 0 ? place + extent : place, 0, extent);
  };
  part.shape = shape;
  if (part.selects) {
    part.begin = node.integer("index");
    if (part.begin < 0) part.begin += extent;
    part.end = part.begin + 1;
    part.shape.erase(part.shape.begin() + static_cast<std::ptrdiff_t>(part.dimension));
  } else {
    part.step = node.integer("step");
    part.begin = node.is_none("start") ? 0 : clamped(node.integer("start"));
    part.end = node.is_none("end") ? extent : clamped(node.integer("end"));
    if (part.step < 1) emitter.refuse(node.node(), "its step is not positive");
    part.shape[part.dimension] =
        part.end > part.begin ? (part.end - part.begin + part.step - 1) / part.step : 0;
  }
  if (part.begin < 0 || part.end > extent ||
      emitter.shape(tensor_of(emitter, node, "src")) != part.shape) {
    emitter.refuse(node.node(), "the part does not fit");
  }
  return part;
}

std::string slice_scatter_element(Emitter& emitter, const BoundNode& node, int,
                                  const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const TensorId source = tensor_of(emitter, node, "src");
  const DType dtype = emitter.dtype(self);
  const ScatteredPart part = scattered_part(emitter, node);
  const std::string& place = index[part.dimension];
  Index at = index;
  if (part.selects) {
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(part.dimension));
  } else {
    at[part.dimension] = divided(plus(place, -part.begin), part.step);
  }
  std::string condition = place + " >= " + std::to_string(part.begin) + " && " + place + " < " +
                          std::to_string(part.end);
  if (part.step != 1)
    condition += " && (" + place + " - " + std::to_string(part.begin) + ") % " +
                 std::to_string(part.step) + " == 0";
  std::string value = variable(emitter, dtype, emitter.element(self, index));
  assign_if(emitter, condition, value, [&] { return emitter.element_as(source, at, dtype); });
  return value;
}

std::string meshgrid_element(Emitter& emitter, const BoundNode& node, int result,
                             const Index& index) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  const bool swaps = node.find("indexing") != nullptr && !node.is_none("indexing") &&
                     node.string("indexing") == "xy" && tensors.size() >= 2;
  const auto dimension = [&](std::size_t i) { return swaps && i < 2 ? 1 - i : i; };
  Shape expected(tensors.size(), 1);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    expected[dimension(i)] = emitter.model().count(tensors[i]);
  }
  emitter.expect_shape(node.node(), result, expected);
  const auto which = static_cast<std::size_t>(result);
  const TensorId tensor = tensors.at(which);
  const std::string& place = index.at(dimension(which));
  return emitter.element(tensor, emitter.shape(tensor).empty() ? Index{} : Index{place});
}

}  // namespace npu::opencl
