// SPDX-License-Identifier: Apache-2.0
// Pooling over the last one to three dimensions. Images in blocks of channels go to oneDNN's
// primitives wherever their rules are PyTorch's. A kernel of this backend pools images in rows,
// which oneDNN reads element by element, windows that reach beyond the padding (ceil_mode), and
// those of own divisors and uneven adaptive ones.
#include <algorithm>

#include "lowering/sampling/sampling.hpp"

namespace npu::onednn {

namespace {

struct Pool {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation;
  bool ceil_mode = false;
};

/// "aten.max_pool3d.default" pools over 3 dimensions.
std::size_t pooled_dimensions(const Lowering& lowering) {
  const std::string& op = lowering.node().op_type;
  for (const std::size_t count : {1, 2, 3}) {
    if (op.find("pool" + std::to_string(count) + "d") != std::string::npos) return count;
  }
  lowering.refuse("", "the onednn backend does not run this op");
}

Pool read_pool(const Lowering& lowering, const BoundNode& node) {
  Pool pool;
  const std::size_t count = pooled_dimensions(lowering);
  pool.kernel = spatial_argument(lowering, node, "kernel_size", count, 1);
  pool.stride = node.integers("stride").empty()
                    ? pool.kernel
                    : spatial_argument(lowering, node, "stride", count, 1);
  pool.padding = spatial_argument(lowering, node, "padding", count, 0);
  pool.dilation.assign(count, 1);
  if (node.find("dilation") != nullptr)
    pool.dilation = spatial_argument(lowering, node, "dilation", count, 1);
  pool.ceil_mode = node.boolean("ceil_mode");
  for (std::size_t i = 0; i < count; ++i) {
    if (pool.padding[i] > pool.kernel[i] / 2) {
      lowering.refuse("padding", number_text(pool.padding[i]) +
                                     " is more than half of the kernel size " +
                                     number_text(pool.kernel[i]));
    }
  }
  return pool;
}

/// PyTorch's rule: with ceil_mode a last window that would start behind the input and its left
/// padding does not count.
std::int64_t pooled_extent(const Lowering& lowering, const Pool& pool, std::size_t i,
                           std::int64_t input) {
  const std::int64_t span = pool.dilation[i] * (pool.kernel[i] - 1) + 1;
  const std::int64_t room = input + 2 * pool.padding[i] - span;
  if (room < 0 && !pool.ceil_mode) {
    lowering.invalid("the window spans " + number_text(span) +
                     " elements, but the padded input has " +
                     number_text(input + 2 * pool.padding[i]));
  }
  std::int64_t extra = pool.ceil_mode ? pool.stride[i] - 1 : 0;
  std::int64_t steps = room + extra;
  std::int64_t extent = (steps < 0 ? -1 : steps / pool.stride[i]) + 1;
  if (pool.ceil_mode && (extent - 1) * pool.stride[i] >= input + pool.padding[i]) --extent;
  if (extent < 1) lowering.invalid("the window does not fit the input");
  return extent;
}

Shape pooled_shape(const Lowering& lowering, const Pool& pool, const Shape& input) {
  Shape result{input[0], input[1]};
  for (std::size_t i = 0; i + 2 < input.size(); ++i) {
    result.push_back(pooled_extent(lowering, pool, i, input[i + 2]));
  }
  return result;
}

/// The padding behind that makes oneDNN's rule give the wanted extent; more than PyTorch's with
/// ceil_mode.
std::vector<std::int64_t> padding_behind(const Pool& pool, const Shape& input,
                                         const Shape& output) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < pool.kernel.size(); ++i) {
    const std::int64_t span = pool.dilation[i] * (pool.kernel[i] - 1) + 1;
    const std::int64_t reach = (output[i + 2] - 1) * pool.stride[i] + span;
    result.push_back(std::max(pool.padding[i], reach - input[i + 2] - pool.padding[i]));
  }
  return result;
}

Value add_pool_primitive(Lowering& lowering, const Pool& pool, dnnl::algorithm algorithm,
                         const Value& source, const Shape& output) {
  const Layout any = any_layout(output, source.type);
  const Shape input = dimensions(source.layout);
  const auto behind = padding_behind(pool, input, output);
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto add = [&](const auto& primitive) {
    const Value target = lowering.temporary(source.type, primitive.dst_desc());
    lowering.add_primitive(primitive, {{DNNL_ARG_SRC, source}}, target);
    return target;
  };
  if (std::all_of(pool.dilation.begin(), pool.dilation.end(),
                  [](std::int64_t value) { return value == 1; })) {
    const dnnl::pooling_forward::desc descriptor(kind, algorithm, source.layout, any,
                                                 dims(pool.stride), dims(pool.kernel),
                                                 dims(pool.padding), dims(behind));
    return add(dnnl::pooling_forward::primitive_desc(descriptor, lowering.attributes(),
                                                     lowering.engine()));
  }
  dnnl::memory::dims dilation = dims(pool.dilation);
  for (auto& value : dilation) value -= 1;  // oneDNN counts the gaps
  const dnnl::pooling_v2_forward::desc descriptor(kind, algorithm, source.layout, any,
                                                  dims(pool.stride), dims(pool.kernel), dilation,
                                                  dims(pool.padding), dims(behind));
  return add(dnnl::pooling_v2_forward::primitive_desc(descriptor, lowering.attributes(),
                                                      lowering.engine()));
}

