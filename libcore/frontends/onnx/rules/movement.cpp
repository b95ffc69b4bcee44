// SPDX-License-Identifier: Apache-2.0
// Ops that make constants, change shapes and move elements, and If, whose branch is known.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "patterns.hpp"
#include "rules/rules.hpp"
#include "support/checked.hpp"

namespace npu::onnx {
namespace {

Tensor tensor_of_attribute(const AttributeProto& attribute) {
  const auto fill = [](Tensor tensor, const auto& values) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    std::copy(values.begin(), values.end(), tensor.template as_mutable<T>());
    return tensor;
  };
  const auto length = [](const auto& values) {
    return Shape{static_cast<std::int64_t>(values.size())};
  };
  switch (attribute.type) {
    case AttributeType::kFloat:
      return fill(Tensor(DType::kFloat32, {}), std::vector<float>{attribute.f});
    case AttributeType::kInt:
      return fill(Tensor(DType::kInt64, {}), Ints{attribute.i});
    case AttributeType::kFloats:
      return fill(Tensor(DType::kFloat32, length(attribute.floats)), attribute.floats);
    case AttributeType::kInts:
      return fill(Tensor(DType::kInt64, length(attribute.ints)), attribute.ints);
    default:
      return Tensor();
  }
}

// The axes of Squeeze and Unsqueeze: an attribute before opset 13, then an operand.
std::optional<Ints> axes_of(Op& op) { return op.integers_since(13, "axes", 1); }

struct SliceRange {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
};

// Bounds as ONNX counts them: from the end if negative, cut to the extent.
SliceRange clamped(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t extent) {
  if (start < 0) start = start < -extent ? -1 : start + extent;
  if (end < 0) end = end < -extent ? -1 : end + extent;
  if (step > 0) {
    return {std::clamp<std::int64_t>(start, 0, extent), std::clamp<std::int64_t>(end, 0, extent),
            step};
  }
  return {std::clamp<std::int64_t>(start, -1, extent - 1),
          std::clamp<std::int64_t>(end, -1, extent - 1), step};
}

// The axis the other way round.
Value* flipped(Op& op, Value* value, std::int64_t axis) {
  const Tensor* known = is_floating_point(value->dtype) ? nullptr : op.importer().known(value);
  if (known == nullptr) {
    return op.emit_like("aten.flip.default", {value}, Json{{"dims", Ints{axis}}});
  }
  const auto at = static_cast<std::size_t>(axis);
  const Shape& shape = value->shape;
  Tensor turned(value->dtype, shape);
  const std::size_t block =
      static_cast<std::size_t>(product(shape, at + 1, shape.size())) * dtype_size(value->dtype);
  const std::int64_t rows = product(shape, 0, at);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < shape[at]; ++i) {
      const auto from = static_cast<std::size_t>((r + 1) * shape[at] - 1 - i);
      const auto to = static_cast<std::size_t>(r * shape[at] + i);
      std::memcpy(turned.mutable_data() + to * block, known->data() + from * block, block);
    }
  }
  return op.constant_value(std::move(turned));
}

Value* sliced(Op& op, Value* value, std::int64_t axis, SliceRange range) {
  const std::int64_t extent = value->shape[static_cast<std::size_t>(axis)];
  if (range.step > 0) return op.slice(value, axis, range.start, range.end, range.step);
  // From the end: the flipped axis forwards.
  Value* turned = flipped(op, value, axis);
  return op.slice(turned, axis, extent - 1 - range.start, extent - 1 - range.end,
                  range.step == INT64_MIN ? INT64_MAX : -range.step);
}

}  // namespace

Value* concatenated(Op& op, const std::vector<Value*>& parts, std::int64_t axis) {
  if (parts.size() == 1) return parts[0];
  Shape shape = parts[0]->shape;
  const auto at = static_cast<std::size_t>(axis);
  shape[at] = 0;
  for (const Value* part : parts) {
    Shape other = part->shape;
    if (other.size() != shape.size() || part->dtype != parts[0]->dtype) {
      Op::refuse("operands of two types or ranks");
    }
    const std::int64_t extent = other[at];
    other[at] = shape[at];
    if (other != shape) Op::refuse("shapes do not fit together");
    if (__builtin_add_overflow(shape[at], extent, &shape[at])) Op::refuse("too large");
  }
  return op.emit("aten.cat.default", parts, Json{{"dim", axis}}, parts[0]->dtype, shape);
}

