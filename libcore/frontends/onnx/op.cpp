// SPDX-License-Identifier: Apache-2.0
// What rules share: operands and attributes of a node with their faults, and the small ATen nodes
// that most ops become.
#include "op.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/checked.hpp"
#include "support/text.hpp"

namespace npu::onnx {

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t back = result.size() - i;
    const std::int64_t x = back <= a.size() ? a[a.size() - back] : 1;
    const std::int64_t y = back <= b.size() ? b[b.size() - back] : 1;
    if (x != y && x != 1 && y != 1) {
      Op::refuse("shapes " + shape_text(a) + " and " + shape_text(b) + " do not fit together");
    }
    result[i] = x == 1 ? y : x;
  }
  return result;
}

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  const auto first = shape.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto count =
      checked_element_count(Shape(first, first + static_cast<std::ptrdiff_t>(end - begin)));
  if (!count) Op::refuse("the shape " + shape_text(shape) + " is too large");
  return *count;
}

Json json_number_of(double value, DType dtype) {
  if (is_floating_point(dtype)) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
  }
  return static_cast<std::int64_t>(value);
}

// ---- Operands ----

Value* Op::in(std::size_t index) const {
  if (!has_input(index)) refuse("operand " + std::to_string(index) + " is missing");
  return inputs_[index];
}

const Tensor& Op::constant(std::size_t index, std::string_view what) {
  return known_or_refuse(in(index), what);
}

const Tensor& Op::known_or_refuse(Value* value, std::string_view what) {
  const Tensor* tensor = importer_.known(value);
  if (tensor == nullptr) {
    const std::string name = printable_text(value->name);
    std::string inputs;
    for (const Value* input : draft().inputs_behind(value)) {
      inputs += (inputs.empty() ? " '" : ", '") + printable_text(input->name) + "'";
    }
    refuse(std::string(what) + (name.empty() ? "" : " '" + name + "'") +
           " has to be known at import" +
           (inputs.empty() ? "" : "; --freeze gives inputs values, and it depends on" + inputs));
  }
  return *tensor;
}

Ints Op::integers(std::size_t index, std::string_view what) {
  const Tensor& tensor = constant(index, what);
  Ints values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    if (tensor.dtype() == DType::kInt64) {
      values.push_back(tensor.as<std::int64_t>()[i]);
    } else if (tensor.dtype() == DType::kInt32) {
      values.push_back(tensor.as<std::int32_t>()[i]);
    } else {
      refuse(std::string(what) + " is of type " + std::string(dtype_name(tensor.dtype())) +
             ", expected integers");
    }
  }
  return values;
}

std::optional<Ints> Op::integers_since(std::int64_t since, std::string_view name,
                                       std::size_t index) {
  if (opset_ < since) return list(name);
  if (!has_input(index)) return std::nullopt;
  return integers(index, name);
}

double Op::number(std::size_t index, std::string_view what) {
  const Tensor& tensor = constant(index, what);
  if (tensor.element_count() != 1) refuse(std::string(what) + " is expected to be one number");
  return tensor.value_as_double(0);
}

// ---- Attributes ----

const AttributeProto* Op::resolve(const AttributeProto& attribute, const Scope* scope) const {
  if (attribute.ref.empty()) return &attribute;
  while (scope != nullptr && scope->function == nullptr) scope = scope->outer;
  if (scope == nullptr) refuse("an attribute refers to another one outside of a function");
  for (const AttributeProto& given : scope->call->attributes) {
    if (given.name == attribute.ref) return resolve(given, scope->call_scope);
  }
  for (const AttributeProto& given : scope->function->defaults) {
    if (given.name == attribute.ref) return &given;
  }
  return nullptr;
}

const AttributeProto* Op::attribute(std::string_view name) const {
  asked_.emplace(name);
  for (const AttributeProto& attribute : node_.attributes) {
    if (attribute.name == name) return resolve(attribute, &scope_);
  }
  return nullptr;
}

std::int64_t Op::integer(std::string_view name, std::int64_t absent) const {
  const AttributeProto* found = attribute(name);
  if (found == nullptr) return absent;
  if (found->type != AttributeType::kInt) refuse("'" + std::string(name) + "' is no integer");
  return found->i;
}

double Op::real(std::string_view name, double absent) const {
  const AttributeProto* found = attribute(name);
  if (found == nullptr) return absent;
  if (found->type != AttributeType::kFloat) refuse("'" + std::string(name) + "' is no float");
  return from_float(found->f);
}

std::string Op::text(std::string_view name, std::string_view absent) const {
  const AttributeProto* found = attribute(name);
  if (found == nullptr) return std::string(absent);
  if (found->type != AttributeType::kString) refuse("'" + std::string(name) + "' is no string");
  return std::string(found->s);
}

