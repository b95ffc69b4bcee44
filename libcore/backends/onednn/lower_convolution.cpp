// SPDX-License-Identifier: Apache-2.0
// Convolutions in one and two dimensions. Source, weights and result are left for oneDNN to lay
// out; what is not in that layout yet is reordered, weights once at load.
#include "lowering.hpp"

namespace npu::onednn {

namespace {

struct Spatial {
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> pad_begin;
  std::vector<std::int64_t> pad_end;
  std::vector<std::int64_t> dilation;  ///< as PyTorch counts: 1 is none
};

/// A list argument with one value for every spatial dimension.
std::vector<std::int64_t> spatial_argument(const Lowering& lowering, const BoundNode& node,
                                           std::string_view name, std::size_t rank,
                                           std::int64_t least) {
  std::vector<std::int64_t> values = node.integers(name);
  if (values.size() == 1) values.assign(rank, values.front());
  if (values.size() != rank) {
    lowering.invalid("argument '" + std::string(name) + "' has " + std::to_string(values.size()) +
                     " values for " + std::to_string(rank) + " dimensions");
  }
  for (const std::int64_t value : values) {
    if (value < least || value > INT32_MAX) {
      lowering.refuse(name, "value " + number_text(value) + " is not in " + number_text(least) +
                                ".." + number_text(INT32_MAX));
    }
  }
  return values;
}

/// padding='same' or 'valid': 'same' puts the odd element behind.
void pad_by_name(const Lowering& lowering, const std::string& padding, const Shape& kernel,
                 Spatial& spatial) {
  spatial.pad_begin.assign(kernel.size(), 0);
  spatial.pad_end.assign(kernel.size(), 0);
  if (padding == "valid") return;
  if (padding != "same") {
    lowering.invalid("argument 'padding': expected 'same' or 'valid', found '" + padding + "'");
  }
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    if (spatial.stride[i] != 1) lowering.invalid("argument 'padding': 'same' needs stride 1");
    const std::int64_t total = spatial.dilation[i] * (kernel[i] - 1);
    spatial.pad_begin[i] = total / 2;
    spatial.pad_end[i] = total - total / 2;
  }
}

Shape result_shape(const Lowering& lowering, const Shape& input, const Shape& weight,
                   const Spatial& spatial) {
  Shape result{input[0], weight[0]};
  for (std::size_t i = 0; i < spatial.stride.size(); ++i) {
    const std::int64_t extent = spatial.dilation[i] * (weight[i + 2] - 1) + 1;
    const std::int64_t padded = input[i + 2] + spatial.pad_begin[i] + spatial.pad_end[i];
    if (padded < extent) {
      lowering.invalid("the kernel spans " + number_text(extent) +
                       " elements, but the padded input has " + number_text(padded));
    }
    result.push_back((padded - extent) / spatial.stride[i] + 1);
  }
  return result;
}

dnnl::memory::dims dims(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

void lower_convolution(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  const TensorId weight = tensor_argument(lowering, node, "weight");
  const auto bias = node.tensor("bias");
  const Shape& input_shape = lowering.shape(input);
  const Shape& weight_shape = lowering.shape(weight);
  const std::size_t rank = weight_shape.size();
  const std::string& op = node.node().op_type;
  for (const auto& [name, tensor] : {std::pair{"input", input}, std::pair{"weight", weight}}) {
    lowering.require_float(name, tensor);
    if (lowering.dtype(tensor) != lowering.dtype(input)) {
      lowering.refuse(name, "its dtype differs from the input's");
    }
  }
  const bool fixed_rank = op.starts_with("aten.conv1d") || op.starts_with("aten.conv2d");
  const std::size_t expected_rank = op.starts_with("aten.conv1d") ? 3 : 4;
  if ((fixed_rank && rank != expected_rank) || rank < 3 || rank > 4) {
    lowering.refuse("weight", "rank " + std::to_string(rank) + " is not supported");
  }
  if (input_shape.size() != rank) {
    lowering.refuse("input", "rank " + std::to_string(input_shape.size()) +
                                 " is not supported; a batch dimension is needed");
  }
  if (op == "aten.convolution.default" && node.boolean("transposed")) {
    lowering.refuse("transposed", "transposed convolution is not supported");
  }

  Spatial spatial;
  spatial.stride = spatial_argument(lowering, node, "stride", rank - 2, 1);
  spatial.dilation = spatial_argument(lowering, node, "dilation", rank - 2, 1);
  if (op.ends_with(".padding")) {
    const Shape kernel(weight_shape.begin() + 2, weight_shape.end());
    pad_by_name(lowering, node.string("padding"), kernel, spatial);
  } else {
    spatial.pad_begin = spatial_argument(lowering, node, "padding", rank - 2, 0);
    spatial.pad_end = spatial.pad_begin;
  }
  const std::int64_t groups = node.integer("groups");
  if (groups < 1 || weight_shape[0] % groups != 0 || input_shape[1] != weight_shape[1] * groups) {
    lowering.invalid("argument 'groups': " + number_text(groups) +
                     " groups do not fit an input of " + shape_text(input_shape) +
                     " and a weight of " + shape_text(weight_shape));
  }
  if (bias && lowering.shape(*bias) != Shape{weight_shape[0]}) {
    lowering.invalid("argument 'bias': expected shape [" + number_text(weight_shape[0]) +
                     "], found " + shape_text(lowering.shape(*bias)));
  }

  const DType type = lowering.compute_type();
  const Shape output_shape = result_shape(lowering, input_shape, weight_shape, spatial);
  lowering.check_result(lowering.result(), output_shape, lowering.dtype(input));
  Shape grouped = weight_shape;
  if (groups > 1) {
    grouped[0] /= groups;
    grouped.insert(grouped.begin(), groups);
  }
  dnnl::memory::dims dilation = dims(spatial.dilation);
  for (auto& value : dilation) value -= 1;  // oneDNN counts the gaps
  const Layout bias_layout = bias ? plain_layout({weight_shape[0]}, DType::kFloat32) : Layout();
  const auto describe = [&] {
    using Forward = dnnl::convolution_forward;
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const Layout source = any_layout(input_shape, type);
    const Layout weights = any_layout(grouped, type);
    const Layout target = any_layout(output_shape, type);
    if (bias) {
      return Forward::desc(kind, algorithm, source, weights, bias_layout, target,
                           dims(spatial.stride), dilation, dims(spatial.pad_begin),
                           dims(spatial.pad_end));
    }
    return Forward::desc(kind, algorithm, source, weights, target, dims(spatial.stride), dilation,
                         dims(spatial.pad_begin), dims(spatial.pad_end));
  };
  const dnnl::convolution_forward::primitive_desc primitive(describe(), lowering.attributes(),
                                                            lowering.engine());

  const Value source = lowering.in_layout(lowering.operand(input), primitive.src_desc());
  const Value weights = lowering.in_layout(lowering.reshaped(lowering.operand(weight), grouped),
                                           primitive.weights_desc());
  const Value target = lowering.temporary(type, primitive.dst_desc());
  std::vector<PrimitiveOperand> reads{{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}};
  if (bias) {
    lowering.require_float("bias", *bias);
    reads.push_back({DNNL_ARG_BIAS, lowering.plain(lowering.operand(*bias, DType::kFloat32))});
  }
  lowering.add_primitive(primitive, reads, target);
  lowering.define_computed(lowering.result(), output_shape, lowering.dtype(input), target);
}

}  // namespace npu::onednn