std::int64_t integer_operand(Op& op, std::size_t index, std::string_view what) {
  const Ints values = op.integers(index, what);
  if (values.size() != 1) Op::refuse(std::string(what) + " is expected to be one number");
  return values[0];
}

void import_constant(Op& op) {
  constexpr std::array<std::pair<std::string_view, AttributeType>, 6> kForms{
      {{"value", AttributeType::kTensor},
       {"sparse_value", AttributeType::kSparse},
       {"value_float", AttributeType::kFloat},
       {"value_floats", AttributeType::kFloats},
       {"value_int", AttributeType::kInt},
       {"value_ints", AttributeType::kInts}}};
  std::vector<Value*> values;
  for (const auto& [name, type] : kForms) {
    const AttributeProto* attribute = op.attribute(name);
    if (attribute == nullptr) continue;
    if (attribute->type != type) Op::refuse("'" + std::string(name) + "' is of another type");
    if (type == AttributeType::kTensor) {
      values.push_back(op.importer().attribute_constant(*attribute->tensor));
    } else if (type == AttributeType::kSparse) {
      values.push_back(op.importer().sparse_constant(*attribute->sparse));
    } else {
      values.push_back(op.constant_value(tensor_of_attribute(*attribute)));
    }
  }
  for (const char* name : {"value_string", "value_strings"}) {
    if (op.attribute(name) != nullptr) Op::refuse("npu-tools has no strings");
  }
  if (values.size() != 1) {
    Op::refuse("a constant with " + std::to_string(values.size()) + " values, expected one");
  }
  op.set(0, values[0]);
}

void import_constant_of_shape(Op& op) {
  const Ints shape = op.integers(0, "the shape");
  product(shape, 0, shape.size());
  Json fill = 0.0;
  DType dtype = DType::kFloat32;
  if (const OnnxTensor* value = op.tensor("value")) {
    const Tensor tensor = decode_onnx_tensor(*value, op.importer().bytes(), 1);
    if (tensor.element_count() != 1) Op::refuse("'value' is not one number");
    dtype = tensor.dtype();
    fill = dtype == DType::kInt64 ? Json(*tensor.as<std::int64_t>())
                                  : json_number_of(tensor.value_as_double(0), dtype);
  }
  op.set(0, op.filled(shape, dtype, fill));
}

void import_shape(Op& op) {
  const Shape& shape = op.in(0)->shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const SliceRange range = clamped(op.integer("start", 0), op.integer("end", rank), 1, rank);
  const std::int64_t end = std::max(range.start, range.end);
  const Ints values(shape.begin() + range.start, shape.begin() + end);
  op.set(0, op.integer_constant(values, {static_cast<std::int64_t>(values.size())}));
}

void import_size(Op& op) { op.set(0, op.integer_constant({op.in(0)->count()}, {})); }

void import_reshape(Op& op) {
  Value* x = op.in(0);
  Ints wanted = op.opset() < 5 ? op.list("shape").value_or(Ints{}) : op.integers(1, "the shape");
  const bool keeps_zero = op.integer("allowzero", 0) != 0;
  std::int64_t open = -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && !keeps_zero) {
      if (i >= x->shape.size()) Op::refuse("a 0 in the shape has no dimension to copy");
      wanted[i] = x->shape[i];
    }
    if (wanted[i] == -1 && open >= 0) Op::refuse("two dimensions are -1");
    if (wanted[i] == -1) open = static_cast<std::int64_t>(i);
    if (wanted[i] < -1) Op::refuse("the shape " + shape_text(wanted) + " has a negative dimension");
  }
  if (open >= 0) {
    wanted[static_cast<std::size_t>(open)] = 1;
    const std::int64_t others = product(wanted, 0, wanted.size());
    if (others == 0 || x->count() % others != 0) {
      Op::refuse("shape " + shape_text(x->shape) + " does not become " + shape_text(wanted));
    }
    wanted[static_cast<std::size_t>(open)] = x->count() / others;
  }
  op.set(0, op.view(x, wanted));
}

void import_flatten(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = op.integer("axis", 1);
  const std::int64_t at = axis < 0 ? axis + x->rank() : axis;
  if (at < 0 || at > x->rank()) Op::refuse("the axis is out of range");
  const auto split = static_cast<std::size_t>(at);
  op.set(0, op.view(x, {product(x->shape, 0, split), product(x->shape, split, x->shape.size())}));
}

