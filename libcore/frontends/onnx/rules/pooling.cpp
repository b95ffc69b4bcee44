// SPDX-License-Identifier: Apache-2.0
// Pools. Whatever pads and ceil_mode say, the number of windows is known, so they become pads at
// both ends; what ATen's own pads cannot express is padded by a node before. Averages of windows
// that are not full are full averages times a constant.
#include <algorithm>
#include <cmath>

#include "patterns.hpp"
#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

struct Pool {
  Window window;
  Ints outputs;                ///< windows of each axis
  bool is_torch_ceil = false;  ///< ceil_mode with these pads gives ATen the same windows
  bool is_even = true;         ///< the same pads at both ends, at most half of the window
};

std::string pool_name(const char* name, std::size_t spatial) {
  return "aten." + std::string(name) + "_pool" + std::to_string(spatial) + "d.default";
}

// Number of windows that ATen counts.
std::int64_t torch_windows(std::int64_t extent, std::int64_t reach, std::int64_t stride,
                           std::int64_t pad, bool ceil) {
  const std::int64_t room = extent + 2 * pad - reach;
  std::int64_t count = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
  if (ceil && (count - 1) * stride >= extent + pad) --count;
  return count;
}

Pool read_pool(Op& op, const Shape& shape) {
  const auto kernel = op.list("kernel_shape");
  if (!kernel || kernel->size() + 2 != shape.size() || kernel->size() > 3 || kernel->empty()) {
    Op::refuse("'kernel_shape' does not fit an operand of rank " + std::to_string(shape.size()));
  }
  Pool pool{.window = read_window(op, shape, *kernel), .outputs = {}};
  const bool is_ceil = op.integer("ceil_mode", 0) != 0;
  pool.is_torch_ceil = is_ceil;
  for (std::size_t i = 0; i < kernel->size(); ++i) {
    const std::int64_t extent = shape[i + 2];
    const std::int64_t begin = pool.window.begin[i];
    std::int64_t& end = pool.window.end[i];
    const std::int64_t stride = pool.window.strides[i];
    const std::int64_t reach = ((*kernel)[i] - 1) * pool.window.dilations[i] + 1;
    const std::int64_t room = extent + begin + end - reach;
    if (room < 0 || begin < 0 || end < 0) Op::refuse("the window is larger than its operand");
    std::int64_t count = room / stride + 1;
    if (is_ceil && room % stride != 0) {
      ++count;
      // A window has to begin in the operand or in front of it. ONNX says so from opset 19 on, and
      // runtimes drop it in all: it would see nothing but padding.
      if ((count - 1) * stride >= extent + begin) --count;
    }
    pool.outputs.push_back(count);
    const bool fits = begin <= (*kernel)[i] / 2;
    const bool is_equal = begin == end && fits;
    pool.is_torch_ceil = pool.is_torch_ceil && is_equal &&
                         torch_windows(extent, reach, stride, begin, true) == count;
    const std::int64_t needed = (count - 1) * stride + reach - extent - begin;
    pool.is_even =
        pool.is_even && is_equal && torch_windows(extent, reach, stride, begin, false) == count;
    end = std::max(end, needed);
  }
  return pool;
}

std::vector<std::pair<std::int64_t, std::int64_t>> pads_of(const Window& window) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pads(2, {0, 0});
  for (std::size_t i = 0; i < window.begin.size(); ++i) {
    pads.emplace_back(window.begin[i], window.end[i]);
  }
  return pads;
}

Shape pooled_shape(const Shape& shape, const Ints& outputs) {
  Shape result{shape[0], shape[1]};
  result.insert(result.end(), outputs.begin(), outputs.end());
  return result;
}

bool has_dilation(const Window& window) {
  return std::any_of(window.dilations.begin(), window.dilations.end(),
                     [](auto d) { return d != 1; });
}

