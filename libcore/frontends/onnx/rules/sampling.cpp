// SPDX-License-Identifier: Apache-2.0
// Sampling at computed places: grids, regions of interest, deformed convolutions; and what puts
// columns and pooled elements back. What ATen lacks is written with gathers at four corners.
// O(samples) each.
#include <algorithm>
#include <array>
#include <cmath>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

Value* compare_scalar(Op& op, const char* name, Value* x, double bound) {
  return op.emit("aten." + std::string(name) + ".Scalar", {x}, Json{{"other", bound}}, DType::kBool,
                 x->shape);
}

Value* clamped_between(Op& op, Value* x, double low, double high) {
  return op.emit_like("aten.clamp.default", {x}, Json{{"min", low}, {"max", high}});
}

/// One of the two elements of an axis that a place lies between.
struct Corner {
  Value* index = nullptr;  ///< int64, inside of the axis
  Value* weight = nullptr;
};

// Outside of the axis there are zeros.
std::array<Corner, 2> corners_with_zeros(Op& op, Value* place, std::int64_t extent) {
  Value* low = op.emit_like("aten.floor.default", {place});
  Value* high_weight = op.binary("sub", place, low);
  Value* low_weight = op.emit_like("aten.rsub.Scalar", {high_weight}, Json{{"other", 1}});
  const auto last = static_cast<double>(extent - 1);
  const auto corner = [&](Value* at, Value* weight) {
    Value* inside = op.emit("aten.logical_and.default",
                            {compare_scalar(op, "ge", at, 0), compare_scalar(op, "le", at, last)},
                            Json::object(), DType::kBool, at->shape);
    Value* zero = op.constant_value(Tensor(weight->dtype, {}));
    weight = op.emit("aten.where.self", {inside, weight, zero}, Json::object(), weight->dtype,
                     weight->shape);
    return Corner{op.cast(clamped_between(op, at, 0, last), DType::kInt64), weight};
  };
  return {corner(low, low_weight), corner(op.scalar("add", low, 1), high_weight)};
}

// Up to one element outside of the axis the border counts, and nothing further out.
std::array<Corner, 2> corners_with_border(Op& op, Value* place, std::int64_t extent) {
  Value* inside = op.emit("aten.logical_and.default",
                          {compare_scalar(op, "ge", place, -1),
                           compare_scalar(op, "le", place, static_cast<double>(extent))},
                          Json::object(), DType::kBool, place->shape);
  Value* counts = op.cast(inside, place->dtype);
  const auto last = static_cast<double>(extent - 1);
  place = clamped_between(op, place, 0, last);
  Value* low = op.emit_like("aten.floor.default", {place});
  Value* high_weight = op.binary("sub", place, low);
  Value* low_weight = op.emit_like("aten.rsub.Scalar", {high_weight}, Json{{"other", 1}});
  Value* high = clamped_between(op, op.scalar("add", low, 1), 0, last);
  return {Corner{op.cast(low, DType::kInt64), op.binary("mul", low_weight, counts)},
          Corner{op.cast(high, DType::kInt64), op.binary("mul", high_weight, counts)}};
}

// The elements of `x` at `indices` of its first axes, which broadcast, times a weight with one more
// axis: the channels are the last.
Value* weighed_elements(Op& op, Value* x, const std::vector<Value*>& indices, Value* weight) {
  Shape places;
  for (const Value* index : indices) places = broadcast(places, index->shape);
  Shape shape = places;
  shape.push_back(x->shape.back());
  std::vector<Value*> operands{x};
  operands.insert(operands.end(), indices.begin(), indices.end());
  const Json attrs{{"_tensor_list_sizes", Ints{static_cast<std::int64_t>(indices.size())}}};
  Value* picked = op.emit("aten.index.Tensor", operands, attrs, x->dtype, shape);
  Shape weight_shape = weight->shape;
  weight_shape.push_back(1);
  return op.binary("mul", picked, op.view(weight, weight_shape));
}

Ints counted_up(std::int64_t count) {
  if (count > Importer::kMostKnown) Op::refuse("an axis that is too long");
  Ints values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i);
  return values;
}

