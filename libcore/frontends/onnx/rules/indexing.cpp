// SPDX-License-Identifier: Apache-2.0
// Ops that pick or place elements by index. Negative indices count from the end; those that are
// constants are made positive here. For others aten.index and index_put do it, and nodes for ops
// that do not. What is out of range stays so, and ends the run.
#include <algorithm>
#include <cmath>

#include "patterns.hpp"
#include "rules/attention.hpp"
#include "rules/rules.hpp"
#include "support/json_fields.hpp"
#include "written_box.hpp"

namespace npu::onnx {
namespace {

// `index` plus `extent` where it is negative.
Value* counted_from_begin(Op& op, Value* index, std::int64_t extent) {
  Value* is_below =
      op.emit("aten.lt.Scalar", {index}, Json{{"other", 0}}, DType::kBool, index->shape);
  Value* shifted = op.emit_like("aten.add.Tensor", {index}, Json{{"other", extent}});
  return op.emit("aten.where.self", {is_below, shifted, index}, Json::object(), DType::kInt64,
                 index->shape);
}

// Indices of an axis of `extent` elements as int64 numbers; constants are checked and at least 0.
Value* indices_of(Op& op, Value* index, std::int64_t extent) {
  if (!is_integer(index->dtype))
    Op::refuse("indices of type " + std::string(dtype_name(index->dtype)));
  const Tensor* known = op.importer().known(index);
  if (known == nullptr) return op.cast(index, DType::kInt64);
  Ints values;
  for (std::int64_t i = 0; i < known->element_count(); ++i) {
    const auto value = static_cast<std::int64_t>(known->value_as_double(i));
    if (value < -extent || value >= extent) {
      Op::refuse("index " + std::to_string(value) + " of a dimension of " + std::to_string(extent));
    }
    values.push_back(value < 0 ? value + extent : value);
  }
  return op.integer_constant(values, index->shape);
}

// As indices_of, for ops that take no negative numbers.
Value* from_begin(Op& op, Value* index, std::int64_t extent) {
  Value* wide = indices_of(op, index, extent);
  return wide->is_constant() ? wide : counted_from_begin(op, wide, extent);
}

Ints counting(std::int64_t count) {
  if (count > Importer::kMostKnown) Op::refuse("an axis that is too long");
  Ints values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i);
  return values;
}

std::int64_t axis_attribute(Op& op, const Value* x, std::int64_t absent) {
  return Op::axis_of(op.integer("axis", absent), x->rank());
}

// The columns of an index of GatherND and ScatterND as indices of the first axes of `data`, after
// `batch` axes that count.
std::vector<Value*> columns_of(Op& op, Value* index, const Shape& data, std::int64_t batch) {
  const std::int64_t width = index->shape.back();
  if (width < 1 || width + batch > static_cast<std::int64_t>(data.size())) {
    Op::refuse("indices of shape " + shape_text(index->shape) + " do not fit");
  }
  Shape shape(index->shape.begin(), index->shape.end() - 1);
  std::vector<Value*> columns;
  for (std::int64_t b = 0; b < batch; ++b) {
    Shape place(shape.size(), 1);
    place[static_cast<std::size_t>(b)] = shape[static_cast<std::size_t>(b)];
    columns.push_back(op.integer_constant(counting(shape[static_cast<std::size_t>(b)]), place));
  }
  for (std::int64_t i = 0; i < width; ++i) {
    Value* column = op.view(op.slice(index, index->rank() - 1, i, i + 1), shape);
    columns.push_back(indices_of(op, column, data[static_cast<std::size_t>(batch + i)]));
  }
  return columns;
}

std::string reduction_verb(const std::string& reduction) {
  if (reduction == "add") return "sum";
  if (reduction == "mul") return "prod";
  if (reduction == "max") return "amax";
  if (reduction == "min") return "amin";
  Op::refuse("reduction '" + reduction + "'");
}

}  // namespace

