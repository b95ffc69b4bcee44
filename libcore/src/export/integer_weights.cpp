// SPDX-License-Identifier: Apache-2.0
// Constants of products on integers as other programs expect them.
//
// The document keeps a batch norm behind a convolution of integers, which npu-compile takes into
// the scales of the weight. A peer would compute such a convolution in float32, so it is done here
// as well: a factor of a channel multiplies its scale, a negative one turns the integers' signs,
// which the symmetric range of weights allows, and offsets go into the bias. Biases are integers
// with the scale of the sums, since some programs take no others. O(elements of the constants).
#include "export/integer_weights.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

constexpr std::string_view kPerTensor = "quantized_decomposed.dequantize_per_tensor.default";
constexpr std::string_view kPerChannel = "quantized_decomposed.dequantize_per_channel.default";

/// The node that makes a tensor, bound, if it is of this op.
std::optional<BoundNode> producer_of(const Graph& graph, TensorId id, std::string_view op_type) {
  const TensorInfo& tensor = graph.tensor(id);
  if (!tensor.producer.valid()) return std::nullopt;
  const Node& node = graph.node(tensor.producer);
  if (node.op_type != op_type) return std::nullopt;
  return BoundNode(graph, node, find_op(op_type)->schema);
}

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<std::size_t>(tensor.element_count()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = tensor.value_as_double(static_cast<std::int64_t>(i));
  }
  return numbers;
}

bool is_zero(const Tensor& tensor) {
  const std::vector<double> numbers = numbers_of(tensor);
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return number == 0; });
}

/// Turns the signs of the channels whose factor is negative, and clears those whose scale is 0.
Tensor signed_integers(const Tensor& integers, std::int64_t axis,
                       const std::vector<double>& factors) {
  Tensor result(integers.dtype(), integers.shape());
  const Shape& shape = integers.shape();
  std::int64_t inner = 1;
  for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  const auto channels = static_cast<std::int64_t>(factors.size());
  const auto* from = integers.as<std::int8_t>();
  auto* to = result.as_mutable<std::int8_t>();
  for (std::int64_t i = 0; i < integers.element_count(); ++i) {
    const double factor = factors[static_cast<std::size_t>(i / inner % channels)];
    to[i] = factor == 0 ? std::int8_t{0}
                        : static_cast<std::int8_t>(factor < 0 ? std::min(127, -from[i]) : from[i]);
  }
  return result;
}

/// Biases as int32; nothing if one does not fit.
std::optional<Tensor> integer_biases(const std::vector<double>& biases,
                                     const std::vector<float>& scales) {
  Tensor result(DType::kInt32, {static_cast<std::int64_t>(biases.size())});
  for (std::size_t i = 0; i < biases.size(); ++i) {
    const double integer = std::nearbyint(biases[i] / static_cast<double>(scales[i]));
    if (!(std::abs(integer) < 0x1p31)) return std::nullopt;
    result.as_mutable<std::int32_t>()[i] = static_cast<std::int32_t>(integer);
  }
  return result;
}

Tensor float_tensor(const std::vector<float>& numbers) {
  Tensor tensor(DType::kFloat32, {static_cast<std::int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), tensor.as_mutable<float>());
  return tensor;
}

std::string dequantize(NodeExport& node, const std::string& integers, const Tensor& scales,
                       DType dtype, std::int64_t axis) {
  const std::string scale = node.onnx.constant(node.result().name + "_scales", scales);
  const std::string zero = node.onnx.constant("zeros", Tensor(dtype, scales.shape()));
  return node.emit("DequantizeLinear", {integers, scale, zero}, {{"axis", axis}});
}

std::string write_biases(NodeExport& node, TensorId operand, const std::vector<double>& biases,
                         const std::vector<float>& scales) {
  const std::string name = node.result().name + "_bias";
  if (const auto source = producer_of(node.graph, operand, kPerTensor)) {
    const auto scale = static_cast<double>(static_cast<float>(source->number("scale")));
    std::vector<float> of_sums(scales.size());
    for (std::size_t i = 0; i < scales.size(); ++i) {
      of_sums[i] = static_cast<float>(scale * static_cast<double>(scales[i]));
    }
    const bool has_scales = std::all_of(of_sums.begin(), of_sums.end(), [](float each) {
      return each >= std::numeric_limits<float>::min();
    });
    if (const auto integers = has_scales ? integer_biases(biases, of_sums) : std::nullopt) {
      return dequantize(node, node.onnx.constant(name, *integers), float_tensor(of_sums),
                        DType::kInt32, 0);
    }
  }
  return node.onnx.constant(name, float_tensor({biases.begin(), biases.end()}));
}

}  // namespace

std::optional<ChannelIntegers> channel_integers(const NodeExport& node, TensorId weight,
                                                std::int64_t axis) {
  const Shape& shape = node.graph.tensor(weight).shape;
  const auto has_form = [&](TensorId integers) {
    const Tensor* known = node.known(integers);
    return known != nullptr && known->dtype() == DType::kInt8;
  };
  if (const auto whole = producer_of(node.graph, weight, kPerTensor)) {
    const TensorId integers = *whole->tensor("input");
    if (!has_form(integers) || whole->integer("zero_point") != 0) return std::nullopt;
    const auto channels = static_cast<std::size_t>(shape[static_cast<std::size_t>(axis)]);
    return ChannelIntegers{integers, axis, std::vector<double>(channels, whole->number("scale"))};
  }
  const auto source = producer_of(node.graph, weight, kPerChannel);
  if (!source) return std::nullopt;
  const TensorId integers = *source->tensor("input");
  const auto scales = source->tensor("scales");
  if (!has_form(integers) || !scales || node.known(*scales) == nullptr) return std::nullopt;
  const auto zeros = source->tensor("zero_points");
  if (zeros && (node.known(*zeros) == nullptr || !is_zero(*node.known(*zeros)))) {
    return std::nullopt;
  }
  return ChannelIntegers{integers, NodeExport::axis_of(source->integer("axis"), shape.size()),
                         numbers_of(*node.known(*scales))};
}