void import_squeeze(Op& op) {
  Value* x = op.in(0);
  std::vector<bool> drop(x->shape.size(), false);
  if (const auto axes = axes_of(op)) {
    for (const std::int64_t axis : *axes) {
      const auto at = static_cast<std::size_t>(Op::axis_of(axis, x->rank()));
      if (x->shape[at] != 1) Op::refuse("a dimension that is not 1 cannot be dropped");
      drop[at] = true;
    }
  } else {
    for (std::size_t i = 0; i < drop.size(); ++i) drop[i] = x->shape[i] == 1;
  }
  Shape shape;
  for (std::size_t i = 0; i < drop.size(); ++i) {
    if (!drop[i]) shape.push_back(x->shape[i]);
  }
  op.set(0, op.view(x, shape));
}

void import_unsqueeze(Op& op) {
  Value* x = op.in(0);
  const auto axes = axes_of(op);
  if (!axes) Op::refuse("axes are missing");
  const std::int64_t rank = x->rank() + static_cast<std::int64_t>(axes->size());
  std::vector<bool> added(static_cast<std::size_t>(rank), false);
  for (const std::int64_t axis : *axes) {
    const auto at = static_cast<std::size_t>(Op::axis_of(axis, rank));
    if (added[at]) Op::refuse("an axis stands there twice");
    added[at] = true;
  }
  Shape shape;
  std::size_t next = 0;
  for (const bool is_new : added) shape.push_back(is_new ? 1 : x->shape[next++]);
  op.set(0, op.view(x, shape));
}

void import_transpose(Op& op) {
  Value* x = op.in(0);
  Ints order;
  for (std::int64_t axis = x->rank(); axis-- > 0;) order.push_back(axis);
  if (auto given = op.list("perm")) order = *given;
  Ints sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i)) Op::refuse("perm is no permutation");
  }
  if (order.size() != x->shape.size()) Op::refuse("perm does not fit its operand");
  op.set(0, op.permute(x, order));
}

void import_concat(Op& op) {
  std::vector<Value*> parts;
  for (std::size_t i = 0; i < op.input_count(); ++i) parts.push_back(op.in(i));
  if (parts.empty()) Op::refuse("has no operand");
  const std::int64_t axis =
      Op::axis_of(op.integer("axis", op.opset() < 4 ? 1 : 0), parts[0]->rank());
  Shape shape = parts[0]->shape;
  shape[static_cast<std::size_t>(axis)] = 0;
  for (const Value* part : parts) {
    if (part->dtype != parts[0]->dtype || part->rank() != parts[0]->rank()) {
      Op::refuse("operands of two types or ranks");
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (static_cast<std::int64_t>(i) == axis) {
        if (__builtin_add_overflow(shape[i], part->shape[i], &shape[i])) Op::refuse("too large");
      } else if (part->shape[i] != shape[i]) {
        Op::refuse("shapes " + shape_text(parts[0]->shape) + " and " + shape_text(part->shape) +
                   " do not fit together");
      }
    }
  }
  if (parts.size() == 1) return op.set(0, parts[0]);
  if (Value* rolled = match_roll(op, parts, axis)) return op.set(0, rolled);
  op.set(0, op.emit("aten.cat.default", parts, Json{{"dim", axis}}, parts[0]->dtype, shape));
}

void import_split(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = Op::axis_of(op.integer("axis", 0), x->rank());
  const auto at = static_cast<std::size_t>(axis);
  const auto count = static_cast<std::int64_t>(op.output_count());
  const auto given = op.integers_since(13, "split", 1);
  if (op.integer("num_outputs", count) != count) {
    Op::refuse("'num_outputs' is not the number of its results, " + std::to_string(count));
  }
  Ints sizes = given.value_or(Ints{});
  if (!given) {
    if (op.opset() < 18 && x->shape[at] % count != 0) Op::refuse("the parts are not of one size");
    const std::int64_t size = (x->shape[at] + count - 1) / count;
    for (std::int64_t i = 0; i < count; ++i) {
      sizes.push_back(std::clamp<std::int64_t>(x->shape[at] - i * size, 0, size));
    }
  }
  std::int64_t sum = 0;
  std::vector<ResultType> results;
  for (const std::int64_t size : sizes) {
    if (size < 0 || __builtin_add_overflow(sum, size, &sum)) Op::refuse("a part of negative size");
    Shape shape = x->shape;
    shape[at] = size;
    results.push_back({x->dtype, shape});
  }
  if (sum != x->shape[at] || sizes.size() != op.output_count()) {
    Op::refuse("the parts do not add up to the dimension");
  }
  if (sizes.size() == 1) return op.set(0, x);
  if (op.importer().known(x, 1024) != nullptr) {
    std::int64_t start = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      op.set(i, op.slice(x, axis, start, start + sizes[i]));
      start += sizes[i];
    }
    return;
  }
  const auto parts = op.draft().emit_several("aten.split_with_sizes.default", {x},
                                             Json{{"split_sizes", sizes}, {"dim", axis}}, results);
  for (std::size_t i = 0; i < parts.size(); ++i) op.set(i, parts[i]);
}