void import_gather(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = axis_attribute(op, x, 0);
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t extent = x->shape[at];
  Shape shape(x->shape.begin(), x->shape.begin() + axis);
  const Shape index_shape = op.in(1)->shape;
  shape.insert(shape.end(), index_shape.begin(), index_shape.end());
  shape.insert(shape.end(), x->shape.begin() + axis + 1, x->shape.end());
  if (const Tensor* known = op.importer().known(op.in(1), 1);
      known != nullptr && index_shape.empty()) {
    auto place = static_cast<std::int64_t>(known->value_as_double(0));
    if (place < -extent || place >= extent) Op::refuse("an index is out of range");
    if (place < 0) place += extent;
    return op.set(
        0, op.emit("aten.select.int", {x}, Json{{"dim", axis}, {"index", place}}, x->dtype, shape));
  }
  Value* index = indices_of(op, op.in(1), extent);
  if (axis == 0) {
    if (Value* rows = match_indices(op, x, index)) return op.set(0, rows);
  }
  if (!index->is_constant()) {
    Json attrs{{"_tensor_list_sizes", Ints{1}}};
    if (axis > 0) {
      std::vector<bool> is_none(at + 1, true);
      is_none.back() = false;
      attrs["_tensor_list_none_masks"] = Json::array({is_none});
    }
    return op.set(0, op.emit("aten.index.Tensor", {x, index}, std::move(attrs), x->dtype, shape));
  }
  if (x->is_constant() && axis == 0 && x->rank() == 2 && !index_shape.empty() &&
      is_floating_point(x->dtype)) {
    return op.set(0,
                  op.emit("aten.embedding.default", {x, index}, Json::object(), x->dtype, shape));
  }
  Value* flat = op.view(index, {index->count()});
  Shape flat_shape = x->shape;
  flat_shape[at] = index->count();
  Value* value =
      op.emit("aten.index_select.default", {x, flat}, Json{{"dim", axis}}, x->dtype, flat_shape);
  op.set(0, op.view(value, shape));
}

void import_gather_elements(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = axis_attribute(op, x, 0);
  if (op.in(1)->rank() != x->rank()) Op::refuse("indices of another rank");
  Value* index = from_begin(op, op.in(1), x->shape[static_cast<std::size_t>(axis)]);
  op.set(0,
         op.emit("aten.gather.default", {x, index}, Json{{"dim", axis}}, x->dtype, index->shape));
}

void import_gather_nd(Op& op) {
  Value* x = op.in(0);
  Value* index = op.in(1);
  const std::int64_t batch = op.integer("batch_dims", 0);
  if (index->rank() < 1 || batch < 0 || batch >= index->rank())
    Op::refuse("'batch_dims' do not fit");
  const auto columns = columns_of(op, index, x->shape, batch);
  Shape shape(index->shape.begin(), index->shape.end() - 1);
  shape.insert(shape.end(), x->shape.begin() + static_cast<std::ptrdiff_t>(columns.size()),
               x->shape.end());
  std::vector<Value*> operands{x};
  operands.insert(operands.end(), columns.begin(), columns.end());
  op.set(0, op.emit("aten.index.Tensor", operands,
                    Json{{"_tensor_list_sizes", Ints{static_cast<std::int64_t>(columns.size())}}},
                    x->dtype, shape));
}

void import_scatter_elements(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = axis_attribute(op, x, 0);
  if (op.in(1)->rank() != x->rank() || op.in(2)->shape != op.in(1)->shape) {
    Op::refuse("indices and updates do not fit");
  }
  Value* index = from_begin(op, op.in(1), x->shape[static_cast<std::size_t>(axis)]);
  const std::string reduction = op.text("reduction", "none");
  if (reduction == "none") {
    return op.set(0, op.emit_like("aten.scatter.src", {x, index, op.in(2)}, Json{{"dim", axis}}));
  }
  const std::string verb = reduction_verb(reduction);
  op.set(0, op.emit_like("aten.scatter_reduce.two", {x, index, op.in(2)},
                         Json{{"dim", axis}, {"reduce", verb}}));
}