Value* real_constant(Op& op, const std::vector<double>& values, const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.as_mutable<float>()[i] = static_cast<float>(values[i]);
  }
  return op.constant_value(std::move(tensor));
}

// ---- RoiAlign ----

/// What RoiAlign samples along one axis: `size` bins with `samples` places each.
struct Bins {
  std::int64_t size = 1;
  std::int64_t samples = 1;
};

// The places of all samples, [regions, size * samples]; `begin` and `end` are [regions, 1].
Value* sample_places(Op& op, Value* begin, Value* end, const Bins& bins, bool is_half_pixel) {
  Value* extent = op.binary("sub", end, begin);
  if (!is_half_pixel) {
    extent = op.emit_like("aten.clamp.default", {extent}, Json{{"min", 1}});
  }
  std::vector<double> parts;
  for (std::int64_t i = 0; i < bins.size * bins.samples; ++i) {
    const std::int64_t bin = i / bins.samples;
    const double inside =
        (static_cast<double>(i % bins.samples) + 0.5) / static_cast<double>(bins.samples);
    parts.push_back((static_cast<double>(bin) + inside) / static_cast<double>(bins.size));
  }
  Value* factors = real_constant(op, parts, {1, bins.size * bins.samples});
  return op.binary("add", begin, op.binary("mul", extent, factors));
}

// With a sampling_ratio of 0 the number of samples depends on the regions: all need the same.
std::int64_t samples_of(Op& op, std::int64_t axis, std::int64_t size, double scale,
                        bool is_half_pixel) {
  const std::int64_t stated = op.integer("sampling_ratio", 0);
  if (stated < 0 || stated > 64) Op::refuse("a sampling_ratio of " + std::to_string(stated));
  if (stated > 0) return stated;
  const Tensor& rois = op.constant(1, "the regions, whose size sets the number of samples,");
  std::int64_t samples = 0;
  for (std::int64_t r = 0; r < rois.shape()[0]; ++r) {
    double extent =
        (rois.value_as_double(r * 4 + axis + 2) - rois.value_as_double(r * 4 + axis)) * scale;
    if (!is_half_pixel) extent = std::max(extent, 1.0);
    const double own = std::max(std::ceil(extent / static_cast<double>(size)), 1.0);
    if (!(own <= 64)) Op::refuse("a region with too many samples");
    if (samples != 0 && samples != static_cast<std::int64_t>(own)) {
      Op::refuse("sampling_ratio is 0, and the regions need different numbers of samples");
    }
    samples = static_cast<std::int64_t>(own);
  }
  return std::max<std::int64_t>(samples, 1);
}

// ---- DeformConv ----

struct Deformed {
  Window window;
  std::int64_t groups = 1;
  std::int64_t offset_groups = 1;
  std::int64_t taps = 1;  ///< elements of a kernel
  std::int64_t height = 1;
  std::int64_t width = 1;
};

Deformed read_deformed(Op& op, const Value* x, const Value* w, const Value* offset) {
  if (x->rank() != 4 || w->rank() != 4 || offset->rank() != 4) {
    Op::refuse("operands of rank " + std::to_string(x->rank()) + "; 2-D convolutions are imported");
  }
  Deformed form;
  const Ints kernel{w->shape[2], w->shape[3]};
  check_kernel_shape(op, kernel);
  form.window = read_window(op, x->shape, kernel);
  form.groups = op.integer("group", 1);
  form.offset_groups = op.integer("offset_group", 1);
  form.taps = product(w->shape, 2, 4);
  form.height = offset->shape[2];
  form.width = offset->shape[3];
  const bool fits = form.groups > 0 && form.offset_groups > 0 && x->shape[1] % form.groups == 0 &&
                    x->shape[1] % form.offset_groups == 0 && w->shape[0] % form.groups == 0 &&
                    w->shape[1] == x->shape[1] / form.groups && offset->shape[0] == x->shape[0] &&
                    form.taps <= 1024 && offset->shape[1] == 2 * form.offset_groups * form.taps;
  if (!fits) Op::refuse("operand, weights and offsets do not fit together");
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t reach = (form.window.kernel[i] - 1) * form.window.dilations[i] + 1;
    const std::int64_t room = x->shape[i + 2] + form.window.begin[i] + form.window.end[i] - reach;
    if (room < 0 || room / form.window.strides[i] + 1 != offset->shape[i + 2]) {
      Op::refuse("the offsets do not fit the windows");
    }
  }
  return form;
}