// ATen counts within a plane, ONNX over the whole tensor, and by columns if asked.
Value* whole_indices(Op& op, Value* indices, const Shape& shape) {
  const std::size_t spatial = shape.size() - 2;
  const std::int64_t plane = product(shape, 2, shape.size());
  if (op.integer("storage_order", 0) != 0 && spatial == 2) {
    Value* row = op.emit_like("aten.floor_divide.Scalar", {indices}, Json{{"other", shape[3]}});
    Value* column = op.emit_like("aten.remainder.Scalar", {indices}, Json{{"other", shape[3]}});
    Value* scaled = op.emit_like("aten.mul.Tensor", {column}, Json{{"other", shape[2]}});
    indices = op.binary("add", scaled, row);
  }
  Ints offsets;
  for (std::int64_t i = 0; i < shape[0] * shape[1]; ++i) offsets.push_back(i * plane);
  Shape offset_shape(shape.size(), 1);
  offset_shape[0] = shape[0];
  offset_shape[1] = shape[1];
  return op.binary("add", indices, op.integer_constant(offsets, offset_shape));
}

// The share of each window's elements that count, as its reciprocal times the window's size.
std::vector<double> corrections(const Pool& pool, const Shape& shape, std::size_t axis,
                                bool counts_pads, const Ints& stated_end) {
  std::vector<double> counts;
  const std::int64_t low = counts_pads ? -pool.window.begin[axis] : 0;
  const std::int64_t high = shape[axis + 2] + (counts_pads ? stated_end[axis] : 0);
  for (std::int64_t i = 0; i < pool.outputs[axis]; ++i) {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < pool.window.kernel[axis]; ++k) {
      const std::int64_t at =
          i * pool.window.strides[axis] - pool.window.begin[axis] + k * pool.window.dilations[axis];
      if (at >= low && at < high) ++count;
    }
    counts.push_back(static_cast<double>(std::max<std::int64_t>(count, 1)));
  }
  return counts;
}

// The sum of windows whose elements are not side by side, one element of all windows at a time.
Value* dilated_sum(Op& op, Value* x, const Pool& pool) {
  const Window& window = pool.window;
  const std::size_t spatial = pool.outputs.size();
  const std::int64_t taps = product(window.kernel, 0, spatial);
  if (taps > 256) Op::refuse("dilations of a window of " + std::to_string(taps) + " elements");
  Value* sum = nullptr;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Value* part = x;
    std::int64_t rest = tap;
    for (std::size_t i = spatial; i-- > 0;) {
      const std::int64_t start = rest % window.kernel[i] * window.dilations[i];
      rest /= window.kernel[i];
      part = op.slice(part, static_cast<std::int64_t>(i) + 2, start,
                      start + (pool.outputs[i] - 1) * window.strides[i] + 1, window.strides[i]);
    }
    sum = sum == nullptr ? part : op.binary("add", sum, part);
  }
  return sum;
}

// The average of full windows, without pads.
Value* plain_average(Op& op, Value* x, const Pool& pool) {
  const std::size_t spatial = pool.outputs.size();
  if (has_dilation(pool.window)) {
    const auto size = static_cast<double>(product(pool.window.kernel, 0, spatial));
    return op.scalar("mul", dilated_sum(op, x, pool), 1 / size);
  }
  return op.emit(pool_name("avg", spatial), {x},
                 Json{{"kernel_size", pool.window.kernel}, {"stride", pool.window.strides}},
                 x->dtype, pooled_shape(x->shape, pool.outputs));
}

