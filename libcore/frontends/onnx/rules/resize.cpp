// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample. Sizes are known, so along each axis any mode is a constant matrix: nearest
// picks one element for each result (index_select), linear and cubic weigh 2 or 4, or more with
// antialiasing (a product with the matrix). Where ATen has an op that is equal, that is used: it is
// the same for every size.
#include <algorithm>
#include <cmath>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

struct Mode {
  std::string kind;         // nearest, linear, cubic
  std::string coordinates;  // half_pixel, ...
  std::string rounding;     // nearest_mode
  double cubic_a = -0.75;
  bool excludes_outside = false;
  bool is_antialiased = false;
  double extrapolation = 0;
};

struct Axis {
  std::int64_t extent = 1;
  std::int64_t size = 1;
  double scale = 1;
  double roi_begin = 0;
  double roi_end = 1;
};

// Where result `i` lies in the operand.
double place_of_result(const Mode& mode, const Axis& axis, std::int64_t i) {
  const auto x = static_cast<double>(i);
  const auto extent = static_cast<double>(axis.extent);
  const double size = axis.scale * extent;
  if (mode.coordinates == "align_corners") {
    // The length that the scale states, which need not be whole.
    return size == 1 ? 0 : x * (extent - 1) / (size - 1);
  }
  if (mode.coordinates == "asymmetric") return x / axis.scale;
  if (mode.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode.coordinates == "tf_crop_and_resize") {
    const double width = axis.roi_end - axis.roi_begin;
    const double inside =
        size == 1 ? width * (extent - 1) / 2 : x * width * (extent - 1) / (size - 1);
    return inside + axis.roi_begin * (extent - 1);
  }
  if (mode.coordinates == "pytorch_half_pixel" && axis.size == 1) return 0;
  if (mode.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(axis.size) / size;
    return extent / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
  }
  return (x + 0.5) / axis.scale - 0.5;
}

std::int64_t nearest_place(const Mode& mode, double x) {
  double place = std::floor(x);
  if (mode.rounding == "round_prefer_floor") place = std::ceil(x - 0.5);
  if (mode.rounding == "round_prefer_ceil") place = std::floor(x + 0.5);
  if (mode.rounding == "ceil") place = std::ceil(x);
  return static_cast<std::int64_t>(place);
}

/// The elements [first, first + weights.size()) of an axis, of which some may lie outside.
struct Taps {
  std::int64_t first = 0;
  std::vector<double> weights;
};

double cubic_weight(double a, double distance) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// What a result at place x is made of. Antialiasing widens the filter by the inverse of the scale.
Taps taps_at(const Mode& mode, const Axis& axis, double x) {
  const bool is_linear = mode.kind == "linear";
  const double scale = mode.is_antialiased ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = is_linear ? 1 : 2;
  const auto begin = static_cast<std::int64_t>(std::floor(-reach / scale)) + 1;
  // The nearest element at or in front of x, so that the ratio is above 0 and at most 1.
  const double base = std::ceil(x) - 1;
  const double ratio = x - base;
  Taps taps{static_cast<std::int64_t>(base) + begin, {}};
  double sum = 0;
  for (std::int64_t i = begin; i < 2 - begin; ++i) {
    const double distance = scale * (static_cast<double>(i) - ratio);
    const double weight =
        is_linear ? std::max(1 - std::abs(distance), 0.0) : cubic_weight(mode.cubic_a, distance);
    const std::int64_t at = static_cast<std::int64_t>(base) + i;
    const bool counts = !mode.excludes_outside || (at >= 0 && at < axis.extent);
    taps.weights.push_back(counts ? weight : 0);
    sum += taps.weights.back();
  }
  if (mode.is_antialiased || mode.excludes_outside) {
    for (double& weight : taps.weights) weight /= sum;
  }
  return taps;
}

bool is_outside(const Mode& mode, const Axis& axis, double x) {
  return mode.coordinates == "tf_crop_and_resize" &&
         (x < 0 || x > static_cast<double>(axis.extent - 1));
}