/// oneDNN pools such images element by element.
bool has_rows_of_floats(const Value& source) {
  return is_plain(source.layout) && is_floating_point(source.type);
}

/// `windows` by spatial dimension and position.
Value add_window_pool(Lowering& lowering, const Value& value,
                      const std::vector<std::vector<Window>>& windows, WindowPool call) {
  const Value source = lowering.plain(value);
  const Shape input = dimensions(source.layout);
  Shape output{input[0], input[1]};
  call.type = source.type;
  call.planes = input[0] * input[1];
  for (std::size_t i = 0; i < windows.size(); ++i) {
    output.push_back(static_cast<std::int64_t>(windows[i].size()));
    const std::size_t at = 3 - windows.size() + i;
    call.windows[at] = windows[i];
    call.extents[at] = input[i + 2];
  }
  const Value target = lowering.temporary(source.type, plain_layout(output, source.type));
  lowering.add_kernel({source}, target, std::move(call));
  return target;
}

/// The [N, C, spatial..] operand of a pooling node; a missing batch dimension is added.
Shape batched_shape(const Lowering& lowering, TensorId input) {
  lowering.require_float("self", input);
  const std::size_t count = pooled_dimensions(lowering);
  Shape shape = lowering.shape(input);
  if (shape.size() != count + 1 && shape.size() != count + 2) {
    lowering.refuse("self", "rank " + std::to_string(shape.size()) + " is not " +
                                std::to_string(count + 1) + " or " + std::to_string(count + 2));
  }
  if (shape.size() == count + 1) shape.insert(shape.begin(), 1);
  return shape;
}

Value batched_operand(Lowering& lowering, const GroupContext& context, TensorId input,
                      const Shape& shape) {
  if (lowering.shape(input).size() != shape.size()) {
    return lowering.plain(lowering.reshaped(lowering.operand(input, context.compute_type), shape));
  }
  return lowering.dense(lowering.operand(input, context.compute_type));
}

/// The node's result has this [N, C, ..] shape, or the part behind N for an operand without it.
void check_pooled(const Lowering& lowering, TensorId input, Shape output) {
  if (lowering.shape(input).size() != output.size()) output.erase(output.begin());
  lowering.check_result(lowering.result(), output, lowering.dtype(input));
}

void define_pooled(Lowering& lowering, const GroupContext& context, TensorId input, Shape output,
                   const Value& value) {
  if (lowering.shape(input).size() == output.size()) {
    lowering.define_computed(context, lowering.result(), output, lowering.dtype(input), value);
    return;
  }
  output.erase(output.begin());
  lowering.define_computed(context, lowering.result(), output, lowering.dtype(input),
                           lowering.reshaped(value, output));
}

/// 0 if the op has no divisor of its own.
std::int64_t read_divisor(const Lowering& lowering, const BoundNode& node) {
  if (node.find("divisor_override") == nullptr || node.is_none("divisor_override")) return 0;
  const std::int64_t divisor = node.integer("divisor_override");
  if (divisor == 0) lowering.invalid("argument 'divisor_override': 0 is no divisor");
  return divisor;
}

/// The average of even, unpadded windows.
Pool even_pool(const Shape& input, const Shape& output) {
  Pool pool;
  for (std::size_t i = 2; i < input.size(); ++i) pool.kernel.push_back(input[i] / output[i]);
  pool.stride = pool.kernel;
  pool.padding.assign(pool.kernel.size(), 0);
  pool.dilation.assign(pool.kernel.size(), 1);
  return pool;
}

std::vector<std::vector<Window>> pool_windows(const Pool& pool, const Shape& input,
                                              const Shape& output, bool count_padding) {
  std::vector<std::vector<Window>> result(pool.kernel.size());
  for (std::size_t i = 0; i < pool.kernel.size(); ++i) {
    const std::int64_t extent = input[i + 2];
    const std::int64_t step = pool.dilation[i];
    for (std::int64_t j = 0; j < output[i + 2]; ++j) {
      const std::int64_t start = j * pool.stride[i] - pool.padding[i];
      // The divisor counts padding, but nothing behind it.
      const std::int64_t stop =
          std::min(start + step * (pool.kernel[i] - 1) + 1, extent + pool.padding[i]);
      const std::int64_t skipped = start < 0 ? ceil_div(-start, step) * step : 0;
      Window window{start + skipped, std::min(stop, extent), stop - start};
      if (window.begin >= window.end) window = {0, 0, 1};  // all of it is padding
      if (!count_padding) window.divisor = std::max<std::int64_t>(1, window.end - window.begin);
      result[i].push_back(window);
    }
  }
  return result;
}