std::optional<ChannelNorm> norm_behind(const NodeExport& node) {
  const Graph& graph = node.graph;
  const TensorId made = node.node().outputs.front();
  const std::vector<NodeId>& readers = graph.tensor(made).consumers;
  const std::vector<TensorId>& results = graph.graph_outputs();
  if (readers.size() != 1 || std::find(results.begin(), results.end(), made) != results.end()) {
    return std::nullopt;
  }
  const Node& norm = graph.node(readers.front());
  if (norm.op_type != "aten.batch_norm.default") return std::nullopt;
  const BoundNode args(graph, norm, find_op(norm.op_type)->schema);
  if (args.boolean("training") || args.tensor("input") != made || !args.tensor("running_mean") ||
      !args.tensor("running_var")) {
    return std::nullopt;
  }
  const auto channels = static_cast<std::size_t>(graph.tensor(made).shape.at(1));
  const auto numbers = [&](std::string_view argument, double otherwise) {
    const auto id = args.tensor(argument);
    if (!id) return std::vector<double>(channels, otherwise);
    const Tensor* known = node.known(*id);
    return known == nullptr ? std::vector<double>() : numbers_of(*known);
  };
  const auto weight = numbers("weight", 1);
  const auto bias = numbers("bias", 0);
  const auto mean = numbers("running_mean", 0);
  const auto variance = numbers("running_var", 1);
  for (const auto* each : {&weight, &bias, &mean, &variance}) {
    if (each->size() != channels) return std::nullopt;
  }
  ChannelNorm result{readers.front(), {}, {}};
  for (std::size_t c = 0; c < channels; ++c) {
    const double factor = weight[c] / std::sqrt(variance[c] + args.number("eps"));
    result.factors.push_back(factor);
    result.offsets.push_back(bias[c] - mean[c] * factor);
  }
  return result;
}

ProductConstants integer_product(NodeExport& node, const ChannelIntegers& weight, TensorId operand,
                                 const ChannelNorm* norm, bool transpose) {
  std::vector<float> scales;
  std::vector<double> factors(weight.scales.size(), 1);
  if (norm != nullptr) factors = norm->factors;
  for (std::size_t c = 0; c < factors.size(); ++c) {
    const auto scale = static_cast<float>(weight.scales[c] * std::abs(factors[c]));
    if (!(scale >= std::numeric_limits<float>::min())) factors[c] = 0;
    scales.push_back(factors[c] == 0 ? 1 : scale);
  }
  const bool is_plain = std::all_of(factors.begin(), factors.end(), [](double f) { return f > 0; });
  std::string integers;
  if (is_plain && !transpose) {
    integers = node.value(weight.integers);
  } else {
    Tensor changed = *node.known(weight.integers);
    if (!is_plain) changed = signed_integers(changed, weight.axis, factors);
    if (transpose) changed = transposed_matrix(changed);
    integers = node.onnx.constant(node.graph.tensor(weight.integers).name + "_of_file", changed);
  }
  const std::int64_t axis = transpose ? 1 - weight.axis : weight.axis;
  ProductConstants result;
  result.weight = dequantize(node, integers, float_tensor(scales), DType::kInt8, axis);
  const auto bias = node.args.tensor("bias");
  if (!bias && norm == nullptr) return result;
  std::vector<double> biases(scales.size(), 0);
  if (bias) {
    if (node.known(*bias) == nullptr) NodeExport::refuse("its bias is no constant");
    biases = numbers_of(*node.known(*bias));
  }
  if (norm != nullptr) {
    for (std::size_t c = 0; c < biases.size(); ++c) {
      biases[c] = biases[c] * norm->factors[c] + norm->offsets[c];
    }
  }
  result.bias = write_biases(node, operand, biases, scales);
  return result;
}

Tensor integer_tensor(const Tensor& values, DType dtype) {
  Tensor result(dtype, values.shape());
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    const auto value = static_cast<std::int64_t>(values.value_as_double(i));
    if (dtype == DType::kInt8)
      result.as_mutable<std::int8_t>()[i] = static_cast<std::int8_t>(value);
    if (dtype == DType::kUInt8) {
      result.as_mutable<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
    }
    if (dtype == DType::kInt32) {
      result.as_mutable<std::int32_t>()[i] = static_cast<std::int32_t>(value);
    }
  }
  return result;
}

Tensor transposed_matrix(const Tensor& matrix) {
  const std::int64_t rows = matrix.shape().at(0);
  const std::int64_t columns = matrix.shape().at(1);
  const std::size_t size = dtype_size(matrix.dtype());
  Tensor result(matrix.dtype(), {columns, rows});
  constexpr std::int64_t kTile = 64;  // both sides of a tile stay in the first cache
  const std::byte* from = matrix.data();
  std::byte* to = result.mutable_data();
  for (std::int64_t top = 0; top < rows; top += kTile) {
    for (std::int64_t left = 0; left < columns; left += kTile) {
      for (std::int64_t r = top; r < std::min(top + kTile, rows); ++r) {
        for (std::int64_t c = left; c < std::min(left + kTile, columns); ++c) {
          std::memcpy(to + static_cast<std::size_t>(c * rows + r) * size,
                      from + static_cast<std::size_t>(r * columns + c) * size, size);
        }
      }
    }
  }
  return result;
}

}  // namespace npu::onnx_export