// Results that lie outside are a number.
Value* with_outside(Op& op, Value* value, std::size_t at, const Mode& mode,
                    const std::vector<bool>& outside) {
  if (std::find(outside.begin(), outside.end(), true) == outside.end()) return value;
  Shape shape(value->shape.size() - at, 1);
  shape[0] = static_cast<std::int64_t>(outside.size());
  Tensor mask(DType::kBool, shape);
  for (std::size_t i = 0; i < outside.size(); ++i) {
    mask.as_mutable<std::uint8_t>()[i] = outside[i] ? 1 : 0;
  }
  Tensor number(DType::kFloat32, {});
  number.as_mutable<float>()[0] = static_cast<float>(mode.extrapolation);
  Value* fill = op.cast(op.constant_value(std::move(number)), value->dtype);
  return op.emit("aten.where.self", {op.constant_value(std::move(mask)), fill, value},
                 Json::object(), value->dtype, value->shape);
}

Value* picked(Op& op, Value* x, std::size_t at, const Mode& mode, const Axis& axis) {
  Ints index;
  std::vector<bool> outside;
  for (std::int64_t i = 0; i < axis.size; ++i) {
    const double place = place_of_result(mode, axis, i);
    outside.push_back(is_outside(mode, axis, place));
    const double inside = std::clamp(place, -1.0, static_cast<double>(axis.extent));
    index.push_back(std::clamp<std::int64_t>(nearest_place(mode, inside), 0, axis.extent - 1));
  }
  Shape shape = x->shape;
  shape[at] = axis.size;
  Value* value = op.emit("aten.index_select.default", {x, op.integer_constant(index, {axis.size})},
                         Json{{"dim", at}}, x->dtype, shape);
  return with_outside(op, value, at, mode, outside);
}

// The matrix of an axis, [extent, size], and whether result i lies outside.
Tensor matrix_of(const Mode& mode, const Axis& axis, std::vector<bool>& outside) {
  Tensor matrix(DType::kFloat64, {axis.extent, axis.size});
  for (std::int64_t i = 0; i < axis.size; ++i) {
    const double x = place_of_result(mode, axis, i);
    outside.push_back(is_outside(mode, axis, x));
    if (outside.back()) continue;
    const Taps taps = taps_at(mode, axis, x);
    for (std::size_t k = 0; k < taps.weights.size(); ++k) {
      const std::int64_t row =
          std::clamp<std::int64_t>(taps.first + static_cast<std::int64_t>(k), 0, axis.extent - 1);
      matrix.as_mutable<double>()[row * axis.size + i] += taps.weights[k];
    }
  }
  return matrix;
}

Value* weighed(Op& op, Value* x, std::size_t at, const Mode& mode, const Axis& axis) {
  std::vector<bool> outside;
  Tensor matrix = matrix_of(mode, axis, outside);
  if (x->dtype == DType::kFloat32) {
    Tensor narrow(DType::kFloat32, matrix.shape());
    std::transform(matrix.as<double>(), matrix.as<double>() + matrix.element_count(),
                   narrow.as_mutable<float>(),
                   [](double weight) { return static_cast<float>(weight); });
    matrix = std::move(narrow);
  }
  Ints order;
  for (std::int64_t i = 0; i < x->rank(); ++i) order.push_back(i);
  std::swap(order[at], order.back());  // its own inverse
  Value* last = op.permute(x, order);
  Shape shape = last->shape;
  shape.back() = axis.size;
  Value* value = op.emit("aten.matmul.default", {last, op.constant_value(std::move(matrix))},
                         Json::object(), x->dtype, shape);
  return with_outside(op, op.permute(value, order), at, mode, outside);
}

