// SPDX-License-Identifier: Apache-2.0
// The document while it is built: values and nodes, in topological order because a node's operands
// exist before it. O(1) for each.
#include "draft.hpp"

#include <algorithm>
#include <memory>

#include "support/checked.hpp"

namespace npu::onnx {

Tensor in_shape(const Tensor& tensor, const Shape& shape) {
  if (tensor.shape() == shape) return tensor;
  const auto owner = std::make_shared<const Tensor>(tensor);
  return Tensor(tensor.dtype(), shape, std::shared_ptr<const std::byte>(owner, owner->data()));
}

std::int64_t Value::count() const noexcept { return checked_element_count(shape).value_or(0); }

Value* Draft::add_input(std::string name, DType dtype, Shape shape) {
  Value* value = add_value();
  value->kind = Value::Kind::kInput;
  value->name = std::move(name);
  value->dtype = dtype;
  value->shape = std::move(shape);
  inputs_.push_back(value);
  return value;
}

Value* Draft::add_stored(const OnnxTensor& tensor, DType dtype) {
  Value* value = add_value();
  value->kind = Value::Kind::kConstant;
  value->name = tensor.name;
  value->dtype = dtype;
  value->shape = tensor.dims;
  value->stored = &tensor;
  return value;
}

Value* Draft::add_known(Tensor tensor) {
  known_bytes_ += static_cast<std::size_t>(tensor.element_count()) * dtype_size(tensor.dtype());
  if (known_bytes_ > kMostKnownBytes) {
    throw Exhausted("the constants that its nodes make have more than " +
                    std::to_string(kMostKnownBytes) + " bytes");
  }
  Value* value = add_value();
  value->kind = Value::Kind::kConstant;
  value->dtype = tensor.dtype();
  value->shape = tensor.shape();
  value->known = std::move(tensor);
  return value;
}

Value* Draft::add_unknown() { return add_value(); }

Value* Draft::add_absent() {
  Value* value = add_value();
  value->kind = Value::Kind::kAbsent;
  return value;
}

Value* Draft::add_sequence(std::vector<Value*> items) {
  Value* value = add_value();
  value->kind = Value::Kind::kSequence;
  value->items = std::move(items);
  return value;
}

Value* Draft::view_of(Value* constant, Shape shape) {
  Value* value = add_value();
  *value = *constant;
  value->name.clear();
  value->known.reset();
  value->shape = std::move(shape);
  if (constant->known) value->known = in_shape(*constant->known, value->shape);
  return value;
}

Value* Draft::transpose_of(Value* matrix) {
  if (matrix->stored == nullptr) {
    return emit("aten.t.default", {matrix}, Json::object(), matrix->dtype,
                {matrix->shape[1], matrix->shape[0]});
  }
  Value* value = add_value();
  *value = *matrix;
  value->known.reset();
  value->transposed = !matrix->transposed;
  value->shape = {matrix->shape[1], matrix->shape[0]};
  value->name = matrix->name.empty() ? "" : matrix->name + ".t";
  return value;
}

Value* Draft::emit(std::string op, std::vector<Value*> inputs, Json attrs, DType dtype,
                   Shape shape) {
  Value* value = add_value();
  value->kind = Value::Kind::kResult;
  value->dtype = dtype;
  value->shape = std::move(shape);
  value->node = static_cast<std::int32_t>(nodes_.size());
  nodes_.push_back(
      {std::move(op), std::move(inputs), std::move(attrs), std::vector<Value*>{value}, origin_});
  return value;
}

std::vector<const Value*> Draft::inputs_behind(const Value* value) const {
  constexpr std::size_t kMostInputs = 8;
  constexpr std::size_t kMostValues = 1000;
  std::vector<const Value*> seen{value};
  std::vector<const Value*> inputs;
  for (std::size_t i = 0; i < seen.size() && seen.size() < kMostValues; ++i) {
    if (seen[i]->kind == Value::Kind::kInput && inputs.size() < kMostInputs) {
      inputs.push_back(seen[i]);
    }
    const DraftNode* node = producer(seen[i]);
    if (node == nullptr) continue;
    for (const Value* operand : node->inputs) {
      if (std::find(seen.begin(), seen.end(), operand) == seen.end()) seen.push_back(operand);
    }
  }
  return inputs;
}

std::vector<Value*> Draft::emit_several(std::string op, std::vector<Value*> inputs, Json attrs,
                                        const std::vector<ResultType>& results) {
  std::vector<Value*> raw;
  for (const ResultType& result : results) {
    Value* value = add_value();
    value->kind = Value::Kind::kResult;
    value->dtype = result.dtype;
    value->shape = result.shape;
    value->node = static_cast<std::int32_t>(nodes_.size());
    value->result = static_cast<std::int32_t>(raw.size());
    raw.push_back(value);
  }
  nodes_.push_back({std::move(op), std::move(inputs), std::move(attrs), raw, origin_});
  std::vector<Value*> items;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    items.push_back(
        emit("<built-in function getitem>", raw, Json{{"index", i}}, raw[i]->dtype, raw[i]->shape));
  }
  return items;
}

}  // namespace npu::onnx