std::vector<std::vector<Window>> adaptive_windows(const Shape& input, const Shape& output) {
  std::vector<std::vector<Window>> result(output.size() - 2);
  for (std::size_t i = 0; i + 2 < output.size(); ++i) {
    const std::int64_t extent = input[i + 2];
    const std::int64_t size = output[i + 2];
    for (std::int64_t j = 0; j < size; ++j) {
      const std::int64_t begin = j * extent / size;
      const std::int64_t end = ((j + 1) * extent + size - 1) / size;
      result[i].push_back({begin, end, end - begin});
    }
  }
  return result;
}

}  // namespace

AverageWindows read_average(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  const Shape shape = batched_shape(lowering, input);
  if (node.find("output_size") != nullptr) {
    const auto size = spatial_argument(lowering, node, "output_size", shape.size() - 2, 1);
    Shape output{shape[0], shape[1]};
    output.insert(output.end(), size.begin(), size.end());
    check_pooled(lowering, input, output);
    return {shape, output, adaptive_windows(shape, output), 0};
  }
  const Pool pool = read_pool(lowering, node);
  const Shape output = pooled_shape(lowering, pool, shape);
  check_pooled(lowering, input, output);
  return {shape, output, pool_windows(pool, shape, output, node.boolean("count_include_pad")),
          read_divisor(lowering, node)};
}

void lower_max_pool(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  const Shape shape = batched_shape(lowering, input);
  const Pool pool = read_pool(lowering, node);
  const Shape output = pooled_shape(lowering, pool, shape);
  check_pooled(lowering, input, output);
  const Value source = batched_operand(lowering, context, input, shape);
  if (!has_rows_of_floats(source)) {
    define_pooled(lowering, context, input, output,
                  add_pool_primitive(lowering, pool, dnnl::algorithm::pooling_max, source, output));
    return;
  }
  WindowPool call;
  call.is_maximum = true;
  for (std::size_t i = 0; i < pool.kernel.size(); ++i) {
    if (pool.kernel[i] > 1) call.step[3 - pool.kernel.size() + i] = pool.dilation[i];
  }
  define_pooled(lowering, context, input, output,
                add_window_pool(lowering, source, pool_windows(pool, shape, output, false), call));
}

void lower_average_pool(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  const Shape shape = batched_shape(lowering, input);
  const Pool pool = read_pool(lowering, node);
  const bool count_padding = node.boolean("count_include_pad");
  const std::int64_t divisor = read_divisor(lowering, node);
  const Shape output = pooled_shape(lowering, pool, shape);
  check_pooled(lowering, input, output);
  const Value source = batched_operand(lowering, context, input, shape);

  const bool has_padding = pool.padding != std::vector<std::int64_t>(pool.padding.size(), 0);
  const bool reaches_beyond = padding_behind(pool, shape, output) != pool.padding;
  if (!has_rows_of_floats(source) && divisor == 0 && (!reaches_beyond || !count_padding)) {
    const auto algorithm = has_padding && count_padding
                               ? dnnl::algorithm::pooling_avg_include_padding
                               : dnnl::algorithm::pooling_avg_exclude_padding;
    define_pooled(lowering, context, input, output,
                  add_pool_primitive(lowering, pool, algorithm, source, output));
    return;
  }
  define_pooled(lowering, context, input, output,
                add_window_pool(lowering, source, pool_windows(pool, shape, output, count_padding),
                                {.divisor_override = divisor}));
}

void lower_adaptive_average_pool(Lowering& lowering, const GroupContext& context,
                                 const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  const Shape shape = batched_shape(lowering, input);
  const std::size_t count = shape.size() - 2;
  const auto size = spatial_argument(lowering, node, "output_size", count, 1);
  Shape output{shape[0], shape[1]};
  output.insert(output.end(), size.begin(), size.end());
  check_pooled(lowering, input, output);
  const Value source = batched_operand(lowering, context, input, shape);
  bool is_even = true;
  for (std::size_t i = 0; i < count; ++i) is_even = is_even && shape[i + 2] % size[i] == 0;
  if (is_even && !has_rows_of_floats(source)) {
    const auto algorithm = dnnl::algorithm::pooling_avg_exclude_padding;
    define_pooled(
        lowering, context, input, output,
        add_pool_primitive(lowering, even_pool(shape, output), algorithm, source, output));
    return;
  }
  define_pooled(lowering, context, input, output,
                add_window_pool(lowering, source, adaptive_windows(shape, output), {}));
}

std::optional<Value> add_plane_mean(Lowering& lowering, const Value& value) {
  const Shape shape = dimensions(value.layout);
  if (shape.size() < 3 || shape.size() > 5 || has_rows_of_floats(value)) return std::nullopt;
  Shape pooled{shape[0], shape[1]};
  pooled.resize(shape.size(), 1);
  return add_pool_primitive(lowering, even_pool(shape, pooled),
                            dnnl::algorithm::pooling_avg_exclude_padding, lowering.dense(value),
                            pooled);
}

}  // namespace npu::onednn
