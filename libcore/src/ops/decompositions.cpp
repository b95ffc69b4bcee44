// SPDX-License-Identifier: Apache-2.0
// Ops written with others: what a device without a kernel for an op runs in its place.
//
// Each is a function that writes nodes with a PartWriter, and a row of kRows. Shapes and dtypes are
// those of PyTorch, as are the order of roundings and what becomes of NaN: values of 16 bits are
// computed as float32 and rounded once where ATen's kernel does that. A node whose arguments ATen
// refuses, or that needs data to know its shape, has no decomposition; it stays what it is, and the
// device that then runs it tells what is wrong. Index tensors are made of sequences, which follow
// from nothing and are computed once. O(nodes written), a few for each dimension.
#include "ops/decompositions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "npu/support/error.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/part_writer.hpp"
#include "ops/row_decompositions.hpp"

namespace npu {

namespace decompositions {
namespace {

// ---- Arithmetic ----

/// self + value * tensor1 * tensor2, from left to right.
Value add_product(PartWriter& w, const char* product) {
  const DType type = wide(w.dtype());
  const Json& factor = w.json("value");
  const bool is_division = std::string_view(product).find("div") != std::string_view::npos;
  need(type != DType::kBool && (is_floating_point(type) || !is_division));
  need(is_floating_point(type) || factor.is_number_integer());
  Value first = w.cast(w.operand("tensor1"), type);
  Value second = w.cast(w.operand("tensor2"), type);
  const Value self = w.cast(w.operand("self"), type);
  if (w.node().number("value") != 1) first = w.map("aten.mul.Scalar", first, {{"other", factor}});
  // What is as large as the result stands in front, where kernels are fast.
  const auto count = [](const Value& value) { return checked_element_count(value.shape); };
  if (!is_division && count(first) < count(second)) std::swap(first, second);
  return w.cast(w.join("aten.add.Tensor", w.join(product, first, second), self), w.dtype());
}
Value addcmul(PartWriter& w) { return add_product(w, "aten.mul.Tensor"); }
Value addcdiv(PartWriter& w) { return add_product(w, "aten.div.Tensor"); }

/// max and min of two tensors.
Value extremum(PartWriter& w) {
  const bool is_most = functional_name(w.node().node().op_type) == "max";
  return w.join(is_most ? "aten.maximum.default" : "aten.minimum.default",
                w.cast(w.operand("self"), w.dtype()), w.cast(w.operand("other"), w.dtype()));
}

Value diff(PartWriter& w) {
  constexpr std::int64_t kMost = 8;  // nodes of each kind
  const std::int64_t times = w.integer("n");
  Value value = w.operand("self");
  need(times >= 0 && times <= kMost && rank_of(value) > 0);
  const std::int64_t dim = w.dimension("dim", value);
  if (times == 0) return value;
  Values parts;
  for (const char* each : {"prepend", "self", "append"}) {
    if (!w.is_none(each)) parts.push_back(w.cast(w.operand(each), w.dtype()));
  }
  value = w.cat(parts, dim);
  for (std::int64_t i = 0; i < times; ++i) {
    const std::int64_t length = extent(value, dim);
    need(length > 1);
    const Value next = w.slice(value, dim, 1, length);
    const Value last = w.slice(value, dim, 0, length - 1);
    value = w.join(w.dtype() == DType::kBool ? "aten.logical_xor.default" : "aten.sub.Tensor", next,
                   last);
  }
  return value;
}

/// v * (g / norm of v over all dimensions but one).
Value weight_norm(PartWriter& w) {
  const Value v = w.operand("v");
  std::vector<std::int64_t> dims;
  const std::int64_t kept = w.integer("dim");
  for (std::int64_t d = 0; d < rank_of(v); ++d) {
    if (d != kept) dims.push_back(d);
  }
  need(kept >= -1 && kept < rank_of(v) && !dims.empty());
  const Value norm = w.reduce("aten.linalg_vector_norm.default", v, dims, kept != -1, {{"ord", 2}});
  return w.join("aten.mul.Tensor", v, w.join("aten.div.Tensor", w.operand("g"), norm));
}

// ---- Reductions ----

/// Dimensions of a list argument; all for none and for an empty list.
std::vector<std::int64_t> dimensions_of(const PartWriter& w, const Value& value) {
  std::vector<std::int64_t> dims;
  const BoundArgument* argument = w.node().find("dim");
  if (argument != nullptr && !w.is_none("dim")) {
    for (const std::int64_t dim : w.node().integers("dim")) {
      dims.push_back(w.dimension(dim, rank_of(value)));
    }
  }
  for (std::int64_t d = 0; dims.empty() && d < rank_of(value); ++d) dims.push_back(d);
  return dims;
}

/// A norm of any order, of operands that are converted first.
Value vector_norm(PartWriter& w) {
  const Value self = w.operand("self");
  const double order = w.node().number("ord");
  need(is_floating_point(w.dtype()) && is_floating_point(self.dtype) && rank_of(self) > 0 &&
       !std::isnan(order));
  const std::vector<std::int64_t> dims = dimensions_of(w, self);
  const bool keep = w.node().boolean("keepdim");
  const Value a = w.cast(w.cast(self, w.dtype()), wide(w.dtype()));
  const auto finish = [&](const Value& norm) { return w.cast(norm, w.dtype()); };
  if (order == 1 || order == 2) {
    return finish(w.reduce("aten.linalg_vector_norm.default", a, dims, keep, {{"ord", order}}));
  }
  if (order == 0) {
    const Value is_other = w.test("aten.ne.Scalar", a, 0);
    return finish(w.reduce("aten.sum.dim_IntList", w.cast(is_other, a.dtype), dims, keep));
  }
  const Value size = w.map("aten.abs.default", a);
  if (std::isinf(order)) {
    return finish(
        w.reduce(order > 0 ? "aten.amax.default" : "aten.amin.default", size, dims, keep));
  }
  const Value powers = w.map("aten.pow.Tensor_Scalar", size, {{"exponent", order}});
  const Value sum = w.reduce("aten.sum.dim_IntList", powers, dims, keep);
  return finish(w.map("aten.pow.Tensor_Scalar", sum, {{"exponent", 1 / order}}));
}

/// A sum, mean, product or running sum in a dtype: of operands that are converted first. Sums of
/// integers are those of int64, modulo their range.
Value in_dtype(PartWriter& w) {
  const DType dtype = w.dtype();
  const Value self = w.operand("self");
  const bool is_float = is_floating_point(dtype);
  const DType type = is_float ? dtype : DType::kInt64;
  need(dtype != DType::kBool && (self.dtype != dtype || type != dtype));
  const Value converted = w.cast(self, dtype);
  Json attrs = w.node().node().attrs();
  attrs.erase("dtype");
  const Value result = w.result();
  return w.cast(w.add(w.node().node().op_type, {converted}, std::move(attrs), result.shape, type),
                dtype);
}

/// Counts of equal ranges; elements outside and NaN are in none.
Value histc(PartWriter& w) {
  const Value self = w.operand("self");
  const std::int64_t bins = w.integer("bins");
  const auto least = static_cast<float>(w.node().number("min"));
  const auto most = static_cast<float>(w.node().number("max"));
  need(self.dtype == DType::kFloat32 && bins > 0 && std::isfinite(least) && std::isfinite(most) &&
       least < most);
  const std::int64_t count = checked_element_count(self.shape).value_or(0);
  const Value a = w.reshape(self, {count});
  const Value is_inside = w.join("aten.logical_and.default", w.test("aten.ge.Scalar", a, least),
                                 w.test("aten.le.Scalar", a, most));
  // In this order, as ATen does: the quotient alone decides about elements at an edge. By tensors,
  // since devices may multiply with the inverse of a number.
  const auto number = [&](float value) {
    return w.add("aten.full.default", {},
                 {{"size", {1}}, {"fill_value", value}, {"dtype", torch_name(DType::kFloat32)}},
                 {1}, DType::kFloat32);
  };
  Value place = w.join("aten.sub.Tensor", a, number(least));
  place = w.join("aten.mul.Tensor", place, number(static_cast<float>(bins)));
  place = w.join("aten.div.Tensor", place, number(most - least));
  place = w.add("aten.where.ScalarOther", {is_inside, place}, {{"other", 0.0}}, place.shape,
                place.dtype);
  place = w.map("aten.clamp_max.default", w.cast(place, DType::kInt64), {{"max", bins - 1}});
  return w.add("aten.scatter_add.default",
               {w.zeros({bins}, self.dtype), place, w.cast(is_inside, self.dtype)}, {{"dim", 0}},
               {bins}, self.dtype);
}

// ---- Copies and conversions ----

/// Only the dtype counts: devices, strides and layouts are no part of a value.
Value convert(PartWriter& w) { return w.cast(w.operand("self"), w.dtype()); }

/// What memory holds is not defined; zeros are as good as anything else.
Value empty(PartWriter& w) { return w.zeros(w.result().shape, w.dtype()); }

/// Without empty operands, which only count for the dtype.
Value cat(PartWriter& w) {
  Values values;
  bool changes = false;
  for (const TensorId id : w.node().tensors("tensors")) {
    const Value value = w.value(id);
    const bool is_empty = std::find(value.shape.begin(), value.shape.end(), 0) != value.shape.end();
    changes = changes || is_empty || value.dtype != w.dtype();
    if (!is_empty) values.push_back(w.cast(value, w.dtype()));
  }
  need(changes && !values.empty());
  return w.cat(values, w.dimension("dim", values.front()));
}

// ---- Windows ----

/// [.., windows, .., size]: a view where windows lie side by side.
Value unfold(PartWriter& w) {
  Value self = w.operand("self");
  if (self.shape.empty()) self = w.reshape(self, {1});
  const std::int64_t dim = w.dimension("dimension", self);
  const std::int64_t size = w.integer("size");
  const std::int64_t step = w.integer("step");
  need(size > 0 && step > 0 && size <= extent(self, dim));
  const std::int64_t count = (extent(self, dim) - size) / step + 1;
  const Value elements =
      size == step
          ? w.slice(self, dim, 0, count * size)
          : w.index_select(self, dim, w.reshape(w.windows(count, step, size, 1), {count * size}));
  Shape shape = elements.shape;
  shape[index_of(dim)] = size;
  shape.insert(shape.begin() + dim, count);
  std::vector<std::int64_t> order;
  for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
    if (d != dim + 1) order.push_back(d);
  }
  order.push_back(dim + 1);
  return w.permute(w.reshape(elements, shape), order);
}

/// Windows of images: of each of two dimensions how many there are, and where their elements lie.
struct Windows {
  std::array<std::int64_t, 2> kernel, dilation, padding, stride, count, padded;

