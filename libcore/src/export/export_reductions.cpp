// SPDX-License-Identifier: Apache-2.0
// Norms, softmax, reductions, pooling and resizing as ONNX has them.
//
// Windows that begin in the padding at the end, which PyTorch's ceil_mode drops and ONNX counts,
// are avoided by padding at the end as far as the result's own shape asks for.
#include <algorithm>
#include <numeric>
#include <utility>

#include "export/export_rules.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

float eps_of(const NodeExport& node) { return static_cast<float>(node.args.number("eps")); }

/// The scale of a norm, or ones.
std::string scale_of(NodeExport& node, std::int64_t count) {
  const std::string weight = node.optional_value("weight");
  return weight.empty() ? node.filled(count, 1, node.result().dtype) : weight;
}
std::string offset_of(NodeExport& node, std::int64_t count) {
  const std::string bias = node.optional_value("bias");
  return bias.empty() ? node.filled(count, 0, node.result().dtype) : bias;
}

std::int64_t channels_of(const NodeExport& node) {
  if (node.first_info().shape.size() < 2) NodeExport::refuse("an operand without channels");
  return node.first_info().shape[1];
}

struct WindowSizes {
  OnnxInts kernel;
  OnnxInts stride;
  OnnxInts dilation;
  OnnxInts pads;  ///< begins, then ends
};

WindowSizes windows_of(const NodeExport& node) {
  const auto spatial = static_cast<std::size_t>(spatial_rank(node.node().op_type));
  const Shape& in = node.first_info().shape;
  const Shape& out = node.result().shape;
  if (in.size() != spatial + 2) NodeExport::refuse("an operand without a batch");
  WindowSizes windows{node.args.integers("kernel_size"), node.args.integers("stride"),
                      OnnxInts(spatial, 1), node.args.integers("padding")};
  if (windows.stride.empty()) windows.stride = windows.kernel;
  if (node.args.find("dilation") != nullptr) windows.dilation = node.args.integers("dilation");
  for (std::size_t d = 0; d < spatial; ++d) {
    const std::int64_t begin = windows.pads[d];
    const std::int64_t reach =
        (out[d + 2] - 1) * windows.stride[d] + windows.dilation[d] * (windows.kernel[d] - 1) + 1;
    windows.pads.push_back(std::max(begin, reach - in[d + 2] - begin));
  }
  return windows;
}

/// Whether factors that are stated apart (scales_h) are what sizes say.
void require_size_factors(const NodeExport& node) {
  for (const SchemaArgument& argument : node.args.schema().arguments) {
    const std::string_view name = argument.name;
    if (!name.starts_with("scales") || node.args.is_none(name)) continue;
    const std::size_t from_end = name.ends_with("_w") || name == "scales" ? 1
                                 : name.ends_with("_h")                   ? 2
                                                                          : 3;
    const Shape& in = node.first_info().shape;
    const Shape& out = node.result().shape;
    const auto extent = static_cast<double>(in.at(in.size() - from_end));
    if (extent * node.args.number(name) != static_cast<double>(out.at(out.size() - from_end))) {
      NodeExport::refuse("a factor that does not give whole sizes");
    }
  }
}

}  // namespace

void export_batch_norm(NodeExport& node) {
  const std::int64_t channels = channels_of(node);
  if (node.args.boolean("training")) NodeExport::refuse("a batch norm in training");
  node.finish("BatchNormalization",
              {node.value("input"), scale_of(node, channels), offset_of(node, channels),
               node.value("running_mean"), node.value("running_var")},
              {{"epsilon", eps_of(node)}});
}

void export_layer_norm(NodeExport& node) {
  const Shape sizes = node.args.integers("normalized_shape");
  std::string scale = node.optional_value("weight");
  if (scale.empty()) {
    scale = node.emit("Expand", {node.scalar(1, node.result().dtype), node.onnx.integers(sizes)});
  }
  std::vector<std::string> inputs{node.value("input"), scale};
  if (std::string bias = node.optional_value("bias"); !bias.empty()) inputs.push_back(bias);
  node.finish("LayerNormalization", std::move(inputs),
              {{"axis", -static_cast<std::int64_t>(sizes.size())}, {"epsilon", eps_of(node)}});
}

void export_instance_norm(NodeExport& node) {
  const std::int64_t channels = channels_of(node);
  if (!node.args.boolean("use_input_stats")) NodeExport::refuse("an instance norm of fixed means");
  node.finish("InstanceNormalization",
              {node.value("input"), scale_of(node, channels), offset_of(node, channels)},
              {{"epsilon", eps_of(node)}});
}

void export_group_norm(NodeExport& node) {
  // GroupNormalization of this opset has a scale for a group, PyTorch one for a channel.
  const std::int64_t channels = channels_of(node);
  const std::int64_t groups = node.args.integer("num_groups");
  const Shape& shape = node.first_info().shape;
  const DType dtype = node.result().dtype;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) NodeExport::refuse("no elements");
  const std::string grouped = node.emit_reshape(node.value("input"), {shape[0], groups, -1});
  std::string value =
      node.emit("InstanceNormalization",
                {grouped, node.filled(groups, 1, dtype), node.filled(groups, 0, dtype)},
                {{"epsilon", eps_of(node)}});
  value = node.emit_reshape(value, shape);
  Shape column(shape.size() - 1, 1);
  column.front() = channels;
  for (const auto& [argument, op] : {std::pair{"weight", "Mul"}, std::pair{"bias", "Add"}}) {
    const std::string operand = node.optional_value(argument);
    if (!operand.empty()) value = node.emit(op, {value, node.emit_reshape(operand, column)});
  }
  node.finish_as(value);
}

