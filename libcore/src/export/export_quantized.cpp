// SPDX-License-Identifier: Apache-2.0
// Quantize and dequantize nodes as ONNX has them. Scales are float32 there, and zero points have
// the type of the integers. PyTorch multiplies by the reciprocal of the scale where ONNX divides,
// which tells apart numbers halfway between two integers alone.
#include <utility>

#include "export/export_rules.hpp"
#include "export/integer_weights.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

struct ScaleNames {
  std::string scale;
  std::string zero;
  OnnxAttributes attributes;
};

std::string zero_point_of(NodeExport& node, std::string_view argument, DType dtype) {
  const auto id = node.args.tensor(argument);
  if (!id) return {};
  const Tensor* known = node.known(*id);
  if (known == nullptr) return node.value_as(*id, dtype);
  return node.onnx.constant("zero_points", integer_tensor(*known, dtype));
}

ScaleNames scales_of(NodeExport& node, DType dtype) {
  const std::string_view op = node.node().op_type;
  if (op.find("_per_channel.") != std::string_view::npos) {
    const std::int64_t axis =
        NodeExport::axis_of(node.args.integer("axis"), node.first_info().shape.size());
    return {node.value_as("scales", DType::kFloat32),
            zero_point_of(node, "zero_points", dtype),
            {{"axis", axis}}};
  }
  if (op.ends_with(".tensor")) {
    const auto scalar = [&](const std::string& name) { return node.emit_reshape(name, {}); };
    return {scalar(node.value_as("scale", DType::kFloat32)),
            scalar(zero_point_of(node, "zero_point", dtype)),
            {}};
  }
  Tensor zero(DType::kInt64, {});
  *zero.as_mutable<std::int64_t>() = node.args.integer("zero_point");
  return {node.scalar(node.args.number("scale"), DType::kFloat32),
          node.onnx.constant("zero_point", integer_tensor(zero, dtype)),
          {}};
}

}  // namespace

void export_quantize(NodeExport& node) {
  const DType dtype = node.result().dtype;
  if (!is_byte(dtype)) NodeExport::refuse("integers of type " + std::string(dtype_name(dtype)));
  if (node.first_info().dtype != DType::kFloat32) NodeExport::refuse("it quantizes no float32");
  const IntegerRange whole = range_of(dtype);
  const IntegerRange asked{node.args.integer("quant_min"), node.args.integer("quant_max")};
  ScaleNames scales = scales_of(node, dtype);
  std::vector<std::string> inputs{node.value(node.first()), scales.scale, scales.zero};
  if (asked == whole) {
    return node.finish("QuantizeLinear", std::move(inputs), std::move(scales.attributes));
  }
  if (asked.least < whole.least || asked.most > whole.most) {
    NodeExport::refuse("a range that its type does not hold");
  }
  const auto bound = [&](std::int64_t value) {
    Tensor tensor(DType::kInt64, {});
    *tensor.as_mutable<std::int64_t>() = value;
    return node.onnx.constant("bound", integer_tensor(tensor, dtype));
  };
  const std::string integers =
      node.emit("QuantizeLinear", std::move(inputs), std::move(scales.attributes));
  node.finish("Clip", {integers, bound(asked.least), bound(asked.most)});
}

void export_dequantize(NodeExport& node) {
  const DType dtype = node.first_info().dtype;
  if (!is_byte(dtype) && dtype != DType::kInt32) {
    NodeExport::refuse("integers of type " + std::string(dtype_name(dtype)));
  }
  if (node.result().dtype != DType::kFloat32) NodeExport::refuse("it does not make float32");
  ScaleNames scales = scales_of(node, dtype);
  std::vector<std::string> inputs{node.value(node.first()), scales.scale};
  if (!scales.zero.empty()) inputs.push_back(scales.zero);
  node.finish("DequantizeLinear", std::move(inputs), std::move(scales.attributes));
}

}  // namespace npu::onnx_export