// Where the taps of an axis lie without offsets, in a shape that broadcasts with [n, og, taps, h,
// w].
Value* tap_places(Op& op, const Deformed& form, std::size_t axis) {
  const std::int64_t size = axis == 0 ? form.height : form.width;
  std::vector<double> places;
  for (std::int64_t tap = 0; tap < form.taps; ++tap) {
    const std::int64_t at = axis == 0 ? tap / form.window.kernel[1] : tap % form.window.kernel[1];
    for (std::int64_t i = 0; i < size; ++i) {
      places.push_back(static_cast<double>(i * form.window.strides[axis] - form.window.begin[axis] +
                                           at * form.window.dilations[axis]));
    }
  }
  const Shape shape = axis == 0 ? Shape{1, 1, form.taps, size, 1} : Shape{1, 1, form.taps, 1, size};
  return real_constant(op, places, shape);
}

}  // namespace

void import_grid_sample(Op& op) {
  Value* x = op.in(0);
  Value* grid = op.in(1);
  const std::string mode = op.text("mode", op.opset() < 20 ? "bilinear" : "linear");
  const std::string padding = op.text("padding_mode", "zeros");
  const int mode_number = mode == "bilinear" || mode == "linear" ? 0
                          : mode == "nearest"                    ? 1
                          : mode == "bicubic" || mode == "cubic" ? 2
                                                                 : -1;
  const int padding_number = padding == "zeros"        ? 0
                             : padding == "border"     ? 1
                             : padding == "reflection" ? 2
                                                       : -1;
  if (mode_number < 0 || padding_number < 0)
    Op::refuse("mode '" + mode + "' or padding_mode '" + padding + "'");
  const bool fits = (x->rank() == 4 || x->rank() == 5) && grid->rank() == x->rank() &&
                    grid->shape.back() == x->rank() - 2 && grid->shape[0] == x->shape[0];
  if (!fits || (x->rank() == 5 && mode_number == 2)) Op::refuse("operand and grid do not fit");
  if (product(x->shape, 2, x->shape.size()) == 0) {
    Op::refuse("shape " + shape_text(x->shape) + " has no element to sample");
  }
  Shape shape{x->shape[0], x->shape[1]};
  shape.insert(shape.end(), grid->shape.begin() + 1, grid->shape.end() - 1);
  op.set(0, op.emit("aten.grid_sampler.default", {x, grid},
                    Json{{"interpolation_mode", mode_number},
                         {"padding_mode", padding_number},
                         {"align_corners", op.integer("align_corners", 0) != 0}},
                    x->dtype, shape));
}

void import_affine_grid(Op& op) {
  Value* theta = op.in(0);
  const Ints size = op.integers(1, "the size");
  const auto spatial = static_cast<std::int64_t>(size.size()) - 2;
  if ((spatial != 2 && spatial != 3) || theta->shape != Shape{size[0], spatial, spatial + 1}) {
    Op::refuse("size and transform do not fit together");
  }
  Shape shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(spatial);
  product(shape, 0, shape.size());
  op.set(0, op.emit("aten.affine_grid_generator.default", {theta},
                    Json{{"size", size}, {"align_corners", op.integer("align_corners", 0) != 0}},
                    theta->dtype, shape));
}

