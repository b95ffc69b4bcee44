// SPDX-License-Identifier: Apache-2.0
// Pooling over the last two dimensions and means. oneDNN's primitives run wherever their rules are
// PyTorch's; windows that reach beyond the padding (ceil_mode), own divisors and uneven adaptive
// windows go to a kernel of this backend.
#include <algorithm>

#include "kernels.hpp"
#include "lowering.hpp"

namespace npu::onednn {

namespace {

struct Pool {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation{1, 1};
  bool ceil_mode = false;
};

std::vector<std::int64_t> pair_argument(const Lowering& lowering, const BoundNode& node,
                                        std::string_view name, std::int64_t least) {
  std::vector<std::int64_t> values = node.integers(name);
  if (values.size() == 1) values.push_back(values.front());
  if (values.size() != 2) {
    lowering.invalid("argument '" + std::string(name) + "': expected two values, found " +
                     std::to_string(values.size()));
  }
  for (const std::int64_t value : values) {
    if (value < least || value > INT32_MAX) {
      lowering.refuse(name, "value " + number_text(value) + " is not in " + number_text(least) +
                                ".." + number_text(INT32_MAX));
    }
  }
  return values;
}

Pool read_pool(const Lowering& lowering, const BoundNode& node) {
  Pool pool;
  pool.kernel = pair_argument(lowering, node, "kernel_size", 1);
  pool.stride =
      node.integers("stride").empty() ? pool.kernel : pair_argument(lowering, node, "stride", 1);
  pool.padding = pair_argument(lowering, node, "padding", 0);
  if (node.find("dilation") != nullptr)
    pool.dilation = pair_argument(lowering, node, "dilation", 1);
  pool.ceil_mode = node.boolean("ceil_mode");
  for (std::size_t i = 0; i < 2; ++i) {
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
  return {input[0], input[1], pooled_extent(lowering, pool, 0, input[2]),
          pooled_extent(lowering, pool, 1, input[3])};
}

dnnl::memory::dims dims(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

/// The padding behind that makes oneDNN's rule give the wanted extent; more than PyTorch's with
/// ceil_mode.
std::vector<std::int64_t> padding_behind(const Pool& pool, const Shape& input,
                                         const Shape& output) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < 2; ++i) {
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
  if (pool.dilation == std::vector<std::int64_t>{1, 1}) {
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

Value add_window_average(Lowering& lowering, const Value& value, WindowAverage call) {
  const Value source = lowering.plain(value);
  const Shape input = dimensions(source.layout);
  const Shape output{input[0], input[1], static_cast<std::int64_t>(call.rows.size()),
                     static_cast<std::int64_t>(call.columns.size())};
  call.type = source.type;
  call.planes = input[0] * input[1];
  call.height = input[2];
  call.width = input[3];
  const Value target = lowering.temporary(source.type, plain_layout(output, source.type));
  lowering.add_kernel({source}, target,
                      [call = std::move(call)](std::span<std::byte* const> operands) {
                        call.run(operands[0], operands[1]);
                      });
  return target;
}

/// The [N, C, H, W] operand of a pooling node; a missing batch dimension is added.
Shape batched_shape(const Lowering& lowering, TensorId input) {
  lowering.require_float("self", input);
  Shape shape = lowering.shape(input);
  if (shape.size() != 3 && shape.size() != 4) {
    lowering.refuse("self", "rank " + std::to_string(shape.size()) + " is not 3 or 4");
  }
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  return shape;
}

Value batched_operand(Lowering& lowering, TensorId input, const Shape& shape) {
  if (lowering.shape(input).size() == 3) return lowering.reshaped(lowering.operand(input), shape);
  return lowering.dense(lowering.operand(input));
}

/// The node's result has this [N, C, H, W] shape, or the part behind N for an operand without it.
void check_pooled(const Lowering& lowering, TensorId input, Shape output) {
  if (lowering.shape(input).size() == 3) output.erase(output.begin());
  lowering.check_result(lowering.result(), output, lowering.dtype(input));
}

void define_pooled(Lowering& lowering, TensorId input, Shape output, const Value& value) {
  if (lowering.shape(input).size() == 4) {
    lowering.define_computed(lowering.result(), output, lowering.dtype(input), value);
    return;
  }
  output.erase(output.begin());
  lowering.define_computed(lowering.result(), output, lowering.dtype(input),
                           lowering.reshaped(value, output));
}

/// The average of even, unpadded windows.
Pool even_pool(const Shape& input, const Shape& output) {
  Pool pool;
  pool.kernel = {input[2] / output[2], input[3] / output[3]};
  pool.stride = pool.kernel;
  pool.padding = {0, 0};
  return pool;
}

}  // namespace

void lower_max_pool(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  const Shape shape = batched_shape(lowering, input);
  const Pool pool = read_pool(lowering, node);
  const Shape output = pooled_shape(lowering, pool, shape);
  check_pooled(lowering, input, output);
  const Value source = batched_operand(lowering, input, shape);
  define_pooled(lowering, input, output,
                add_pool_primitive(lowering, pool, dnnl::algorithm::pooling_max, source, output));
}

void lower_average_pool(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  const Shape shape = batched_shape(lowering, input);
  const Pool pool = read_pool(lowering, node);
  const bool count_padding = node.boolean("count_include_pad");
  const std::int64_t divisor =
      node.is_none("divisor_override") ? 0 : node.integer("divisor_override");
  if (!node.is_none("divisor_override") && divisor == 0) {
    lowering.invalid("argument 'divisor_override': 0 is no divisor");
  }
  const Shape output = pooled_shape(lowering, pool, shape);
  check_pooled(lowering, input, output);
  const Value source = batched_operand(lowering, input, shape);

  const bool has_padding = pool.padding != std::vector<std::int64_t>{0, 0};
  const bool reaches_beyond = padding_behind(pool, shape, output) != pool.padding;
  if (divisor == 0 && (!reaches_beyond || !count_padding)) {
    const auto algorithm = has_padding && count_padding
                               ? dnnl::algorithm::pooling_avg_include_padding
                               : dnnl::algorithm::pooling_avg_exclude_padding;
    define_pooled(lowering, input, output,
                  add_pool_primitive(lowering, pool, algorithm, source, output));
    return;
  }
  const auto windows = [&](std::size_t i) {
    std::vector<Window> result;
    const std::int64_t extent = shape[i + 2];
    for (std::int64_t j = 0; j < output[i + 2]; ++j) {
      const std::int64_t start = j * pool.stride[i] - pool.padding[i];
      // The divisor counts padding, but nothing behind it.
      const std::int64_t stop = std::min(start + pool.kernel[i], extent + pool.padding[i]);
      Window window{std::max<std::int64_t>(start, 0), std::min(stop, extent), stop - start};
      if (!count_padding) window.divisor = window.end - window.begin;
      result.push_back(window);
    }
    return result;
  };
  WindowAverage call;
  call.rows = windows(0);
  call.columns = windows(1);
  call.divisor_override = divisor;
  define_pooled(lowering, input, output, add_window_average(lowering, source, std::move(call)));
}

void lower_adaptive_average_pool(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  const Shape shape = batched_shape(lowering, input);
  const auto size = pair_argument(lowering, node, "output_size", 1);
  const Shape output{shape[0], shape[1], size[0], size[1]};
  check_pooled(lowering, input, output);
  const Value source = batched_operand(lowering, input, shape);
  if (shape[2] % size[0] == 0 && shape[3] % size[1] == 0) {
    const auto algorithm = dnnl::algorithm::pooling_avg_exclude_padding;
    define_pooled(
        lowering, input, output,
        add_pool_primitive(lowering, even_pool(shape, output), algorithm, source, output));
    return;
  }
  const auto windows = [&](std::size_t i) {
    std::vector<Window> result;
    const std::int64_t extent = shape[i + 2];
    for (std::int64_t j = 0; j < size[i]; ++j) {
      const std::int64_t begin = j * extent / size[i];
      const std::int64_t end = ((j + 1) * extent + size[i] - 1) / size[i];
      result.push_back({begin, end, end - begin});
    }
    return result;
  };
  WindowAverage call;
  call.rows = windows(0);
  call.columns = windows(1);
  define_pooled(lowering, input, output, add_window_average(lowering, source, std::move(call)));
}

void lower_mean(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "self");
  lowering.require_float("self", input);
  if (node.dtype("dtype") && *node.dtype("dtype") != lowering.dtype(input)) {
    lowering.refuse("dtype", "a dtype other than the operand's is not supported");
  }
  const Shape& shape = lowering.shape(input);
  std::vector<bool> reduced(shape.size(), false);
  std::vector<std::int64_t> dimensions_given;
  if (!node.is_none("dim")) dimensions_given = node.integers("dim");
  for (const std::int64_t dimension : dimensions_given) {
    const std::size_t i = normalize_dimension(lowering, "dim", dimension, shape.size());
    if (i < reduced.size()) reduced[i] = true;
  }
  if (dimensions_given.empty()) reduced.assign(shape.size(), true);
  const bool keep = node.boolean("keepdim");
  Shape output;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!reduced[i]) output.push_back(shape[i]);
    if (reduced[i] && keep) output.push_back(1);
  }
  const auto define = [&](const Value& value) {
    lowering.define_computed(lowering.result(), output, lowering.dtype(input),
                             lowering.reshaped(value, output));
  };