Value* corrected_average(Op& op, Value* x, const Pool& pool, bool counts_pads,
                         const Ints& stated_end) {
  const std::size_t spatial = pool.outputs.size();
  const Shape shape = x->shape;
  const bool is_double = x->dtype == DType::kFloat64;
  Tensor factors(is_double ? DType::kFloat64 : DType::kFloat32, pooled_shape({1, 1}, pool.outputs));
  if (factors.element_count() > Importer::kMostKnown) Op::refuse("a pool with too many windows");
  std::vector<std::vector<double>> counts;
  for (std::size_t i = 0; i < spatial; ++i) {
    counts.push_back(corrections(pool, shape, i, counts_pads, stated_end));
  }
  for (std::int64_t i = 0; i < factors.element_count(); ++i) {
    std::int64_t rest = i;
    double factor = 1;
    for (std::size_t d = spatial; d-- > 0;) {
      const auto at = static_cast<std::size_t>(rest % pool.outputs[d]);
      rest /= pool.outputs[d];
      factor *= static_cast<double>(pool.window.kernel[d]) / counts[d][at];
    }
    if (is_double) {
      factors.as_mutable<double>()[i] = factor;
    } else {
      factors.as_mutable<float>()[i] = static_cast<float>(factor);
    }
  }
  const DType dtype = x->dtype;
  x = op.cast(x, factors.dtype());  // a lesser type would round the average and the factor
  Value* average = plain_average(op, op.pad(x, pads_of(pool.window), 0), pool);
  return op.cast(op.binary("mul", average, op.constant_value(std::move(factors))), dtype);
}

// Indices of a padded plane as those of the plane.
Value* without_pads(Op& op, Value* indices, const Shape& shape, const Window& window) {
  Value* rest = indices;
  Value* sum = nullptr;
  std::int64_t stride = 1;
  for (std::size_t i = window.begin.size(); i-- > 0;) {
    const std::int64_t extent = shape[i + 2] + window.begin[i] + window.end[i];
    Value* at = op.emit_like("aten.remainder.Scalar", {rest}, Json{{"other", extent}});
    rest = op.emit_like("aten.floor_divide.Scalar", {rest}, Json{{"other", extent}});
    at = op.emit_like("aten.sub.Tensor", {at}, Json{{"other", window.begin[i]}});
    at = op.emit_like("aten.mul.Tensor", {at}, Json{{"other", stride}});
    sum = sum == nullptr ? at : op.binary("add", sum, at);
    stride *= shape[i + 2];
  }
  return sum;
}

// A pool with indices; over one axis as over two of which the first is 1.
void import_indexed_pool(Op& op, Value* x, const Pool& pool, Json attrs, const Shape& input_shape,
                         DType dtype, bool is_padded) {
  const Shape shape = pooled_shape(input_shape, pool.outputs);
  const bool is_line = pool.outputs.size() == 1;
  Shape wide = shape;
  if (is_line) {
    wide.insert(wide.begin() + 2, 1);
    x = op.view(x, {x->shape[0], x->shape[1], 1, x->shape[2]});
    for (const char* name : {"kernel_size", "stride", "padding", "dilation"}) {
      if (!attrs.contains(name)) continue;
      const std::int64_t first = std::string_view(name) == "padding" ? 0 : 1;
      attrs[name] = Ints{first, attrs[name][0].get<std::int64_t>()};
    }
  }
  const std::size_t spatial = is_line ? 2 : pool.outputs.size();
  const auto results =
      op.draft().emit_several("aten.max_pool" + std::to_string(spatial) + "d_with_indices.default",
                              {x}, std::move(attrs), {{x->dtype, wide}, {DType::kInt64, wide}});
  op.set(0, op.cast(op.view(results[0], shape), dtype));
  Value* indices = op.view(results[1], shape);
  if (is_padded) indices = without_pads(op, indices, input_shape, pool.window);
  op.set(1, whole_indices(op, indices, input_shape));
}

}  // namespace