void import_slice(Op& op) {
  Value* x = op.in(0);
  const bool has_operands = op.opset() >= 10;
  const auto starts = has_operands ? op.integers(1, "starts") : op.list("starts").value_or(Ints{});
  const auto ends = has_operands ? op.integers(2, "ends") : op.list("ends").value_or(Ints{});
  auto axes = has_operands
                  ? (op.has_input(3) ? std::optional(op.integers(3, "axes")) : std::nullopt)
                  : op.list("axes");
  const Ints steps =
      has_operands && op.has_input(4) ? op.integers(4, "steps") : Ints(starts.size(), 1);
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < starts.size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  if (ends.size() != starts.size() || axes->size() != starts.size() ||
      steps.size() != starts.size()) {
    Op::refuse("starts, ends, axes and steps are of different lengths");
  }
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t axis = Op::axis_of((*axes)[i], op.in(0)->rank());
    if (steps[i] == 0) Op::refuse("a step of 0");
    x = sliced(op, x, axis,
               clamped(starts[i], ends[i], steps[i], x->shape[static_cast<std::size_t>(axis)]));
  }
  op.set(0, x);
}

void import_expand(Op& op) {
  Value* x = op.in(0);
  op.set(0, op.expand(x, broadcast(x->shape, op.integers(1, "the shape"))));
}

void import_tile(Op& op) {
  Value* x = op.in(0);
  Ints repeats;
  if (op.opset() < 6) {
    repeats.assign(x->shape.size(), 1);
    const double tiles = op.number(1, "tiles");
    const std::int64_t axis =
        Op::axis_of(static_cast<std::int64_t>(op.number(2, "axis")), x->rank());
    repeats[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(tiles);
  } else {
    repeats = op.integers(1, "repeats");
  }
  if (repeats.size() != x->shape.size()) Op::refuse("repeats do not fit their operand");
  Shape shape = x->shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (repeats[i] < 0 || __builtin_mul_overflow(shape[i], repeats[i], &shape[i])) {
      Op::refuse("a repeat that is negative or too large");
    }
  }
  product(shape, 0, shape.size());
  op.set(0, op.emit("aten.repeat.default", {x}, Json{{"repeats", repeats}}, x->dtype, shape));
}

namespace {

using Pads = std::vector<std::pair<std::int64_t, std::int64_t>>;  // by dimension

// Pads of the dimensions behind the channels in a form that ATen has, which is the same for every
// size; null for others.
Value* padded_with_torch(Op& op, Value* x, const std::string& mode, const Pads& pads) {
  const std::size_t rank = pads.size();
  const std::pair<std::int64_t, std::int64_t> none(0, 0);
  if ((mode != "edge" && mode != "reflect") || x->dtype != DType::kFloat32 || rank < 3 ||
      rank > 5 || pads[0] != none || pads[1] != none) {
    return nullptr;
  }
  Ints padding;
  Shape shape = x->shape;
  for (std::size_t axis = rank; axis-- > 2;) {
    const auto [before, after] = pads[axis];
    const std::int64_t most = mode == "reflect" ? x->shape[axis] - 1 : 1 << 20;
    if (before < 0 || after < 0 || before > most || after > most || x->shape[axis] < 1) {
      return nullptr;
    }
    padding.insert(padding.end(), {before, after});
    shape[axis] += before + after;
  }
  if (x->count() == 0) return nullptr;
  const std::string name = mode == "edge" ? "aten.replication_pad" : "aten.reflection_pad";
  return op.emit(name + std::to_string(rank - 2) + "d.default", {x}, Json{{"padding", padding}},
                 x->dtype, shape);
}

}  // namespace

