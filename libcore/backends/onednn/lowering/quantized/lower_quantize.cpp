// SPDX-License-Identifier: Apache-2.0
// Quantization and dequantization as nodes of their own: one pass over the tensor in the layout
// that it has. A dequantization is put off until something reads its result as floats; what reads
// it as quantized numbers (lower_quantized_group.cpp) needs no float tensor.
#include <algorithm>
#include <cmath>

#include "lowering/quantized/quantized.hpp"
#include "lowering/quantized/quantized_op.hpp"

namespace npu::onednn {

namespace {

/// A vector of floats from a tensor of numbers.
Value float_vector(Lowering& lowering, TensorId tensor) {
  const Value numbers = lowering.plain(lowering.stored(tensor));
  if (numbers.type == DType::kFloat32) return numbers;
  if (!Cast::supports(numbers.type)) lowering.refuse("", "scales or zero points of this dtype");
  const Layout layout = plain_layout(dimensions(numbers.layout), DType::kFloat32);
  const Value target = lowering.temporary(DType::kFloat32, layout);
  lowering.add_kernel({numbers}, target, Cast{numbers.type, DType::kFloat32, span_elements(layout)},
                      KernelKind::kReorder);
  return target;
}

Value zeros(Lowering& lowering, std::int64_t count) {
  return lowering.constant(DType::kFloat32, {count},
                           std::vector<std::byte>(static_cast<std::size_t>(count) * sizeof(float)));
}

std::size_t channel_axis(const Lowering& lowering, const BoundNode& node, const Shape& shape) {
  const std::size_t axis =
      normalize_dimension(lowering, "axis", node.integer("axis"), shape.size());
  for (const char* name : {"scales", "zero_points"}) {
    const auto tensor = node.tensor(name);
    if (tensor && lowering.shape(*tensor) != Shape{shape[axis]}) {
      lowering.invalid("argument '" + std::string(name) + "': expected shape [" +
                       number_text(shape[axis]) + "], found " +
                       shape_text(lowering.shape(*tensor)));
    }
  }
  return axis;
}

/// [outer, channels, inner] around a dimension of a row-major tensor.
template <typename Call>
void set_channels(Call& call, const Shape& shape, std::size_t axis) {
  call.channels = shape[axis];
  for (std::size_t i = 0; i < axis; ++i) call.outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) call.inner *= shape[i];
}

struct Parameters {
  Value factors;
  Value zeros;
};

Parameters channel_parameters(Lowering& lowering, const std::optional<TensorId>& scales,
                              const std::optional<TensorId>& zero_points, std::int64_t channels) {
  return {float_vector(lowering, *scales),
          zero_points ? float_vector(lowering, *zero_points) : zeros(lowering, channels)};
}

/// The reciprocals of a vector.
Value reciprocals(Lowering& lowering, const Value& vector) {
  const Value target = lowering.temporary(DType::kFloat32, vector.layout);
  Elementwise call;
  call.function = Elementwise::Function::kReciprocal;
  call.type = DType::kFloat32;
  call.count = span_elements(vector.layout);
  lowering.add_kernel({vector}, target, call, KernelKind::kReorder);
  return target;
}

/// An argument of a conversion that is not known before the model runs.
std::optional<TensorId> computed_argument(const Lowering& lowering, const BoundNode& node,
                                          std::string_view name) {
  const auto tensor = node.tensor(name);
  if (!tensor || lowering.known_numbers(*tensor)) return std::nullopt;
  const Shape& shape = lowering.shape(*tensor);
  const bool is_one =
      std::all_of(shape.begin(), shape.end(), [](auto extent) { return extent == 1; });
  return is_one ? tensor : std::nullopt;
}

/// The factor and the zero point of a whole tensor, known or computed.
Parameters tensor_parameters(Lowering& lowering, const BoundNode& node, bool divides) {
  Parameters parameters{};
  if (const auto scale = computed_argument(lowering, node, "scale")) {
    parameters.factors = float_vector(lowering, *scale);
    if (!divides) parameters.factors = reciprocals(lowering, parameters.factors);
  } else {
    const double number = conversion_number(lowering, node, "scale");
    parameters.factors = lowering.constant(static_cast<float>(divides ? number : 1.0 / number));
  }
  const auto zero = computed_argument(lowering, node, "zero_point");
  parameters.zeros =
      zero
          ? float_vector(lowering, *zero)
          : lowering.constant(static_cast<float>(conversion_integer(lowering, node, "zero_point")));
  return parameters;
}

}  // namespace

double conversion_number(const Lowering& lowering, const BoundNode& node, std::string_view name) {
  const auto tensor = node.tensor(name);
  if (!tensor) return node.number(name);
  const auto numbers = lowering.known_numbers(*tensor);
  if (!numbers || numbers->size() != 1) {
    lowering.refuse(name, "only a constant of one element is supported");
  }
  return numbers->front();
}