  if (shape.size() == 4 && reduced == std::vector<bool>{false, false, true, true}) {
    const Shape pooled{shape[0], shape[1], 1, 1};
    const Value source = lowering.dense(lowering.operand(input));
    const Value value =
        add_pool_primitive(lowering, even_pool(shape, pooled),
                           dnnl::algorithm::pooling_avg_exclude_padding, source, pooled);
    return define(value);
  }
  // [outer, reduced, inner]: moves the reduced dimensions to the end unless they are neighbours.
  const auto first =
      static_cast<std::size_t>(std::find(reduced.begin(), reduced.end(), true) - reduced.begin());
  const auto count = static_cast<std::size_t>(std::count(reduced.begin(), reduced.end(), true));
  const bool together = std::all_of(reduced.begin() + static_cast<std::ptrdiff_t>(first),
                                    reduced.begin() + static_cast<std::ptrdiff_t>(first + count),
                                    [](bool r) { return r; });
  Value source = lowering.operand(input);
  MiddleMean call;
  if (together) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      (i < first ? call.outer : reduced[i] ? call.count : call.inner) *= shape[i];
    }
    source = lowering.plain(source);
  } else {
    std::vector<int> permutation(shape.size());
    int next_kept = 0;
    int next_reduced = static_cast<int>(shape.size() - count);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      permutation[i] = reduced[i] ? next_reduced++ : next_kept++;
      (reduced[i] ? call.count : call.outer) *= shape[i];
    }
    source.layout = source.layout.permute_axes(permutation);
    source = lowering.plain(source);
  }
  call.type = source.type;
  const Value target = lowering.temporary(source.type, plain_layout(output, source.type));
  lowering.add_kernel({source}, target, [call](std::span<std::byte* const> operands) {
    call.run(operands[0], operands[1]);
  });
  define(target);
}

}  // namespace npu::onednn