void import_roi_align(Op& op) {
  Value* x = op.in(0);
  Value* rois = op.in(1);
  Value* batch = op.in(2);
  const Bins rows{op.integer("output_height", 1), 1};
  const Bins columns{op.integer("output_width", 1), 1};
  if (x->rank() != 4 || rois->rank() != 2 || rois->shape[1] != 4 || batch->rank() != 1 ||
      batch->shape[0] != rois->shape[0] || x->dtype != DType::kFloat32 || rows.size < 1 ||
      columns.size < 1 || rows.size > 1024 || columns.size > 1024) {
    Op::refuse("operand and regions do not fit together");
  }
  const std::string mode = op.text("mode", "avg");
  if (mode != "avg" && mode != "max") Op::refuse("mode '" + mode + "'");
  const std::string coordinates = op.text("coordinate_transformation_mode",
                                          op.opset() < 16 ? "output_half_pixel" : "half_pixel");
  const bool is_half = coordinates == "half_pixel";
  if (!is_half && coordinates != "output_half_pixel") {
    Op::refuse("coordinate_transformation_mode '" + coordinates + "'");
  }
  const double scale = op.real("spatial_scale", 1);
  const std::int64_t count = rois->shape[0];
  const std::array<Bins, 2> bins{
      Bins{columns.size, samples_of(op, 0, columns.size, scale, is_half)},
      Bins{rows.size, samples_of(op, 1, rows.size, scale, is_half)}};
  Value* scaled = op.scalar("mul", rois, scale);
  if (is_half) scaled = op.scalar("sub", scaled, 0.5);
  const auto corners = [&](std::size_t axis, std::int64_t extent) {
    const auto at = static_cast<std::int64_t>(axis);
    Value* places = sample_places(op, op.slice(scaled, 1, at, at + 1),
                                  op.slice(scaled, 1, at + 2, at + 3), bins[axis], is_half);
    return corners_with_border(op, places, extent);
  };
  const auto across = corners(0, x->shape[3]);
  const auto down = corners(1, x->shape[2]);
  const std::int64_t wide = bins[0].size * bins[0].samples;
  const std::int64_t high = bins[1].size * bins[1].samples;
  Value* last = op.permute(x, {0, 2, 3, 1});
  Value* which = op.view(op.cast(batch, DType::kInt64), {count, 1, 1});
  Value* sum = nullptr;
  for (const Corner& y : down) {
    for (const Corner& z : across) {
      Value* weight = op.binary("mul", op.view(y.weight, {count, high, 1}),
                                op.view(z.weight, {count, 1, wide}));
      Value* part = weighed_elements(
          op, last, {which, op.view(y.index, {count, high, 1}), op.view(z.index, {count, 1, wide})},
          weight);
      // The largest is that of the four weighed corners, as ONNX has it.
      if (sum == nullptr) {
        sum = part;
      } else if (mode == "max") {
        sum = op.emit_like("aten.maximum.default", {sum, part});
      } else {
        sum = op.binary("add", sum, part);
      }
    }
  }
  Value* split = op.view(
      sum, {count, bins[1].size, bins[1].samples, bins[0].size, bins[0].samples, x->shape[1]});
  Value* pooled = op.reduce(mode == "max" ? "amax.default" : "mean.dim", split, {2, 4}, false);
  op.set(0, op.permute(pooled, {0, 3, 1, 2}));
}