Mode read_mode(Op& op) {
  Mode mode;
  mode.kind = op.text("mode", "nearest");
  const bool is_old = op.node().op_type == "Upsample" || op.opset() < 11;
  mode.coordinates =
      is_old ? "asymmetric" : op.text("coordinate_transformation_mode", "half_pixel");
  mode.rounding = is_old ? "floor" : op.text("nearest_mode", "round_prefer_floor");
  if (!is_old) {
    mode.cubic_a = op.real("cubic_coeff_a", -0.75);
    mode.excludes_outside = op.integer("exclude_outside", 0) != 0;
    mode.extrapolation = op.real("extrapolation_value", 0);
    mode.is_antialiased = op.integer("antialias", 0) != 0;
  }
  if (mode.kind == "bilinear") mode.kind = "linear";
  if (mode.kind != "nearest" && mode.kind != "linear" && mode.kind != "cubic") {
    Op::refuse("mode '" + mode.kind + "'");
  }
  const auto known = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  if (std::find(known.begin(), known.end(), mode.coordinates) == known.end()) {
    Op::refuse("coordinate_transformation_mode '" + mode.coordinates + "'");
  }
  const auto roundings = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  if (std::find(roundings.begin(), roundings.end(), mode.rounding) == roundings.end()) {
    Op::refuse("nearest_mode '" + mode.rounding + "'");
  }
  return mode;
}

std::vector<double> reals_of(const Tensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    values.push_back(tensor.value_as_double(i));
  }
  return values;
}

std::vector<double> scales_of(Op& op) {
  if (op.node().op_type == "Upsample" && op.opset() < 9) {
    std::vector<double> values;
    for (const float scale : op.reals("scales")) values.push_back(from_float(scale));
    return values;
  }
  const std::size_t index = op.node().op_type == "Upsample" || op.opset() < 11 ? 1 : 2;
  return op.has_input(index) ? reals_of(op.constant(index, "the scales")) : std::vector<double>{};
}

std::vector<Axis> read_axes(Op& op, const Value* x) {
  std::vector<Axis> axes(x->shape.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].extent = axes[i].size = x->shape[i];
  }
  const bool is_resize = op.opset() >= 11 && op.node().op_type == "Resize";
  Ints chosen;
  for (const std::int64_t axis : (is_resize ? op.list("axes") : std::nullopt).value_or(Ints{})) {
    chosen.push_back(Op::axis_of(axis, x->rank()));
  }
  if (chosen.empty()) {
    for (std::int64_t i = 0; i < x->rank(); ++i) chosen.push_back(i);
  }
  const std::vector<double> scales = scales_of(op);
  const Ints sizes = is_resize && op.has_input(3) ? op.integers(3, "the sizes") : Ints{};
  if (!scales.empty() && !sizes.empty()) Op::refuse("has both scales and sizes, expected one");
  if ((scales.empty() ? sizes.size() : scales.size()) != chosen.size()) {
    Op::refuse("scales and sizes do not fit their operand");
  }
  const std::string policy = is_resize ? op.text("keep_aspect_ratio_policy", "stretch") : "stretch";
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    Op::refuse("keep_aspect_ratio_policy '" + policy + "'");
  }
  double common = policy == "not_larger" ? kInfinity : 0;
  for (std::size_t i = 0; i < sizes.size() && policy != "stretch"; ++i) {
    const double scale = static_cast<double>(sizes[i]) /
                         static_cast<double>(x->shape[static_cast<std::size_t>(chosen[i])]);
    common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  std::vector<double> roi;
  if (is_resize && op.has_input(1)) {
    roi = reals_of(op.constant(1, "the region"));
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Axis& axis = axes[static_cast<std::size_t>(chosen[i])];
    const auto extent = static_cast<double>(axis.extent);
    if (!scales.empty()) {
      axis.scale = scales[i];
      // In float32, as ONNX infers the shape.
      const double size =
          from_float(std::floor(static_cast<float>(extent) * static_cast<float>(axis.scale)));
      if (!(size >= 0 && size < 0x1p31)) Op::refuse("a scale of " + std::to_string(axis.scale));
      axis.size = static_cast<std::int64_t>(size);
    } else if (policy == "stretch") {
      axis.size = sizes[i];
      axis.scale = static_cast<double>(axis.size) / extent;
    } else {
      axis.scale = common;
      axis.size = static_cast<std::int64_t>(std::floor(extent * common + 0.5));
    }
    if (axis.size < 0 || axis.size > 1 << 20 || axis.extent < 1 || !(axis.scale > 0)) {
      if (axis.size != axis.extent) Op::refuse("a size of " + std::to_string(axis.size));
    }
    if (roi.size() == 2 * chosen.size()) {
      axis.roi_begin = roi[i];
      axis.roi_end = roi[i + chosen.size()];
    }
  }
  return axes;
}