std::optional<Ints> Op::list(std::string_view name) const {
  const AttributeProto* found = attribute(name);
  if (found == nullptr) return std::nullopt;
  if (found->type != AttributeType::kInts) {
    refuse("'" + std::string(name) + "' is no list of integers");
  }
  return found->ints;
}

std::vector<float> Op::reals(std::string_view name) const {
  const AttributeProto* found = attribute(name);
  if (found == nullptr) return {};
  if (found->type != AttributeType::kFloats) {
    refuse("'" + std::string(name) + "' is no list of floats");
  }
  return found->floats;
}

std::optional<std::vector<std::string>> Op::texts(std::string_view name) const {
  const AttributeProto* found = attribute(name);
  if (found == nullptr) return std::nullopt;
  if (found->type != AttributeType::kStrings) {
    refuse("'" + std::string(name) + "' is no list of strings");
  }
  return std::vector<std::string>(found->strings.begin(), found->strings.end());
}

const OnnxTensor* Op::tensor(std::string_view name) const {
  const AttributeProto* found = attribute(name);
  if (found == nullptr) return nullptr;
  if (found->type != AttributeType::kTensor || !found->tensor) {
    refuse("'" + std::string(name) + "' is no tensor");
  }
  return found->tensor.get();
}

bool Op::is_kept() const {
  const std::set<std::string>& kept = importer_.settings().kept;
  return !kept.empty() && std::any_of(node_.outputs.begin(), node_.outputs.end(), [&](auto name) {
    return kept.contains(scope_.prefix + std::string(name));
  });
}

void Op::forget_reads() {
  asked_.clear();
  is_read_.assign(inputs_.size(), false);
}

std::int64_t Op::axis_of(std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) {
    refuse("axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank));
  }
  return axis < 0 ? axis + rank : axis;
}

// ---- Nodes ----

Value* Op::emit_like(std::string op, std::vector<Value*> inputs, Json attrs) {
  const DType dtype = inputs.front()->dtype;
  Shape shape = inputs.front()->shape;
  return emit(std::move(op), std::move(inputs), std::move(attrs), dtype, std::move(shape));
}

Value* Op::integer_constant(const Ints& values, const Shape& shape) {
  Tensor tensor(DType::kInt64, shape);
  std::copy(values.begin(), values.end(), tensor.as_mutable<std::int64_t>());
  return constant_value(std::move(tensor));
}

Value* Op::view(Value* value, Shape shape) {
  if (value->shape == shape) return value;
  if (checked_element_count(shape) != checked_element_count(value->shape)) {
    refuse("shape " + shape_text(value->shape) + " does not become " + shape_text(shape));
  }
  if (value->is_constant() && !value->transposed) return draft().view_of(value, std::move(shape));
  Json attrs{{"shape", shape}};
  return emit("aten.reshape.default", {value}, std::move(attrs), value->dtype, std::move(shape));
}

Value* Op::permute(Value* value, const Ints& order) {
  if (std::is_sorted(order.begin(), order.end())) return value;
  Shape shape;
  for (const std::int64_t axis : order)
    shape.push_back(value->shape[static_cast<std::size_t>(axis)]);
  return emit("aten.permute.default", {value}, Json{{"dims", order}}, value->dtype, shape);
}

Value* Op::cast(Value* value, DType dtype) {
  if (value->dtype == dtype) return value;
  return emit("aten.to.dtype", {value}, Json{{"dtype", "torch." + std::string(dtype_name(dtype))}},
              dtype, value->shape);
}

// The slice of a constant that shapes are made of; null for others.
Value* Op::known_slice(Value* value, std::int64_t axis, std::int64_t start, std::int64_t end,
                       std::int64_t step) {
  constexpr std::int64_t kMostReals = 1024;
  const bool is_real = is_floating_point(value->dtype);
  const Tensor* whole = importer_.known(value, is_real ? kMostReals : Importer::kMostKnown);
  if (whole == nullptr) return nullptr;
  const auto at = static_cast<std::size_t>(axis);
  Shape shape = value->shape;
  shape[at] = (end - start) / step + ((end - start) % step != 0 ? 1 : 0);
  Tensor part(value->dtype, shape);
  const std::size_t block =
      static_cast<std::size_t>(product(shape, at + 1, shape.size())) * dtype_size(value->dtype);
  const std::int64_t rows = product(shape, 0, at);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < shape[at]; ++i) {
      const auto from = static_cast<std::size_t>(r * value->shape[at] + start + i * step);
      const auto to = static_cast<std::size_t>(r * shape[at] + i);
      std::memcpy(part.mutable_data() + to * block, whole->data() + from * block, block);
    }
  }
  return constant_value(std::move(part));
}