namespace {

// Products and extrema over the slices that columns of indices pick, which are rows of a matrix.
Value* reduced_rows(Op& op, Value* x, const std::vector<Value*>& columns, Value* updates,
                    const std::string& verb) {
  const std::size_t width = columns.size();
  const auto scaled = [&](std::size_t i) {
    const std::int64_t stride = product(x->shape, i + 1, width);
    Value* column = from_begin(op, columns[i], x->shape[i]);
    if (stride == 1) return column;
    return op.emit_like("aten.mul.Tensor", {column}, Json{{"other", stride}});
  };
  Value* row = scaled(0);
  for (std::size_t i = 1; i < width; ++i) row = op.binary("add", row, scaled(i));
  const std::int64_t rows = product(x->shape, 0, width);
  const std::int64_t rest = product(x->shape, width, x->shape.size());
  const std::int64_t count = row->count();
  if (updates->count() != count * rest) Op::refuse("indices and updates do not fit");
  Value* places = op.expand(op.view(row, {count, 1}), {count, rest});
  Value* result = op.emit_like("aten.scatter_reduce.two",
                               {op.view(x, {rows, rest}), places, op.view(updates, {count, rest})},
                               Json{{"dim", 0}, {"reduce", verb}});
  return op.view(result, x->shape);
}

}  // namespace

void import_scatter_nd(Op& op) {
  Value* x = op.in(0);
  const std::string reduction = op.text("reduction", "none");
  if (op.in(1)->rank() < 1) Op::refuse("indices without columns");
  if (reduction == "none") {
    if (Value* result = write_box(op, x, op.in(1), op.in(2))) return op.set(0, result);
  }
  const auto columns = columns_of(op, op.in(1), x->shape, 0);
  if (reduction != "none" && reduction != "add") {
    return op.set(0, reduced_rows(op, x, columns, op.in(2), reduction_verb(reduction)));
  }
  std::vector<Value*> operands{x};
  operands.insert(operands.end(), columns.begin(), columns.end());
  operands.push_back(op.in(2));
  Json attrs{{"_tensor_list_sizes", Ints{static_cast<std::int64_t>(columns.size())}}};
  if (reduction == "add") attrs["accumulate"] = true;
  op.set(0, op.emit_like("aten.index_put.default", operands, std::move(attrs)));
}

void import_one_hot(Op& op) {
  Value* index = op.in(0);
  const auto depth = static_cast<std::int64_t>(op.number(1, "the depth"));
  Value* values = op.in(2);
  if (depth < 1 || values->count() != 2) Op::refuse("depth or values do not fit");
  const std::int64_t rank = index->rank() + 1;
  const std::int64_t axis = Op::axis_of(op.integer("axis", -1), rank);
  Shape shape = index->shape;
  shape.insert(shape.begin() + axis, 1);
  Shape place_shape(static_cast<std::size_t>(rank), 1);
  place_shape[static_cast<std::size_t>(axis)] = depth;
  Value* places = op.integer_constant(counting(depth), place_shape);
  // Indices from -depth on count from the end; what is further out hits nothing.
  Value* wide = op.view(op.cast(index, DType::kInt64), shape);
  Value* hits = op.compare("eq", counted_from_begin(op, wide, depth), places);
  Value* off = op.view(op.slice(values, 0, 0, 1), {});
  Value* on = op.view(op.slice(values, 0, 1, 2), {});
  op.set(0,
         op.emit("aten.where.self", {hits, on, off}, Json::object(), values->dtype, hits->shape));
}

void import_trilu(Op& op) {
  Value* x = op.in(0);
  const auto diagonal = op.has_input(1) ? static_cast<std::int64_t>(op.number(1, "k")) : 0;
  const bool is_upper = op.integer("upper", 1) != 0;
  op.set(0, op.emit_like(is_upper ? "aten.triu.default" : "aten.tril.default", {x},
                         Json{{"diagonal", diagonal}}));
}

