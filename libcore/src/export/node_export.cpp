// SPDX-License-Identifier: Apache-2.0
// What rules use to write a node: names of operands, constants, and results. Each call is O(1) but
// for constants, whose bytes are shared.
#include "export/node_export.hpp"

#include <algorithm>
#include <utility>

#include "npu/support/error.hpp"
#include "tensor/onnx_tensor.hpp"

namespace npu::onnx_export {

void NodeExport::refuse(const std::string& reason) { throw Error(ErrorCode::kUnsupported, reason); }

TensorId NodeExport::id_of(std::string_view argument) const {
  const auto id = args.tensor(argument);
  if (!id) refuse("'" + std::string(argument) + "' is no tensor");
  return *id;
}

TensorId NodeExport::first() const {
  if (node().inputs.empty()) refuse("it has no operand");
  return node().inputs.front();
}

const Tensor* NodeExport::known(TensorId id) const {
  const TensorInfo& tensor = graph.tensor(id);
  return tensor.kind == TensorKind::kWeight ? &state_.constants[index_of(id)] : nullptr;
}

std::string NodeExport::value(TensorId id) {
  std::string& name = state_.names[id];
  if (name.empty()) {
    const Tensor* constant = known(id);
    if (constant == nullptr) refuse("it reads a list");
    name = graph.tensor(id).name;
    onnx.add_constant(name, *constant);
  }
  return name;
}

std::string NodeExport::optional_value(std::string_view argument) {
  const auto id = args.tensor(argument);
  return id ? value(*id) : std::string();
}

std::string NodeExport::value_as(TensorId id, DType dtype) {
  if (graph.tensor(id).dtype == dtype) return value(id);
  return emit_cast(value(id), dtype);
}

std::string NodeExport::value_as(std::string_view argument, DType dtype) {
  if (const auto id = args.tensor(argument)) return value_as(*id, dtype);
  const BoundArgument* bound = args.find(argument);
  if (dtype == DType::kInt64 && bound != nullptr && bound->value.is_number_integer()) {
    Tensor tensor(dtype, {});  // a double does not hold all of them
    *tensor.as_mutable<std::int64_t>() = args.integer(argument);
    return onnx.constant("number", tensor);
  }
  return scalar(args.number(argument), dtype);
}

std::string NodeExport::scalar(double number, DType dtype) {
  if (dtype == DType::kInt64) {
    Tensor tensor(dtype, {});
    *tensor.as_mutable<std::int64_t>() = static_cast<std::int64_t>(number);
    return onnx.constant("number", tensor);
  }
  if (dtype != DType::kFloat32) {
    Tensor tensor(DType::kFloat64, {});
    *tensor.as_mutable<double>() = number;
    return emit_cast(onnx.constant("number", tensor), dtype);
  }
  Tensor tensor(dtype, {});
  *tensor.as_mutable<float>() = static_cast<float>(number);
  return onnx.constant("number", tensor);
}

std::string NodeExport::filled(std::int64_t count, double number, DType dtype) {
  if (dtype != DType::kFloat32) {
    return emit("Expand", {scalar(number, dtype), onnx.integers({count})});
  }
  Tensor tensor(dtype, {count});
  std::fill_n(tensor.as_mutable<float>(), count, static_cast<float>(number));
  return onnx.constant("numbers", tensor);
}

std::string NodeExport::emit(const std::string& op, std::vector<std::string> inputs,
                             OnnxAttributes attributes) {
  std::string name = onnx.fresh(result().name + "_" + op);
  onnx.add({op, std::move(inputs), {name}, std::move(attributes)});
  return name;
}

std::vector<std::string> NodeExport::emit_several(const std::string& op,
                                                  std::vector<std::string> inputs,
                                                  OnnxAttributes attributes, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(onnx.fresh(result().name + "_" + op));
  onnx.add({op, std::move(inputs), names, std::move(attributes)});
  return names;
}

std::string NodeExport::emit_cast(const std::string& input, DType dtype) {
  return emit("Cast", {input}, {{"to", onnx_dtype_number(dtype)}});
}

std::string NodeExport::emit_reshape(const std::string& input, const Shape& shape) {
  OnnxAttributes attributes;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    attributes.push_back({"allowzero", std::int64_t{1}});
  }
  return emit("Reshape", {input, onnx.integers(shape)}, std::move(attributes));
}

void NodeExport::finish(const std::string& op, std::vector<std::string> inputs,
                        OnnxAttributes attributes) {
  finish_for(id_, op, std::move(inputs), std::move(attributes));
}

void NodeExport::finish_for(NodeId node, const std::string& op, std::vector<std::string> inputs,
                            OnnxAttributes attributes) {
  const TensorId id = graph.node(node).outputs.front();
  state_.names[id] = graph.tensor(id).name;
  state_.done[node] = 1;
  onnx.add({op, std::move(inputs), {state_.names[id]}, std::move(attributes)});
}

void NodeExport::finish_list(const std::string& op, std::vector<std::string> inputs,
                             OnnxAttributes attributes) {
  std::vector<std::string> names;
  for (const TensorId id : node().outputs) {
    state_.names[id] = graph.tensor(id).name;
    names.push_back(state_.names[id]);
  }
  onnx.add({op, std::move(inputs), std::move(names), std::move(attributes)});
}

void NodeExport::finish_output(std::size_t index, const std::string& name) {
  if (index >= node().outputs.size()) refuse("results of another number");
  state_.names[node().outputs[index]] = name;
}

void NodeExport::finish_as(const std::string& name) { state_.names[node().outputs.front()] = name; }

void NodeExport::finish_reshaped(const std::string& input) {
  if (first_info().shape == result().shape) return finish_as(input);
  finish_as(emit_reshape(input, result().shape));
}

std::int64_t NodeExport::axis_of(std::int64_t axis, std::size_t rank) {
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

}  // namespace npu::onnx_export