Value* Op::slice(Value* value, std::int64_t axis, std::int64_t start, std::int64_t end,
                 std::int64_t step) {
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t extent = value->shape[at];
  start = std::clamp<std::int64_t>(start, 0, extent);
  end = std::clamp<std::int64_t>(end, start, extent);
  if (start == 0 && end == extent && step == 1) return value;
  if (!is_kept()) {
    if (Value* part = known_slice(value, axis, start, end, step)) return part;
  }
  Shape shape = value->shape;
  shape[at] = (end - start) / step + ((end - start) % step != 0 ? 1 : 0);
  Json attrs{{"dim", axis}, {"start", start}, {"end", end}};
  if (step != 1) attrs["step"] = step;
  return emit("aten.slice.Tensor", {value}, std::move(attrs), value->dtype, std::move(shape));
}

Value* Op::pad(Value* value, const std::vector<std::pair<std::int64_t, std::int64_t>>& pads,
               double fill) {
  Ints flat;
  Shape shape = value->shape;
  bool is_needed = false;
  for (std::size_t i = shape.size(); i-- > 0;) {
    flat.push_back(pads[i].first);
    flat.push_back(pads[i].second);
    std::int64_t sum = 0;
    if (__builtin_add_overflow(shape[i], pads[i].first, &sum) ||
        __builtin_add_overflow(sum, pads[i].second, &shape[i]) || shape[i] < 0) {
      refuse("pads do not fit shape " + shape_text(value->shape));
    }
    is_needed = is_needed || pads[i].first != 0 || pads[i].second != 0;
  }
  if (!is_needed) return value;
  product(shape, 0, shape.size());
  while (flat.size() > 2 && flat[flat.size() - 1] == 0 && flat[flat.size() - 2] == 0) {
    flat.resize(flat.size() - 2);
  }
  Json attrs{{"pad", flat}};
  if (fill != 0) attrs["value"] = json_number_of(fill, value->dtype);
  return emit("aten.constant_pad_nd.default", {value}, std::move(attrs), value->dtype,
              std::move(shape));
}

Value* Op::expand(Value* value, const Shape& shape) {
  if (value->shape == shape) return value;
  product(shape, 0, shape.size());
  return emit("aten.expand.default", {value}, Json{{"size", shape}}, value->dtype, shape);
}

Value* Op::filled(const Shape& shape, DType dtype, Json number) {
  return emit("aten.full.default", {},
              Json{{"size", shape},
                   {"fill_value", std::move(number)},
                   {"dtype", "torch." + std::string(dtype_name(dtype))}},
              dtype, shape);
}

std::optional<double> Op::single(Value* value) {
  if (!value->is_constant() || value->count() != 1 || value->rank() > 8) return std::nullopt;
  if (value->dtype == DType::kComplex64 || value->dtype == DType::kComplex128) return std::nullopt;
  const Tensor* tensor = importer_.known(value);
  if (tensor == nullptr) return std::nullopt;
  const double number = tensor->value_as_double(0);
  // Integers that a double cannot hold stay tensors.
  if (!is_floating_point(value->dtype) && std::abs(number) >= 0x1p53) return std::nullopt;
  return number;
}

Value* Op::scalar(const std::string& name, Value* a, double other) {
  return emit_like("aten." + name + ".Tensor", {a},
                   Json{{"other", json_number_of(other, a->dtype)}});
}

Value* Op::binary(const std::string& name, Value* a, Value* b) {
  if (a->dtype != b->dtype) {
    refuse("operands of types " + std::string(dtype_name(a->dtype)) + " and " +
           std::string(dtype_name(b->dtype)));
  }
  const Shape shape = broadcast(a->shape, b->shape);
  product(shape, 0, shape.size());
  if (a->dtype != DType::kBool && b->rank() <= a->rank()) {
    if (const auto other = single(b)) return scalar(name, a, *other);
  }
  if (a->dtype != DType::kBool && a->rank() <= b->rank() && (name == "add" || name == "mul")) {
    if (const auto other = single(a)) return scalar(name, b, *other);
  }
  return emit("aten." + name + ".Tensor", {a, b}, Json::object(), a->dtype, shape);
}

Value* Op::compare(const std::string& name, Value* a, Value* b) {
  return emit("aten." + name + ".Tensor", {a, b}, Json::object(), DType::kBool,
              broadcast(a->shape, b->shape));
}

Value* Op::reduce(const std::string& name, Value* value, const Ints& axes, bool keep) {
  Shape shape;
  for (std::size_t i = 0; i < value->shape.size(); ++i) {
    const bool is_reduced =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    if (!is_reduced) shape.push_back(value->shape[i]);
    if (is_reduced && keep) shape.push_back(1);
  }
  Json attrs{{"dim", axes}};
  if (keep) attrs["keepdim"] = true;
  return emit("aten." + name, {value}, std::move(attrs), value->dtype, std::move(shape));
}

}  // namespace npu::onnx