void import_deform_conv(Op& op) {
  Value* x = op.in(0);
  Value* w = op.in(1);
  Value* offset = op.in(2);
  Value* bias = op.maybe_in(3);
  Value* mask = op.maybe_in(4);
  const Deformed form = read_deformed(op, x, w, offset);
  if (x->dtype != DType::kFloat32) Op::refuse("operands of another type than float32");
  const std::int64_t n = x->shape[0];
  const std::int64_t groups = form.offset_groups;
  const std::int64_t channels = x->shape[1] / groups;
  const Shape places{n, groups, form.taps, form.height, form.width};
  if (mask != nullptr && mask->count() != product(places, 0, 5))
    Op::refuse("the mask does not fit");
  if (bias != nullptr && bias->shape != Shape{w->shape[0]}) Op::refuse("the bias does not fit");
  // Offsets alternate between the two axes.
  Value* pairs = op.view(offset, {n, groups, form.taps, 2, form.height, form.width});
  std::array<std::array<Corner, 2>, 2> corners;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto at = static_cast<std::int64_t>(axis);
    Value* own = op.view(op.slice(pairs, 3, at, at + 1), places);
    corners[axis] = corners_with_zeros(op, op.binary("add", own, tap_places(op, form, axis)),
                                       x->shape[axis + 2]);
  }
  Value* last =
      op.permute(op.view(x, {n, groups, channels, x->shape[2], x->shape[3]}), {0, 1, 3, 4, 2});
  Value* batch = op.integer_constant(counted_up(n), {n, 1, 1, 1, 1});
  Value* group = op.integer_constant(counted_up(groups), {1, groups, 1, 1, 1});
  Value* sum = nullptr;
  for (const Corner& y : corners[0]) {
    for (const Corner& z : corners[1]) {
      Value* weight = op.binary("mul", y.weight, z.weight);
      if (mask != nullptr) weight = op.binary("mul", weight, op.view(mask, places));
      Value* part = weighed_elements(op, last, {batch, group, y.index, z.index}, weight);
      sum = sum == nullptr ? part : op.binary("add", sum, part);
    }
  }
  // [n, og, taps, h, w, c] to the columns of a convolution, [n, groups, c * taps, h * w].
  Value* ordered_columns = op.permute(sum, {0, 1, 5, 2, 3, 4});
  const std::int64_t rows = w->shape[1] * form.taps;
  const std::int64_t filters = w->shape[0] / form.groups;
  const std::int64_t area = form.height * form.width;
  Value* columns = op.view(ordered_columns, {n, form.groups, rows, area});
  Value* weights = op.view(w, {1, form.groups, filters, rows});
  Value* y = op.emit("aten.matmul.default", {weights, columns}, Json::object(), x->dtype,
                     {n, form.groups, filters, area});
  y = op.view(y, {n, w->shape[0], form.height, form.width});
  if (bias != nullptr) y = op.binary("add", y, op.view(bias, {w->shape[0], 1, 1}));
  op.set(0, y);
}

void import_col2im(Op& op) {
  Value* x = op.in(0);
  const Ints image = op.integers(1, "the shape of the image");
  const Ints block = op.integers(2, "the shape of a block");
  const std::size_t spatial = image.size();
  const std::int64_t taps = product(block, 0, block.size());
  if (x->rank() != 3 || block.size() != spatial || spatial < 1 || taps < 1 ||
      x->shape[1] % taps != 0) {
    Op::refuse("columns, image and block do not fit together");
  }
  Shape shape{x->shape[0], x->shape[1] / taps};
  shape.insert(shape.end(), image.begin(), image.end());
  product(shape, 0, shape.size());
  const Window window = read_window(op, shape, block);
  Ints counts;
  Ints padded;
  for (std::size_t i = 0; i < spatial; ++i) {
    if (window.begin[i] < 0 || window.end[i] < 0) Op::refuse("negative pads");
    padded.push_back(image[i] + window.begin[i] + window.end[i]);
    const std::int64_t reach = (block[i] - 1) * window.dilations[i] + 1;
    if (padded[i] < reach) Op::refuse("a block is larger than the image");
    counts.push_back((padded[i] - reach) / window.strides[i] + 1);
  }
  const std::int64_t area = product(padded, 0, spatial);
  const std::int64_t blocks = product(counts, 0, spatial);
  if (blocks != x->shape[2]) Op::refuse("the number of columns is not that of the blocks");
  if (taps * blocks > Importer::kMostKnown) Op::refuse("more elements than are unfolded");
  Ints index;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      std::int64_t at = 0;
      std::int64_t scale = 1;
      std::int64_t tap_rest = tap;
      std::int64_t block_rest = b;
      for (std::size_t i = spatial; i-- > 0;) {
        at += scale * (tap_rest % block[i] * window.dilations[i] +
                       block_rest % counts[i] * window.strides[i]);
        tap_rest /= block[i];
        block_rest /= counts[i];
        scale *= padded[i];
      }
      index.push_back(at);
    }
  }
  Value* columns = op.view(x, {shape[0], shape[1], taps * blocks});
  Value* zeros = op.filled({shape[0], shape[1], area}, x->dtype, 0);
  Value* sum =
      op.emit_like("aten.index_add.default",
                   {zeros, op.integer_constant(index, {taps * blocks}), columns}, Json{{"dim", 2}});
  Shape whole{shape[0], shape[1]};
  whole.insert(whole.end(), padded.begin(), padded.end());
  Value* y = op.view(sum, whole);
  for (std::size_t i = 0; i < spatial; ++i) {
    y = op.slice(y, static_cast<std::int64_t>(i) + 2, window.begin[i], window.begin[i] + image[i]);
  }
  op.set(0, y);
}