bool is_changed(const Mode& mode, const Axis& axis) {
  return axis.size != axis.extent || axis.scale != 1 ||
         mode.coordinates == "tf_half_pixel_for_nn" ||
         (mode.coordinates == "tf_crop_and_resize" && (axis.roi_begin != 0 || axis.roi_end != 1));
}

// One to three spatial axes in a form that ATen has with the same results; null for others.
Value* with_torch(Op& op, Value* x, const Mode& mode, const std::vector<Axis>& axes) {
  if (x->rank() < 3 || x->rank() > 5 || x->dtype != DType::kFloat32 || is_changed(mode, axes[0]) ||
      is_changed(mode, axes[1])) {
    return nullptr;
  }
  bool is_whole = true;
  bool is_stated = true;
  bool is_widened = false;
  Shape shape = x->shape;
  for (std::size_t i = 2; i < axes.size(); ++i) {
    const std::int64_t factor = axes[i].size / axes[i].extent;
    is_whole = is_whole && axes[i].size % axes[i].extent == 0 &&
               axes[i].scale == static_cast<double>(factor);
    is_stated = is_stated && axes[i].size > 1 &&
                std::abs(axes[i].scale * static_cast<double>(axes[i].extent) -
                         static_cast<double>(axes[i].size)) < 1e-6;
    is_widened = is_widened || (mode.is_antialiased && axes[i].scale < 1);
    shape[i] = axes[i].size;
  }
  const Ints size(shape.begin() + 2, shape.end());
  const std::string dimensions = std::to_string(size.size()) + "d.default";
  if (mode.kind == "nearest") {
    const bool is_floor = mode.coordinates == "asymmetric" && mode.rounding == "floor";
    if (!is_floor || !is_whole) return nullptr;
    return op.emit("aten.upsample_nearest" + dimensions, {x}, Json{{"output_size", size}}, x->dtype,
                   shape);
  }
  const bool is_half = mode.coordinates == "half_pixel" || mode.coordinates == "pytorch_half_pixel";
  const bool is_corner = mode.coordinates == "align_corners";
  const bool is_cubic = mode.kind == "cubic";
  if (mode.excludes_outside || is_widened || !is_stated || (!is_half && !is_corner) ||
      (is_cubic && (size.size() != 2 || mode.cubic_a != -0.75))) {
    return nullptr;
  }
  constexpr const char* kPrefixes[] = {"", "bi", "tri"};
  const std::string name = kPrefixes[size.size() - 1] + std::string(is_cubic ? "cubic" : "linear");
  return op.emit("aten.upsample_" + name + dimensions, {x},
                 Json{{"output_size", size}, {"align_corners", is_corner}}, x->dtype, shape);
}

}  // namespace

void import_resize(Op& op) {
  Value* x = op.in(0);
  const Mode mode = read_mode(op);
  const std::vector<Axis> axes = read_axes(op, x);
  if (x->count() == 0) {
    Shape shape;
    for (const Axis& axis : axes) shape.push_back(axis.size);
    return op.set(0, op.filled(shape, x->dtype, 0));
  }
  if (Value* value = with_torch(op, x, mode, axes)) return op.set(0, value);
  const DType dtype = x->dtype;
  if (mode.kind != "nearest" && dtype != DType::kFloat64) x = op.cast(x, DType::kFloat32);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!is_changed(mode, axes[i])) continue;
    if (mode.kind == "nearest") {
      x = picked(op, x, i, mode, axes[i]);
    } else {
      if (axes[i].extent * axes[i].size > 1 << 20) Op::refuse("an axis that is too long");
      x = weighed(op, x, i, mode, axes[i]);
    }
  }
  op.set(0, op.cast(x, dtype));
}

}  // namespace npu::onnx