void import_pad(Op& op) {
  Value* x = op.in(0);
  const std::string mode = op.text("mode", "constant");
  const bool has_operands = op.opset() >= 11;
  const Ints flat = has_operands ? op.integers(1, "pads")
                                 : op.list(op.opset() < 2 ? "paddings" : "pads").value_or(Ints{});
  double fill = op.opset() < 11 ? op.real("value", 0) : 0;
  if (has_operands && op.has_input(2)) fill = op.number(2, "the value");
  Ints axes;
  if (op.opset() >= 18 && op.has_input(3)) {
    for (const std::int64_t axis : op.integers(3, "axes")) {
      axes.push_back(Op::axis_of(axis, x->rank()));
    }
  } else {
    for (std::int64_t i = 0; i < x->rank(); ++i) axes.push_back(i);
  }
  if (flat.size() != 2 * axes.size()) Op::refuse("pads do not fit their operand");
  Pads pads(x->shape.size(), {0, 0});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    pads[static_cast<std::size_t>(axes[i])] = {flat[i], flat[i + axes.size()]};
  }
  if (mode == "constant") return op.set(0, op.pad(x, pads, fill));
  if (op.importer().settings().notes_computed) {
    if (Value* value = padded_with_torch(op, x, mode, pads)) return op.set(0, value);
  }
  // Edge and reflection: the index of each axis is known.
  if (mode != "edge" && mode != "reflect" && mode != "wrap") Op::refuse("mode '" + mode + "'");
  for (std::size_t axis = 0; axis < pads.size(); ++axis) {
    if (pads[axis] == std::pair<std::int64_t, std::int64_t>(0, 0)) continue;
    const std::int64_t extent = x->shape[axis];
    const std::int64_t size = extent + pads[axis].first + pads[axis].second;
    if (extent == 0 || size < 0 || size > (1 << 20)) Op::refuse("pads that are too large");
    Ints index;
    for (std::int64_t i = 0; i < size; ++i) {
      std::int64_t at = i - pads[axis].first;
      if (mode == "edge") {
        at = std::clamp<std::int64_t>(at, 0, extent - 1);
      } else if (mode == "wrap") {
        at = (at % extent + extent) % extent;
      } else if (extent == 1) {
        at = 0;
      } else {
        const std::int64_t period = 2 * (extent - 1);
        at = (at % period + period) % period;
        at = at < extent ? at : period - at;
      }
      index.push_back(at);
    }
    Shape shape = x->shape;
    shape[axis] = size;
    x = op.emit("aten.index_select.default", {x, op.integer_constant(index, {size})},
                Json{{"dim", axis}}, x->dtype, shape);
  }
  op.set(0, x);
}

void import_depth_to_space(Op& op) {
  Value* x = op.in(0);
  const std::int64_t size = op.integer("blocksize", 0);
  if (x->rank() != 4 || size < 1 || size > 1 << 15 || x->shape[1] % (size * size) != 0) {
    Op::refuse("shape " + shape_text(x->shape) + " has no such blocks");
  }
  const std::int64_t n = x->shape[0];
  const std::int64_t c = x->shape[1] / (size * size);
  const std::int64_t h = x->shape[2];
  const std::int64_t w = x->shape[3];
  const std::string mode = op.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") Op::refuse("mode '" + mode + "'");
  if (mode == "CRD") {
    return op.set(0, op.emit("aten.pixel_shuffle.default", {x}, Json{{"upscale_factor", size}},
                             x->dtype, {n, c, h * size, w * size}));
  }
  Value* blocks = op.permute(op.view(x, {n, size, size, c, h, w}), {0, 3, 4, 1, 5, 2});
  op.set(0, op.view(blocks, {n, c, h * size, w * size}));
}

void import_space_to_depth(Op& op) {
  Value* x = op.in(0);
  const std::int64_t size = op.integer("blocksize", 0);
  if (x->rank() != 4 || size < 1 || x->shape[2] % size != 0 || x->shape[3] % size != 0) {
    Op::refuse("shape " + shape_text(x->shape) + " has no such blocks");
  }
  const std::int64_t n = x->shape[0];
  const std::int64_t c = x->shape[1];
  const std::int64_t h = x->shape[2] / size;
  const std::int64_t w = x->shape[3] / size;
  Value* blocks = op.permute(op.view(x, {n, c, h, size, w, size}), {0, 3, 5, 1, 2, 4});
  op.set(0, op.view(blocks, {n, c * size * size, h, w}));
}

}  // namespace npu::onnx