void import_cumulative(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis =
      Op::axis_of(static_cast<std::int64_t>(op.number(1, "the axis")), x->rank());
  const Json flip{{"dims", Ints{axis}}};
  const bool is_reverse = op.integer("reverse", 0) != 0;
  Value* value = is_reverse ? op.emit_like("aten.flip.default", {x}, flip) : x;
  Json attrs{{"dim", axis}};
  if (!is_floating_point(x->dtype)) attrs["dtype"] = "torch." + std::string(dtype_name(x->dtype));
  const bool is_sum = op.node().op_type == "CumSum";
  if (op.integer("exclusive", 0) != 0) {
    // One neutral element in front, and without the last.
    std::vector<std::pair<std::int64_t, std::int64_t>> pads(x->shape.size(), {0, 0});
    pads[static_cast<std::size_t>(axis)] = {1, -1};
    value = op.pad(value, pads, is_sum ? 0 : 1);
  }
  value = op.emit_like(is_sum ? "aten.cumsum.default" : "aten.cumprod.default", {value},
                       std::move(attrs));
  op.set(0, is_reverse ? op.emit_like("aten.flip.default", {value}, flip) : value);
}

void import_top_k(Op& op) {
  Value* x = op.in(0);
  const std::int64_t axis = axis_attribute(op, x, -1);
  const std::int64_t k =
      op.opset() < 10 ? op.integer("k", 0) : static_cast<std::int64_t>(op.number(1, "k"));
  Shape shape = x->shape;
  if (k < 0 || k > shape[static_cast<std::size_t>(axis)]) Op::refuse("k does not fit its operand");
  shape[static_cast<std::size_t>(axis)] = k;
  // Of equal elements ONNX takes those with the lowest index first: a stable sort does, too.
  Json attrs{{"stable", true}, {"dim", axis}, {"descending", op.integer("largest", 1) != 0}};
  const auto results = op.draft().emit_several("aten.sort.stable", {x}, std::move(attrs),
                                               {{x->dtype, x->shape}, {DType::kInt64, x->shape}});
  op.set(0, op.slice(results[0], axis, 0, k));
  op.set(1, op.slice(results[1], axis, 0, k));
}

namespace {

// By how much a value is another one and a number more; nothing if it is not made so.
std::optional<double> more_than(Op& op, const Value* value, const Value* other) {
  if (value->node < 0) return std::nullopt;
  const DraftNode& node = op.draft().nodes()[static_cast<std::size_t>(value->node)];
  if (node.op != "aten.add.Tensor" || node.inputs.empty()) return std::nullopt;
  if (node.inputs.size() == 1 && node.inputs[0] == other) {
    return json_double(find_member(node.attrs, "other"));
  }
  return std::nullopt;
}

// A sequence whose start is data, and whose length is known.
Value* moving_range(Op& op, Value* start, double step) {
  const auto width = more_than(op, op.in(1), start);
  if (!width || step == 0) return nullptr;
  const double count = std::max(std::ceil(*width / step), 0.0);
  if (count > static_cast<double>(Importer::kMostKnown)) Op::refuse("too many numbers");
  const auto length = static_cast<std::int64_t>(count);
  Value* places = ascending(op, length, {length});
  if (step != 1) places = op.scalar("mul", places, step);
  return op.binary("add", op.cast(places, start->dtype), op.view(start, {}));
}

}  // namespace