void import_max_pool(Op& op) {
  Value* x = op.in(0);
  const Pool pool = read_pool(op, x->shape);
  const Shape input_shape = x->shape;
  const DType dtype = x->dtype;
  const bool is_plain = pool.is_even || pool.is_torch_ceil;
  if (!is_floating_point(dtype)) x = op.cast(x, DType::kFloat32);
  Json attrs{{"kernel_size", pool.window.kernel}, {"stride", pool.window.strides}};
  if (is_plain) {
    attrs["padding"] = pool.window.begin;
  } else {
    x = op.pad(x, pads_of(pool.window), -kInfinity);
  }
  if (has_dilation(pool.window)) attrs["dilation"] = pool.window.dilations;
  if (!pool.is_even && pool.is_torch_ceil) attrs["ceil_mode"] = true;
  if (op.wants(1)) {
    return import_indexed_pool(op, x, pool, std::move(attrs), input_shape, dtype, !is_plain);
  }
  Value* value = op.emit(pool_name("max", pool.outputs.size()), {x}, std::move(attrs), x->dtype,
                         pooled_shape(input_shape, pool.outputs));
  op.set(0, op.cast(value, dtype));
}

void import_average_pool(Op& op) { op.set(0, average_pool(op, op.in(0))); }

Value* average_pool(Op& op, Value* x) {
  const Ints kernel = op.list("kernel_shape").value_or(Ints{});
  const Pool pool = read_pool(op, x->shape);
  const Ints stated_end = kernel.size() + 2 == x->shape.size()
                              ? read_window(op, x->shape, kernel).end
                              : pool.window.end;
  const bool counts_pads = op.integer("count_include_pad", 0) != 0;
  if (!pool.is_even || has_dilation(pool.window)) {
    return corrected_average(op, x, pool, counts_pads, stated_end);
  }
  Json attrs{{"kernel_size", pool.window.kernel},
             {"stride", pool.window.strides},
             {"padding", pool.window.begin}};
  const bool has_pads = std::any_of(pool.window.begin.begin(), pool.window.begin.end(),
                                    [](auto p) { return p != 0; });
  if (has_pads && !counts_pads) attrs["count_include_pad"] = false;
  Shape pads;
  if (Value* before = has_pads ? nullptr : unpadded(op, x, pool.window.kernel, pads)) {
    attrs["padding"] = pads;
    x = before;
  }
  return op.emit(pool_name("avg", pool.outputs.size()), {x}, std::move(attrs), x->dtype,
                 pooled_shape(x->shape, pool.outputs));
}

void import_lp_pool(Op& op) {
  Value* x = op.in(0);
  const Pool pool = read_pool(op, x->shape);
  const auto p = static_cast<double>(op.integer("p", 2));
  Value* power = op.emit_like("aten.pow.Tensor_Scalar", {op.emit_like("aten.abs.default", {x})},
                              Json{{"exponent", p}});
  Value* average = plain_average(op, op.pad(power, pads_of(pool.window), 0), pool);
  const double size =
      static_cast<double>(product(pool.window.kernel, 0, pool.window.kernel.size()));
  Value* sum = op.scalar("mul", average, size);
  op.set(0, op.emit_like("aten.pow.Tensor_Scalar", {sum}, Json{{"exponent", 1 / p}}));
}

void import_global_pool(Op& op) {
  Value* x = op.in(0);
  const std::string_view name = op.node().op_type;
  if (x->rank() < 3) Op::refuse("an operand of rank " + std::to_string(x->rank()));
  Ints axes;
  Shape shape = x->shape;
  for (std::int64_t i = 2; i < x->rank(); ++i) {
    axes.push_back(i);
    shape[static_cast<std::size_t>(i)] = 1;
  }
  if (name == "GlobalMaxPool") return op.set(0, op.reduce("amax.default", x, axes, true));
  if (name == "GlobalLpPool") {
    return op.set(0, op.emit("aten.linalg_vector_norm.default", {x},
                             Json{{"ord", op.integer("p", 2)}, {"dim", axes}, {"keepdim", true}},
                             x->dtype, shape));
  }
  if (x->rank() > 5) return op.set(0, op.reduce("mean.dim", x, axes, true));
  op.set(0, op.emit("aten.adaptive_avg_pool" + std::to_string(axes.size()) + "d.default", {x},
                    Json{{"output_size", Ints(axes.size(), 1)}}, x->dtype, shape));
}

}  // namespace npu::onnx