void export_softmax(NodeExport& node) {
  const bool is_log = functional_name(node.node().op_type).find("log") != std::string_view::npos;
  if (node.first_info().shape.empty()) NodeExport::refuse("an operand without dimensions");
  node.finish(is_log ? "LogSoftmax" : "Softmax", {node.value_as(node.first(), node.result().dtype)},
              {{"axis", node.args.integer("dim")}});
}

void export_reduce(NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const std::string op = name == "mean"   ? "ReduceMean"
                         : name == "sum"  ? "ReduceSum"
                         : name == "amax" ? "ReduceMax"
                                          : "ReduceMin";
  const bool has_dims = node.args.find("dim") != nullptr;
  OnnxInts axes;
  if (has_dims && !node.args.is_none("dim")) axes = node.args.integers("dim");
  if (axes.empty()) {
    axes.resize(node.first_info().shape.size());
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
  }
  const bool keeps = has_dims && node.args.boolean("keepdim");
  node.finish(op, {node.value_as(node.first(), node.result().dtype), node.onnx.integers(axes)},
              {{"keepdims", std::int64_t{keeps ? 1 : 0}}});
}

void export_max_pool(NodeExport& node) {
  const WindowSizes windows = windows_of(node);
  node.finish("MaxPool", {node.value(node.first())},
              {{"dilations", windows.dilation},
               {"kernel_shape", windows.kernel},
               {"pads", windows.pads},
               {"strides", windows.stride}});
}

void export_average_pool(NodeExport& node) {
  const WindowSizes windows = windows_of(node);
  const OnnxInts stated = node.args.integers("padding");
  const bool counts = node.args.boolean("count_include_pad");
  const bool is_padded =
      std::any_of(stated.begin(), stated.end(), [](std::int64_t each) { return each != 0; });
  if (!node.args.is_none("divisor_override")) NodeExport::refuse("a divisor of its own");
  if (counts && is_padded && node.args.boolean("ceil_mode")) {
    NodeExport::refuse("padding that counts, with ceil_mode");
  }
  node.finish("AveragePool", {node.value(node.first())},
              {{"count_include_pad", std::int64_t{counts && is_padded ? 1 : 0}},
               {"kernel_shape", windows.kernel},
               {"pads", windows.pads},
               {"strides", windows.stride}});
}

void export_adaptive_pool(NodeExport& node) {
  const auto spatial = static_cast<std::size_t>(spatial_rank(node.node().op_type));
  const Shape& in = node.first_info().shape;
  const Shape& out = node.result().shape;
  if (in.size() != spatial + 2) NodeExport::refuse("an operand without a batch");
  if (in == out) return node.finish_as(node.value(node.first()));
  if (std::all_of(out.begin() + 2, out.end(), [](std::int64_t each) { return each == 1; })) {
    return node.finish("GlobalAveragePool", {node.value(node.first())});
  }
  OnnxInts kernel;
  for (std::size_t d = 2; d < in.size(); ++d) {
    if (out[d] == 0 || in[d] % out[d] != 0) NodeExport::refuse("windows of several sizes");
    kernel.push_back(in[d] / out[d]);
  }
  node.finish("AveragePool", {node.value(node.first())},
              {{"kernel_shape", kernel}, {"strides", kernel}});
}

void export_resize(NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const bool is_nearest = name.starts_with("upsample_nearest");
  const bool is_cubic = name.starts_with("upsample_bicubic");
  const bool aligns = !is_nearest && node.args.boolean("align_corners");
  const BoundArgument* factors = node.args.find("scale_factors");
  const bool has_factors = factors != nullptr && factors->kind == BoundArgument::Kind::kValue &&
                           factors->value.is_array();
  OnnxAttributes attributes{
      {"mode", std::string(is_nearest ? "nearest"
                           : is_cubic ? "cubic"
                                      : "linear")},
      {"coordinate_transformation_mode", std::string(is_nearest ? "asymmetric"
                                                     : aligns   ? "align_corners"
                                                                : "half_pixel")}};
  if (is_nearest) attributes.push_back({"nearest_mode", std::string("floor")});
  if (is_cubic) attributes.push_back({"cubic_coeff_a", -0.75F});
  if (!has_factors) {
    require_size_factors(node);
    return node.finish("Resize",
                       {node.value(node.first()), "", "", node.onnx.integers(node.result().shape)},
                       std::move(attributes));
  }
  Tensor scales(DType::kFloat32, {static_cast<std::int64_t>(factors->value.size()) + 2});
  scales.as_mutable<float>()[0] = scales.as_mutable<float>()[1] = 1;
  for (std::size_t i = 0; i < factors->value.size(); ++i) {
    scales.as_mutable<float>()[i + 2] =
        static_cast<float>(json_number(factors->value[i]).value_or(1));
  }
  node.finish("Resize", {node.value(node.first()), "", node.onnx.constant("scales", scales)},
              std::move(attributes));
}

void export_grid_sample(NodeExport& node) {
  constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const std::int64_t mode = node.args.integer("interpolation_mode");
  const std::int64_t padding = node.args.integer("padding_mode");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2) NodeExport::refuse("an unknown mode");
  node.finish("GridSample", {node.value("input"), node.value("grid")},
              {{"align_corners", std::int64_t{node.args.boolean("align_corners") ? 1 : 0}},
               {"mode", std::string(kModes[mode])},
               {"padding_mode", std::string(kPaddings[padding])}});
}

}  // namespace npu::onnx_export