std::int64_t conversion_integer(const Lowering& lowering, const BoundNode& node,
                                std::string_view name) {
  if (!node.tensor(name)) return node.integer(name);
  const double number = conversion_number(lowering, node, name);
  if (number != std::floor(number) || std::abs(number) > double{INT32_MAX}) {
    lowering.refuse(name, "only an integer of 32 bits is supported");
  }
  return static_cast<std::int64_t>(number);
}

Value without_gaps(Lowering& lowering, const Value& value) {
  return has_padding(value.layout) ? lowering.plain(value) : lowering.dense(value);
}

Value add_quantize(Lowering& lowering, const BoundNode& node, const Value& floats) {
  const bool by_channel = node.find("scales") != nullptr;
  Quantize call;
  call.to = node.dtype("dtype").value_or(DType::kUInt8);
  call.divides = node.boolean("divide_by_scale");
  call.least = conversion_integer(lowering, node, "quant_min");
  call.most = conversion_integer(lowering, node, "quant_max");
  if (call.to != DType::kUInt8 && call.to != DType::kInt8 && call.to != DType::kInt16) {
    lowering.refuse("dtype", "only uint8, int8 and int16 are supported");
  }
  const bool is_reordered = is_byte(call.to);  // int16 in blocks of channels is not
  const Value source =
      by_channel || !is_reordered ? lowering.plain(floats) : without_gaps(lowering, floats);
  const Value target = lowering.temporary(call.to, with_type(source.layout, call.to));
  if (by_channel) {
    const Shape& shape = dimensions(source.layout);
    const std::size_t axis = channel_axis(lowering, node, shape);
    set_channels(call, shape, axis);
    Parameters parameters =
        channel_parameters(lowering, tensor_argument(lowering, node, "scales"),
                           tensor_argument(lowering, node, "zero_points"), shape[axis]);
    if (!call.divides) parameters.factors = reciprocals(lowering, parameters.factors);
    lowering.add_kernel({source, parameters.factors, parameters.zeros}, target, call);
    return target;
  }
  call.inner = span_elements(source.layout);
  const Parameters parameters = tensor_parameters(lowering, node, call.divides);
  lowering.add_kernel({source, parameters.factors, parameters.zeros}, target, call);
  return target;
}

namespace {

/// The float tensor that a dequantization gives.
Value add_dequantize(Lowering& lowering, const Dequantization& from) {
  Dequantize call;
  call.from = from.type;
  const Value stored = lowering.stored(from.source);
  const Value source = from.scales ? lowering.plain(stored) : without_gaps(lowering, stored);
  Parameters parameters{};
  if (from.scales) {
    const Shape shape = dimensions(source.layout);
    const auto axis = static_cast<std::size_t>(from.axis);
    set_channels(call, shape, axis);
    parameters = channel_parameters(lowering, from.scales, from.zero_points, shape[axis]);
  } else {
    call.inner = span_elements(source.layout);
    parameters = {lowering.constant(static_cast<float>(from.scale)),
                  lowering.constant(static_cast<float>(from.zero_point))};
  }
  const Value target =
      lowering.temporary(DType::kFloat32, with_type(source.layout, DType::kFloat32));
  lowering.add_kernel({source, parameters.factors, parameters.zeros}, target, call);
  return target;
}

}  // namespace

void lower_quantize(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  if (lowering.dtype(input) != DType::kFloat32) {
    lowering.refuse("input", "dtype " + std::string(dtype_name(lowering.dtype(input))) +
                                 " is not supported; use float32");
  }
  const Value floats = lowering.operand(input, DType::kFloat32);
  const Value numbers = add_quantize(lowering, node, floats);
  lowering.define_moved(lowering.result(), lowering.shape(input), numbers.type, numbers);
}

void lower_dequantize(Lowering& lowering, const BoundNode& node) {
  const TensorId input = tensor_argument(lowering, node, "input");
  Dequantization from;
  from.node = lowering.graph().tensor(lowering.result()).producer;
  from.source = input;
  from.type = lowering.dtype(input);
  if (from.type != DType::kUInt8 && from.type != DType::kInt8 && from.type != DType::kInt16 &&
      from.type != DType::kInt32) {
    lowering.refuse("input", "dtype " + std::string(dtype_name(from.type)) + " is not supported");
  }
  if (node.dtype("dtype") != from.type) {
    lowering.invalid("argument 'dtype' is not that of the operand");
  }
  if (node.dtype("out_dtype").value_or(DType::kFloat32) != DType::kFloat32) {
    lowering.refuse("out_dtype", "only float32 is supported");
  }
  if (node.find("scales") != nullptr) {
    from.axis = static_cast<std::int64_t>(channel_axis(lowering, node, lowering.shape(input)));
    from.scales = tensor_argument(lowering, node, "scales");
    if (!node.is_none("zero_points")) from.zero_points = node.tensor("zero_points");
  } else {
    from.scale = conversion_number(lowering, node, "scale");
    from.zero_point = conversion_integer(lowering, node, "zero_point");
  }
  lowering.check_result(lowering.result(), lowering.shape(input), DType::kFloat32);
  lowering.define_dequantized(lowering.result(), from, add_dequantize);
}

}  // namespace npu::onednn
