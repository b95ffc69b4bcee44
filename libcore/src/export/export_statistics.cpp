// SPDX-License-Identifier: Apache-2.0
// Variances, extremes with their places, tests of all elements, and sums along an axis as ONNX has
// them.
#include <numeric>
#include <utility>

#include "export/export_rules.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

/// The dimensions that are reduced: those of `dim`, or all.
OnnxInts reduced_axes(const NodeExport& node) {
  const std::size_t rank = node.first_info().shape.size();
  OnnxInts axes;
  if (node.args.find("dim") != nullptr && !node.args.is_none("dim")) {
    axes = node.args.integers("dim");
  }
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
  }
  for (std::int64_t& axis : axes) axis = NodeExport::axis_of(axis, rank);
  return axes;
}

std::int64_t keeps_dims(const NodeExport& node) {
  return node.args.find("keepdim") != nullptr && node.args.boolean("keepdim") ? 1 : 0;
}

/// What is taken from the number of elements before the sum of squares is divided by it.
double correction_of(const NodeExport& node) {
  if (node.args.find("unbiased") != nullptr) return node.args.boolean("unbiased") ? 1 : 0;
  return node.args.is_none("correction") ? 1 : node.args.number("correction");
}

}  // namespace

void export_variance(NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const DType dtype = node.result().dtype;
  const Shape& shape = node.first_info().shape;
  const OnnxInts axes = reduced_axes(node);
  double count = 1;
  for (const std::int64_t axis : axes) {
    count *= static_cast<double>(shape.at(static_cast<std::size_t>(axis)));
  }
  const double divisor = count - correction_of(node);
  if (divisor <= 0) NodeExport::refuse("no elements to divide by");
  const std::string value = node.value(node.first());
  const std::string places = node.onnx.integers(axes);
  const std::int64_t keeps = keeps_dims(node);
  const std::string mean =
      node.emit("ReduceMean", {value, places}, {{"keepdims", std::int64_t{1}}});
  const std::string centred = node.emit("Sub", {value, mean});
  std::string result = node.emit("ReduceMean", {node.emit("Mul", {centred, centred}), places},
                                 {{"keepdims", keeps}});
  if (divisor != count) {
    result = node.emit("Mul", {result, node.scalar(count / divisor, dtype)});
  }
  if (name.starts_with("std")) result = node.emit("Sqrt", {result});
  if (!name.ends_with("_mean")) return node.finish_as(result);
  node.finish_output(0, result);
  node.finish_output(
      1, keeps != 0 ? mean : node.emit("ReduceMean", {value, places}, {{"keepdims", keeps}}));
}

void export_any_all(NodeExport& node) {
  const bool is_any = functional_name(node.node().op_type) == "any";
  const std::string truth = node.value_as(node.first(), DType::kBool);
  const bool has_dims = node.args.find("dim") != nullptr && !node.args.is_none("dim");
  if (has_dims && node.args.integers("dim").empty()) {
    // Here, and for no other op, an empty list means that nothing is reduced.
    return node.finish_as(
        node.result().dtype == DType::kBool ? truth : node.emit_cast(truth, node.result().dtype));
  }
  const std::string numbers = node.emit_cast(truth, DType::kInt32);
  const std::string reduced = node.emit(is_any ? "ReduceMax" : "ReduceMin",
                                        {numbers, node.onnx.integers(reduced_axes(node))},
                                        {{"keepdims", keeps_dims(node)}});
  node.finish_as(node.emit_cast(reduced, node.result().dtype));
}

void export_extreme(NodeExport& node) {
  const bool is_most = functional_name(node.node().op_type) == "max";
  const std::string value = node.value("self");
  const std::string op = is_most ? "ReduceMax" : "ReduceMin";
  const std::int64_t keeps = keeps_dims(node);
  const OnnxInts axes = reduced_axes(node);
  const std::vector<std::string> inputs{value, node.onnx.integers(axes)};
  if (node.args.find("dim") == nullptr) return node.finish(op, inputs, {{"keepdims", keeps}});
  if (node.first_info().shape.empty()) NodeExport::refuse("an operand without dimensions");
  node.finish_output(0, node.emit(op, inputs, {{"keepdims", keeps}}));
  node.finish_output(1, node.emit(is_most ? "ArgMax" : "ArgMin", {value},
                                  {{"axis", axes.front()}, {"keepdims", keeps}}));
}

void export_arg_extreme(NodeExport& node) {
  const bool is_most = functional_name(node.node().op_type) == "argmax";
  const std::string op = is_most ? "ArgMax" : "ArgMin";
  const std::string value = node.value("self");
  if (!node.args.is_none("dim") && !node.first_info().shape.empty()) {
    return node.finish(op, {value},
                       {{"axis", reduced_axes(node).front()}, {"keepdims", keeps_dims(node)}});
  }
  const std::string row = node.emit_reshape(value, {-1});
  const std::string place =
      node.emit(op, {row}, {{"axis", std::int64_t{0}}, {"keepdims", std::int64_t{0}}});
  node.finish_as(node.emit_reshape(place, node.result().shape));
}

void export_log_sum_exp(NodeExport& node) {
  node.finish("ReduceLogSumExp",
              {node.value_as("self", node.result().dtype), node.onnx.integers(reduced_axes(node))},
              {{"keepdims", keeps_dims(node)}});
}

void export_cumulative_sum(NodeExport& node) {
  const DType dtype = node.result().dtype;
  if (node.first_info().shape.empty()) return node.finish_as(node.value_as("self", dtype));
  node.finish("CumSum",
              {node.value_as("self", dtype),
               node.scalar(static_cast<double>(node.args.integer("dim")), DType::kInt64)});
}

void export_triangle(NodeExport& node) {
  const bool is_upper = functional_name(node.node().op_type) == "triu";
  const auto diagonal = static_cast<double>(node.args.integer("diagonal"));
  node.finish("Trilu", {node.value("self"), node.scalar(diagonal, DType::kInt64)},
              {{"upper", std::int64_t{is_upper ? 1 : 0}}});
}

}  // namespace npu::onnx_export