void import_center_crop_pad(Op& op) {
  Value* x = op.in(0);
  const Ints wanted = op.integers(1, "the shape");
  Ints axes;
  for (const std::int64_t axis : op.list("axes").value_or(counted_up(x->rank()))) {
    axes.push_back(Op::axis_of(axis, x->rank()));
  }
  if (axes.size() != wanted.size()) Op::refuse("the shape does not fit the axes");
  std::vector<std::pair<std::int64_t, std::int64_t>> pads(x->shape.size(), {0, 0});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t extent = x->shape[static_cast<std::size_t>(axes[i])];
    if (wanted[i] < 0) Op::refuse("a negative dimension");
    if (wanted[i] < extent) {
      const std::int64_t start = (extent - wanted[i]) / 2;
      x = op.slice(x, axes[i], start, start + wanted[i]);
    } else {
      const std::int64_t missing = wanted[i] - extent;
      pads[static_cast<std::size_t>(axes[i])] = {missing / 2, missing - missing / 2};
    }
  }
  op.set(0, op.pad(x, pads, 0));
}

void import_max_unpool(Op& op) {
  Value* x = op.in(0);
  Value* index = op.in(1);
  const Ints kernel = op.list("kernel_shape").value_or(Ints{});
  const std::size_t spatial = kernel.size();
  if (spatial < 1 || x->shape.size() != spatial + 2 || index->shape != x->shape) {
    Op::refuse("operand, indices and kernel do not fit together");
  }
  const Ints strides = op.list("strides").value_or(Ints(spatial, 1));
  const Ints pads = op.list("pads").value_or(Ints(2 * spatial, 0));
  if (strides.size() != spatial || pads.size() != 2 * spatial) Op::refuse("pads do not fit");
  Shape shape{x->shape[0], x->shape[1]};
  for (std::size_t i = 0; i < spatial; ++i) {
    std::int64_t reach = 0;
    std::int64_t extent = 0;
    if (__builtin_mul_overflow(x->shape[i + 2] - 1, strides[i], &reach) ||
        __builtin_add_overflow(reach, kernel[i], &extent) ||
        __builtin_sub_overflow(extent, pads[i], &extent) ||
        __builtin_sub_overflow(extent, pads[i + spatial], &extent)) {
      Op::refuse("too large");
    }
    if (extent < 0 || reach < 0) Op::refuse("pads do not fit");
    shape.push_back(extent);
  }
  const Ints stated = op.has_input(2) ? op.integers(2, "the shape of the result") : shape;
  if (stated.size() != shape.size()) Op::refuse("the shape of the result does not fit");
  // Indices count in the shape that the windows cover; what is stated beyond that is zeros.
  std::vector<std::pair<std::int64_t, std::int64_t>> ends;
  bool covers = true;
  for (std::size_t i = 0; i < shape.size(); ++i) covers = covers && stated[i] >= shape[i];
  if (!covers) shape = stated;
  for (std::size_t i = 0; i < shape.size(); ++i) ends.emplace_back(0, stated[i] - shape[i]);
  const std::int64_t count = product(shape, 0, shape.size());
  Value* flat =
      op.emit_like("aten.scatter.src",
                   {op.filled({count}, x->dtype, 0),
                    op.view(op.cast(index, DType::kInt64), {x->count()}), op.view(x, {x->count()})},
                   Json{{"dim", 0}});
  op.set(0, op.pad(op.view(flat, shape), ends, 0));
}

}  // namespace npu::onnx