  Windows(const PartWriter& w, const std::array<std::int64_t, 2>& image) {
    const auto pair = [&](std::string_view argument, std::int64_t least) {
      const std::vector<std::int64_t> values = w.node().integers(argument);
      need(values.size() == 2 && values[0] >= least && values[1] >= least);
      return std::array{values[0], values[1]};
    };
    kernel = pair("kernel_size", 1);
    dilation = pair("dilation", 1);
    padding = pair("padding", 0);
    stride = pair("stride", 1);
    for (std::size_t i = 0; i < 2; ++i) {
      padded[i] = image[i] + 2 * padding[i];
      const std::int64_t span = dilation[i] * (kernel[i] - 1) + 1;
      need(image[i] > 0 && padded[i] >= span);
      count[i] = (padded[i] - span) / stride[i] + 1;
    }
  }
  std::int64_t taps() const { return kernel[0] * kernel[1]; }
  std::int64_t all() const { return count[0] * count[1]; }
  /// [kernel, 1, count, 1] and [kernel, 1, count], which broadcast to the space of all elements.
  Values places(PartWriter& w) const {
    Values result;
    for (std::size_t i = 0; i < 2; ++i) {
      Shape shape{kernel[i], 1, count[i]};
      if (i == 0) shape.push_back(1);
      result.push_back(w.reshape(w.windows(kernel[i], dilation[i], count[i], stride[i]), shape));
    }
    return result;
  }
  Shape space(std::int64_t images, std::int64_t channels) const {
    return {images, channels, kernel[0], kernel[1], count[0], count[1]};
  }
};

/// Of the last two of four dimensions.
Json two_indices() {
  return {{"_tensor_list_sizes", {2}}, {"_tensor_list_none_masks", {{true, true, false, false}}}};
}

Value im2col(PartWriter& w) {
  const Value self = w.operand("self");
  const std::int64_t rank = rank_of(self);
  need(rank == 3 || rank == 4);
  const std::int64_t images = rank == 4 ? extent(self, 0) : 1;
  const std::int64_t channels = extent(self, rank - 3);
  const std::int64_t height = extent(self, rank - 2);
  const std::int64_t width = extent(self, rank - 1);
  const Windows windows(w, {height, width});
  Value image = w.reshape(self, {images, channels, height, width});
  if (windows.padding != std::array<std::int64_t, 2>{0, 0}) {
    const auto& [rows, columns] = windows.padding;
    image = w.add("aten.constant_pad_nd.default", {image},
                  {{"pad", {columns, columns, rows, rows}}, {"value", 0}},
                  {images, channels, windows.padded[0], windows.padded[1]}, image.dtype);
  }
  const Values places = windows.places(w);
  const Value elements = w.add("aten.index.Tensor", {image, places[0], places[1]}, two_indices(),
                               windows.space(images, channels), image.dtype);
  return w.reshape(elements, w.result().shape);
}

/// The sum of the windows that lie over each other, from the first tap to the last.
Value col2im(PartWriter& w) {
  const Value self = w.operand("self");
  const std::vector<std::int64_t> size = w.node().integers("output_size");
  need((rank_of(self) == 2 || rank_of(self) == 3) && size.size() == 2);
  const std::int64_t images = rank_of(self) == 3 ? extent(self, 0) : 1;
  const Windows windows(w, {size[0], size[1]});
  const std::int64_t rows = extent(self, rank_of(self) - 2);
  need(rows % windows.taps() == 0 && extent(self, rank_of(self) - 1) == windows.all());
  const std::int64_t channels = rows / windows.taps();
  const Value elements = w.reshape(self, windows.space(images, channels));
  const Value zeros = w.zeros({images, channels, windows.padded[0], windows.padded[1]}, self.dtype);
  const Values places = windows.places(w);
  Json attrs = two_indices();
  attrs["accumulate"] = true;
  Value image = w.add("aten.index_put.default", {zeros, places[0], places[1], elements},
                      std::move(attrs), zeros.shape, self.dtype);
  for (std::size_t i = 0; i < 2; ++i) {
    image = w.slice(image, static_cast<std::int64_t>(i) + 2, windows.padding[i],
                    windows.padding[i] + size[i]);
  }
  return w.reshape(image, w.result().shape);
}

// ---- Padding ----

enum class Border { kReflect, kReplicate, kWrap };

/// Of a dimension of `length`, what stands at -before to length + after, which may be negative.
Value border_places(PartWriter& w, Border border, std::int64_t length, std::int64_t before,
                    std::int64_t after) {
  const std::int64_t count = length + before + after;
  const std::int64_t most = length - 1;
  need(length > 0 && count > 0);
  const Value places = w.sequence(-before, count);
  switch (border) {
    case Border::kReflect: {
      need(before <= most && after <= most);
      const auto behind_last = [&](const Value& a) {
        return w.map("aten.rsub.Scalar", a, {{"other", most}});
      };
      const Value right = w.map("aten.abs.default", behind_last(w.map("aten.abs.default", places)));
      return behind_last(right);
    }
    case Border::kReplicate:
      return w.map("aten.clamp.default", places, {{"min", 0}, {"max", most}});
    case Border::kWrap:
      need(before <= length && after <= length);
      return w.map("aten.remainder.Scalar", places, {{"other", length}});
  }
  return places;
}

/// `pad`: before and after the last dimension, then the one in front of it.
Value pad_borders(PartWriter& w, Border border, const std::vector<std::int64_t>& pad) {
  Value value = w.operand("self");
  const auto count = static_cast<std::int64_t>(pad.size() / 2);
  need(pad.size() % 2 == 0 && count >= 1 && count <= rank_of(value));
  for (std::int64_t i = count - 1; i >= 0; --i) {  // rows are copied whole before they get longer
    const std::int64_t before = pad[index_of(2 * i)];
    const std::int64_t after = pad[index_of(2 * i + 1)];
    if (before == 0 && after == 0) continue;
    const std::int64_t dim = rank_of(value) - 1 - i;
    value = w.index_select(value, dim, border_places(w, border, extent(value, dim), before, after));
  }
  return value;
}

Value pad(PartWriter& w) {
  const std::string mode = w.node().string("mode");
  need(w.is_none("value") || w.node().number("value") == 0);
  for (const auto& [name, border] : {std::pair{"reflect", Border::kReflect},
                                     {"replicate", Border::kReplicate},
                                     {"circular", Border::kWrap}}) {
    if (mode == name) return pad_borders(w, border, w.node().integers("pad"));
  }
  throw NoDecomposition{};
}
template <Border kBorder>
Value pad_with(PartWriter& w) {
  return pad_borders(w, kBorder, w.node().integers("padding"));
}

// ---- Scattering ----

Value one_hot(PartWriter& w) {
  const Value self = w.operand("self");
  const std::int64_t classes = w.integer("num_classes");
  need(classes > 0 && self.dtype == DType::kInt64);
  Shape places = self.shape;
  places.push_back(1);
  const Value zeros = w.zeros(w.result().shape, DType::kInt64);
  return w.scatter_number(zeros, rank_of(zeros) - 1, w.reshape(self, places), 1);
}

/// What no element is beyond, so that the first one that is scattered counts.
Json start_of(std::string_view reduce, DType dtype) {
  if (reduce == "sum" || reduce == "mean") return 0;
  if (is_floating_point(dtype)) return reduce == "amax" ? "-inf" : "inf";
  need(dtype == DType::kInt32 || dtype == DType::kInt64);
  const bool is_wide = dtype == DType::kInt64;
  if (reduce == "amax") return is_wide ? INT64_MIN : INT32_MIN;
  return is_wide ? INT64_MAX : INT32_MAX;
}

/// In terms of a scatter_reduce that starts with what is there, and of a source as large as the
/// index. A mean is a sum over how many elements it has.
Value scatter(PartWriter& w) {
  const bool reduces = w.node().find("reduce") != nullptr;
  const std::string reduce = reduces ? w.node().string("reduce") : std::string("sum");
  const bool includes_self = !reduces || w.node().boolean("include_self");
  const Value index = w.operand("index");
  const Value self = w.operand("self");
  Value source = w.operand("src");
  need(reduce == "sum" || reduce == "mean" || reduce == "amax" || reduce == "amin");
  need(rank_of(self) > 0 && rank_of(index) == rank_of(self) && rank_of(source) == rank_of(self));
  const std::int64_t dim = w.dimension("dim", self);
  for (std::int64_t d = 0; d < rank_of(index); ++d) {
    need(extent(index, d) <= extent(source, d));
    source = w.slice(source, d, 0, extent(index, d));
  }
  const auto add_up = [&](const Value& to, const Value& from) {
    return w.add("aten.scatter_add.default", {to, index, from}, {{"dim", dim}}, to.shape, to.dtype);
  };
  const Value start =
      includes_self ? self : w.scatter_number(self, dim, index, start_of(reduce, self.dtype));
  if (reduce == "sum") return add_up(start, source);
  if (reduce != "mean") {
    return w.add("aten.scatter_reduce.two", {start, index, source},
                 {{"dim", dim}, {"reduce", reduce}, {"include_self", true}}, self.shape,
                 self.dtype);
  }
  const auto filled = [&](const Shape& shape, int number) {
    return w.add(
        "aten.full.default", {},
        {{"size", shape},
         {"fill_value", is_floating_point(self.dtype) ? Json(double(number)) : Json(number)},
         {"dtype", torch_name(self.dtype)}},
        shape, self.dtype);
  };
  Value counts = add_up(filled(self.shape, includes_self ? 1 : 0), filled(index.shape, 1));
  if (!includes_self) counts = w.map("aten.clamp_min.default", counts, {{"min", 1}});
  const Value sum = add_up(start, source);
  if (is_floating_point(self.dtype)) return w.join("aten.div.Tensor", sum, counts);
  return w.add("aten.div.Tensor_mode", {sum, counts}, {{"rounding_mode", "floor"}}, self.shape,
               self.dtype);
}

// ---- Products ----

/// A product for each run of rows under one name, and with as many matrices on the left as on the
/// right one of batches.
Value grouped_product(PartWriter& w) {
  const Value self = w.operand("self");
  const Value right = w.operand("mat2");
  need(rank_of(right) == 3);
  if (rank_of(self) == 3) {
    need(w.is_none("offs") && w.is_none("bias") && w.is_none("out_dtype"));
    return w.add("aten.bmm.default", {self, right}, Json::object(), w.result().shape, self.dtype);
  }
  need(rank_of(self) == 2 && !w.node().node().op_type.starts_with(kAtenPrefix));
  return w.add("aten._grouped_mm.default", {self, right, w.operand("offs")}, Json::object(),
               {extent(self, 0), extent(right, 2)}, self.dtype);
}

// ---- The table ----

struct Row {
  std::string_view op_type;
  Value (*write)(PartWriter&);
};

// By name.
constexpr Row kRows[] = {
    {"aten._grouped_mm.default", grouped_product},
    {"aten._weight_norm.default", weight_norm},
    {"aten.addcdiv.default", addcdiv},
    {"aten.addcmul.default", addcmul},
    {"aten.cat.default", cat},
    {"aten.col2im.default", col2im},
    {"aten.concat.default", cat},
    {"aten.cumsum.default", in_dtype},
    {"aten.diff.default", diff},
    {"aten.empty.memory_format", empty},
    {"aten.empty_like.default", empty},
    {"aten.histc.default", histc},
    {"aten.im2col.default", im2col},
    {"aten.lift_fresh.default", convert},
    {"aten.lift_fresh_copy.default", convert},
    {"aten.linalg_vector_norm.default", vector_norm},
    {"aten.max.other", extremum},
    {"aten.mean.default", in_dtype},
    {"aten.mean.dim", in_dtype},
    {"aten.min.other", extremum},
    {"aten.new_empty.default", empty},
    {"aten.one_hot.default", one_hot},
    {"aten.pad.default", pad},
    {"aten.prod.default", in_dtype},
    {"aten.prod.dim_int", in_dtype},
    {"aten.reflection_pad1d.default", pad_with<Border::kReflect>},
    {"aten.reflection_pad2d.default", pad_with<Border::kReflect>},
    {"aten.reflection_pad3d.default", pad_with<Border::kReflect>},
    {"aten.replication_pad1d.default", pad_with<Border::kReplicate>},
    {"aten.replication_pad2d.default", pad_with<Border::kReplicate>},
    {"aten.replication_pad3d.default", pad_with<Border::kReplicate>},
    {"aten.scatter_add.default", scatter},
    {"aten.scatter_reduce.two", scatter},
    {"aten.sum.default", in_dtype},
    {"aten.sum.dim_IntList", in_dtype},
    {"aten.to.device", convert},
    {"aten.to.other", convert},
    {"aten.unfold.default", unfold},
    {"npu.length_mask", length_mask},
    {"npu.tail", tail},
    {"transformers.grouped_mm_fallback.default", grouped_product},
};
static_assert(std::is_sorted(std::begin(kRows), std::end(kRows),
                             [](const Row& a, const Row& b) { return a.op_type < b.op_type; }));

/// The row of an op or, in place or not, of the same overload.
const Row* find_decomposition(std::string_view op_type) {
  if (!is_catalogued(op_type)) return nullptr;
  std::string name(family_name(op_type));
  if (op_type.starts_with(kAtenPrefix) || name != op_type) {
    name += op_type.substr(std::min(op_type.size(), op_type.rfind('.')));
  }
  const auto* row = std::ranges::lower_bound(kRows, name, {}, &Row::op_type);
  return row != std::end(kRows) && row->op_type == name ? row : nullptr;
}

}  // namespace
}  // namespace decompositions

std::vector<std::string_view> decomposed_ops() {
  std::vector<std::string_view> ops;
  for (const std::string_view op : catalogued_ops()) {
    if (decompositions::find_decomposition(op) != nullptr) ops.push_back(op);
  }
  return ops;
}

std::optional<std::vector<DecomposedPart>> decompose(const Graph& graph, const Node& node) {
  using namespace decompositions;
  const Row* row = find_decomposition(node.op_type);
  if (row == nullptr || node.outputs.size() != 1) return std::nullopt;
  BindError error;
  const auto bound = BoundNode::try_bind(graph, node, find_op(node.op_type)->schema, error);
  if (!bound) return std::nullopt;
  try {
    PartWriter writer(*bound);
    return writer.finish(row->write(writer));
  } catch (const NoDecomposition&) {
    return std::nullopt;
  } catch (const Error&) {  // an argument of another type
    return std::nullopt;
  }
}

}  // namespace npu