void import_range(Op& op) {
  if (op.importer().known(op.in(0)) == nullptr && op.in(0)->dtype == DType::kInt64) {
    if (Value* places = moving_range(op, op.in(0), op.number(2, "the step"))) {
      return op.set(0, places);
    }
  }
  const double start = op.number(0, "the start");
  const double limit = op.number(1, "the limit");
  const double step = op.number(2, "the step");
  const DType dtype = op.in(0)->dtype;
  const double count = step == 0 ? -1 : std::max(std::ceil((limit - start) / step), 0.0);
  if (!(count >= 0 && count <= static_cast<double>(Importer::kMostKnown)))
    Op::refuse("too many numbers");
  if (op.is_kept()) {
    // A whole number may become a size; the dtype says what the results are.
    const auto number = [dtype](double value) {
      const bool is_whole = value == std::floor(value) && std::abs(value) < 0x1p31;
      return is_whole ? Json(static_cast<std::int64_t>(value)) : json_number_of(value, dtype);
    };
    return op.set(0, op.emit("aten.arange.start_step", {},
                             Json{{"start", number(start)},
                                  {"end", number(limit)},
                                  {"step", number(step)},
                                  {"dtype", "torch." + std::string(dtype_name(dtype))}},
                             dtype, {static_cast<std::int64_t>(count)}));
  }
  Tensor tensor(dtype, {static_cast<std::int64_t>(count)});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    if (dtype == DType::kFloat32) {
      tensor.as_mutable<float>()[i] =
          static_cast<float>(start) + static_cast<float>(i) * static_cast<float>(step);
    } else if (dtype == DType::kFloat64) {
      tensor.as_mutable<double>()[i] = start + static_cast<double>(i) * step;
    } else {
      Op::refuse("numbers of type " + std::string(dtype_name(dtype)));
    }
  }
  op.set(0, op.constant_value(std::move(tensor)));
}

void import_eye_like(Op& op) {
  Value* x = op.in(0);
  const std::int64_t shift = op.integer("k", 0);
  const auto dtype = op.attribute("dtype") == nullptr ? std::optional(x->dtype)
                                                      : onnx_dtype(op.integer("dtype", 1));
  if (x->rank() != 2 || !dtype) Op::refuse("its operand does not fit");
  if (op.importer().settings().notes_computed) {
    Value* rows = ascending(op, x->shape[0], {x->shape[0], 1});
    Value* columns = ascending(op, x->shape[1], {1, x->shape[1]});
    if (shift != 0) rows = op.scalar("add", rows, static_cast<double>(shift));
    return op.set(0, op.cast(op.compare("eq", columns, rows), *dtype));
  }
  if (x->count() > Importer::kMostKnown) Op::refuse("its operand is too large");
  Ints values;
  for (std::int64_t r = 0; r < x->shape[0]; ++r) {
    for (std::int64_t c = 0; c < x->shape[1]; ++c) values.push_back(c - r == shift ? 1 : 0);
  }
  op.set(0, op.cast(op.integer_constant(values, x->shape), *dtype));
}

void import_reverse_sequence(Op& op) {
  Value* x = op.in(0);
  const std::int64_t batch_axis = Op::axis_of(op.integer("batch_axis", 1), x->rank());
  const std::int64_t time_axis = Op::axis_of(op.integer("time_axis", 0), x->rank());
  const Ints lengths = op.integers(1, "the lengths");
  if (x->rank() < 2 || batch_axis + time_axis != 1) Op::refuse("its axes are not the first two");
  const std::int64_t batch = x->shape[static_cast<std::size_t>(batch_axis)];
  const std::int64_t time = x->shape[static_cast<std::size_t>(time_axis)];
  if (static_cast<std::int64_t>(lengths.size()) != batch || batch * time > Importer::kMostKnown) {
    Op::refuse("the lengths do not fit");
  }
  Ints index;
  for (std::int64_t i = 0; i < x->shape[0] * x->shape[1]; ++i) {
    const std::int64_t first = i / x->shape[1];
    const std::int64_t second = i % x->shape[1];
    const std::int64_t b = batch_axis == 0 ? first : second;
    const std::int64_t t = batch_axis == 0 ? second : first;
    const std::int64_t length = lengths[static_cast<std::size_t>(b)];
    index.push_back(t < length ? length - 1 - t : t);
  }
  Shape index_shape(x->shape.size(), 1);
  index_shape[0] = x->shape[0];
  index_shape[1] = x->shape[1];
  Value* places = op.expand(op.integer_constant(index, index_shape), x->shape);
  op.set(0, op.emit_like("aten.gather.default", {x, places}, Json{{"dim", time_axis}}));
}

}  // namespace npu::onnx
