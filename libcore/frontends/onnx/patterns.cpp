// SPDX-License-Identifier: Apache-2.0
// Finds activations, norms and linear layers in the pieces that exporters take them apart into. A
// pattern is looked for from its last node backwards, when that node is imported, so every operand
// exists. Constants are compared as far as float32 holds them. O(1) a node.
#include "patterns.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/op_name.hpp"

namespace npu::onnx {
namespace {

const DraftNode* made_by(Op& op, const Value* value, std::string_view name) {
  const DraftNode* node = op.draft().producer(value);
  return node != nullptr && node->op == name ? node : nullptr;
}

bool is_near(double value, double wanted) {
  return std::abs(value - wanted) <= 1e-6 * std::abs(wanted);
}

// The number that a node of one operand adds, multiplies with or divides by.
std::optional<double> number_of(const DraftNode& node, const char* key = "other") {
  const Json* value = find_member(node.attrs, key);
  if (node.inputs.size() != 1 || value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

// As made_by, for a sum or product of two tensors.
const DraftNode* made_of_two(Op& op, const Value* value, std::string_view name) {
  const DraftNode* node = made_by(op, value, name);
  return node != nullptr && node->inputs.size() == 2 && node->attrs.empty() ? node : nullptr;
}

bool is_scaled_by(Op& op, const Value* value, std::string_view name, double factor,
                  Value*& operand) {
  const DraftNode* node = made_by(op, value, name);
  if (node == nullptr) return false;
  const auto number = number_of(*node);
  if (!number || !is_near(*number, factor)) return false;
  operand = node->inputs[0];
  return true;
}

// x * x * x.
bool is_cube(Op& op, const Value* value, const Value* x) {
  const DraftNode* power = made_by(op, value, "aten.pow.Tensor_Scalar");
  if (power != nullptr) return power->inputs[0] == x && number_of(*power, "exponent") == 3.0;
  const DraftNode* product = made_of_two(op, value, "aten.mul.Tensor");
  for (std::size_t i = 0; product != nullptr && i < 2; ++i) {
    const DraftNode* square = made_of_two(op, product->inputs[i], "aten.mul.Tensor");
    if (square != nullptr && square->inputs[0] == x && square->inputs[1] == x) {
      return product->inputs[1 - i] == x;
    }
  }
  return false;
}

// sqrt(2 / pi) (x + 0.044715 x^3).
bool is_tanh_argument(Op& op, const Value* value, const Value* x) {
  Value* operand = nullptr;
  const double factor = std::sqrt(2 / std::numbers::pi);
  if (!is_scaled_by(op, value, "aten.mul.Tensor", factor, operand)) return false;
  const DraftNode* sum = made_of_two(op, operand, "aten.add.Tensor");
  for (std::size_t i = 0; sum != nullptr && i < 2; ++i) {
    Value* cube = nullptr;
    if (sum->inputs[i] == x &&
        is_scaled_by(op, sum->inputs[1 - i], "aten.mul.Tensor", 0.044715, cube)) {
      return is_cube(op, cube, x);
    }
  }
  return false;
}

// The argument `approximate` of the GELU whose factor is 1 + erf(x / sqrt(2)), or 1 + tanh of the
// polynomial; null for others.
const char* gelu_factor(Op& op, const Value* value, const Value* x) {
  Value* inner = nullptr;
  if (!is_scaled_by(op, value, "aten.add.Tensor", 1, inner)) return nullptr;
  if (const DraftNode* tanh = made_by(op, inner, "aten.tanh.default")) {
    return is_tanh_argument(op, tanh->inputs[0], x) ? "tanh" : nullptr;
  }
  const DraftNode* erf = made_by(op, inner, "aten.erf.default");
  if (erf == nullptr) return nullptr;
  Value* operand = nullptr;
  const bool is_exact =
      is_scaled_by(op, erf->inputs[0], "aten.div.Tensor", std::sqrt(2.0), operand) ||
      is_scaled_by(op, erf->inputs[0], "aten.mul.Tensor", std::sqrt(0.5), operand);
  return is_exact && operand == x ? "none" : nullptr;
}

Value* gelu_of(Op& op, Value* x, std::string_view approximate) {
  Json attrs = Json::object();
  if (approximate != "none") attrs["approximate"] = approximate;
  return op.emit_like("aten.gelu.default", {x}, std::move(attrs));
}

// x * f(x) for the functions that make an activation of it.
Value* self_gated(Op& op, Value* x, Value* gate) {
  if (const DraftNode* sigmoid = made_by(op, gate, "aten.sigmoid.default")) {
    if (sigmoid->inputs[0] == x) return op.emit_like("aten.silu.default", {x});
  }
  if (const DraftNode* sigmoid = made_by(op, gate, "aten.hardsigmoid.default")) {
    if (sigmoid->inputs[0] == x) return op.emit_like("aten.hardswish.default", {x});
  }
  // (0.5 x) (1 + erf or tanh)
  Value* inner = nullptr;
  if (is_scaled_by(op, x, "aten.mul.Tensor", 0.5, inner)) {
    if (const char* approximate = gelu_factor(op, gate, inner)) {
      return gelu_of(op, inner, approximate);
    }
  }
  return nullptr;
}

bool is_float_constant(const Value* value) {
  return value->is_constant() && is_floating_point(value->dtype);
}

// A norm's node with `operands` operands, whose normalized shape is that of the constant.
const DraftNode* norm_for(Op& op, Value* norm, Value* constant, std::size_t operands) {
  const DraftNode* node = made_by(op, norm, "aten.layer_norm.default");
  if (node == nullptr || node->inputs.size() != operands || !is_float_constant(constant) ||
      constant->dtype != norm->dtype) {
    return nullptr;
  }
  const Json* shape = find_member(node->attrs, "normalized_shape");
  return shape != nullptr && *shape == Json(constant->shape) ? node : nullptr;
}

// A constant of one number for each channel of `x`, which broadcasts over its other axes.
bool is_by_channel(const Value* constant, const Value* x) {
  if (!is_float_constant(constant) || constant->dtype != x->dtype || x->rank() < 2) return false;
  Shape wanted(x->shape.size() - 1, 1);
  wanted[0] = x->shape[1];
  if (constant->rank() == x->rank() && constant->shape[0] == 1) {
    return std::equal(wanted.begin(), wanted.end(), constant->shape.begin() + 1);
  }
  return constant->shape == wanted;
}

bool is_all(Op& op, Value* constant, double number) {
  if (!is_float_constant(constant)) return false;
  const Tensor* values = op.importer().known(constant);
  if (values == nullptr) return false;
  for (std::int64_t i = 0; i < values->element_count(); ++i) {
    if (values->value_as_double(i) != number) return false;
  }
  return true;
}

// The norm by channel of groups that are seen as channels, times `scale`: a group norm.
Value* group_norm_of(Op& op, const Value* value, Value* scale) {
  const DraftNode* back = made_by(op, value, "aten.reshape.default");
  if (back == nullptr || !is_by_channel(scale, value)) return nullptr;
  const DraftNode* norm = made_by(op, back->inputs[0], "aten.instance_norm.default");
  if (norm == nullptr || norm->inputs.size() != 3) return nullptr;
  const DraftNode* there = made_by(op, norm->inputs[0], "aten.reshape.default");
  if (there == nullptr) return nullptr;
  Value* x = there->inputs[0];
  const Value* groups = norm->inputs[0];
  if (x->shape != value->shape || groups->rank() < 3 || groups->shape[0] != x->shape[0] ||
      groups->shape[1] < 1 || x->shape[1] % groups->shape[1] != 0 ||
      !is_all(op, norm->inputs[1], 1) || !is_all(op, norm->inputs[2], 0)) {
    return nullptr;
  }
  return op.emit_like("aten.group_norm.default", {x, op.view(scale, {x->shape[1]})},
                      Json{{"num_groups", groups->shape[1]}, {"eps", norm->attrs["eps"]}});
}

// The dims of a mean that keeps them, if they are the last ones.
std::optional<Shape> normalized_dims(const DraftNode& mean, const Value* x) {
  const Json* dims = find_member(mean.attrs, "dim");
  const Json* keep = find_member(mean.attrs, "keepdim");
  if (dims == nullptr || keep == nullptr || mean.inputs[0]->shape.size() != x->shape.size()) {
    return std::nullopt;
  }
  const std::size_t count = dims->size();
  if (count == 0 || count > x->shape.size()) return std::nullopt;
  const std::size_t first = x->shape.size() - count;
  for (std::size_t i = 0; i < count; ++i) {
    if ((*dims)[i] != static_cast<std::int64_t>(first + i)) return std::nullopt;
  }
  return Shape(x->shape.begin() + static_cast<std::ptrdiff_t>(first), x->shape.end());
}

Value* layer_norm_of(Op& op, Value* centred, Value* deviation) {
  const DraftNode* sub = made_by(op, centred, "aten.sub.Tensor");
  if (sub == nullptr || sub->inputs.size() != 2) return nullptr;
  Value* x = sub->inputs[0];
  const DraftNode* mean = made_by(op, sub->inputs[1], "aten.mean.dim");
  if (mean == nullptr || mean->inputs[0] != x) return nullptr;
  const auto dims = normalized_dims(*mean, x);
  const DraftNode* sqrt = made_by(op, deviation, "aten.sqrt.default");
  if (!dims || sqrt == nullptr) return nullptr;
  const DraftNode* add = made_by(op, sqrt->inputs[0], "aten.add.Tensor");
  if (add == nullptr) return nullptr;
  const auto eps = number_of(*add);
  const DraftNode* variance = made_by(op, add->inputs[0], "aten.mean.dim");
  if (!eps || variance == nullptr || variance->attrs != mean->attrs) return nullptr;
  const DraftNode* square = made_by(op, variance->inputs[0], "aten.pow.Tensor_Scalar");
  const bool is_square = square != nullptr && number_of(*square, "exponent") == 2.0;
  if (!is_square) square = made_by(op, variance->inputs[0], "aten.mul.Tensor");
  if (square == nullptr) return nullptr;
  for (const Value* factor : square->inputs) {
    if (factor != centred) return nullptr;
  }
  if (!is_square && square->inputs.size() != 2) return nullptr;
  return op.emit_like("aten.layer_norm.default", {x},
                      Json{{"normalized_shape", *dims}, {"eps", *eps}});
}

}  // namespace

Value* match_product(Op& op, Value* a, Value* b) {
  for (int turn = 0; turn < 2; ++turn, std::swap(a, b)) {
    if (Value* value = self_gated(op, a, b)) return value;
    if (const DraftNode* norm = norm_for(op, a, b, 1)) {
      return op.emit("aten.layer_norm.default", {norm->inputs[0], b}, Json(norm->attrs), a->dtype,
                     a->shape);
    }
    if (Value* value = group_norm_of(op, a, b)) return value;
  }
  return nullptr;
}

Value* match_scaled(Op& op, Value* a, double factor) {
  if (!is_near(factor, 0.5)) return nullptr;
  const DraftNode* product = made_by(op, a, "aten.mul.Tensor");
  if (product == nullptr || product->inputs.size() != 2) return nullptr;
  Value* x = product->inputs[0];
  Value* gate = product->inputs[1];
  for (int turn = 0; turn < 2; ++turn, std::swap(x, gate)) {
    if (const char* approximate = gelu_factor(op, gate, x)) return gelu_of(op, x, approximate);
  }
  return nullptr;
}

Value* match_sum(Op& op, Value* a, Value* b) {
  for (int turn = 0; turn < 2; ++turn, std::swap(a, b)) {
    if (const DraftNode* norm = norm_for(op, a, b, 2)) {
      return op.emit("aten.layer_norm.default", {norm->inputs[0], norm->inputs[1], b},
                     Json(norm->attrs), a->dtype, a->shape);
    }
    const DraftNode* groups = made_by(op, a, "aten.group_norm.default");
    if (groups != nullptr && groups->inputs.size() == 2 && is_by_channel(b, a)) {
      return op.emit_like("aten.group_norm.default",
                          {groups->inputs[0], groups->inputs[1], op.view(b, {a->shape[1]})},
                          Json(groups->attrs));
    }
    const DraftNode* linear = made_by(op, a, "aten.linear.default");
    if (linear == nullptr || linear->inputs.size() != 2 || !is_float_constant(b)) continue;
    if (b->dtype == a->dtype && b->rank() == 1 && b->shape[0] == a->shape.back()) {
      return op.emit("aten.linear.default", {linear->inputs[0], linear->inputs[1], b},
                     Json::object(), a->dtype, a->shape);
    }
  }
  return nullptr;
}

Value* unpadded(Op& op, Value* x, const Shape& kernel, Shape& pads) {
  const DraftNode* pad = made_by(op, x, "aten.constant_pad_nd.default");
  if (pad == nullptr) return nullptr;
  const Json* fill = find_member(pad->attrs, "value");
  if (fill != nullptr && *fill != 0) return nullptr;
  const auto ends = pad->attrs.at("pad").get<Shape>();  // the last axis first, both its ends
  if (ends.size() > 2 * kernel.size()) return nullptr;
  pads.assign(kernel.size(), 0);
  for (std::size_t i = 0; i < ends.size() / 2; ++i) {
    const std::size_t axis = kernel.size() - 1 - i;
    if (ends[2 * i] != ends[2 * i + 1] || ends[2 * i] < 0 || ends[2 * i] > kernel[axis] / 2) {
      return nullptr;
    }
    pads[axis] = ends[2 * i];
  }
  return pad->inputs[0];
}

Value* match_roll(Op& op, const std::vector<Value*>& parts, std::int64_t axis) {
  if (parts.size() != 2 || !op.importer().settings().has_rolls) return nullptr;
  const DraftNode* back = made_by(op, parts[0], "aten.slice.Tensor");
  const DraftNode* front = made_by(op, parts[1], "aten.slice.Tensor");
  if (back == nullptr || front == nullptr || back->inputs[0] != front->inputs[0]) return nullptr;
  Value* x = back->inputs[0];
  const std::int64_t extent = x->shape[static_cast<std::size_t>(axis)];
  const auto is_part = [&](const DraftNode& slice, std::int64_t start, std::int64_t end) {
    return slice.attrs == Json{{"dim", axis}, {"start", start}, {"end", end}};
  };
  const std::int64_t shift = parts[0]->shape[static_cast<std::size_t>(axis)];
  if (!is_part(*back, extent - shift, extent) || !is_part(*front, 0, extent - shift)) {
    return nullptr;
  }
  // The roll of a roll along another axis is one roll.
  Ints shifts{shift};
  Ints dims{axis};
  if (const DraftNode* roll = made_by(op, x, "aten.roll.default")) {
    const auto earlier = roll->attrs.at("dims").get<Ints>();
    if (std::find(earlier.begin(), earlier.end(), axis) == earlier.end()) {
      const auto by = roll->attrs.at("shifts").get<Ints>();
      shifts.insert(shifts.begin(), by.begin(), by.end());
      dims.insert(dims.begin(), earlier.begin(), earlier.end());
      x = roll->inputs[0];
    }
  }
  return op.emit_like("aten.roll.default", {x}, Json{{"shifts", shifts}, {"dims", dims}});
}

namespace {

// An index of an axis, and the number of rows that lie behind it.
struct IndexTerm {
  Value* index;
  std::int64_t rows;
};

// The terms of a sum of indices; nothing if they are more than `most`.
std::optional<std::vector<IndexTerm>> terms_of(Op& op, Value* sum, std::size_t most) {
  std::vector<Value*> open{sum};
  std::vector<IndexTerm> terms;
  while (!open.empty()) {
    Value* value = open.back();
    open.pop_back();
    if (const DraftNode* node = made_of_two(op, value, "aten.add.Tensor")) {
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    } else {
      const DraftNode* product = made_by(op, value, "aten.mul.Tensor");
      const auto rows = product == nullptr ? std::nullopt : number_of(*product);
      const bool is_scaled = rows && *rows > 1 && *rows == std::floor(*rows);
      terms.push_back({is_scaled ? product->inputs[0] : value,
                       is_scaled ? static_cast<std::int64_t>(*rows) : 1});
    }
    if (terms.size() + open.size() > most) return std::nullopt;
  }
  return terms;
}

// Whether integers are known not to be negative: places of extrema, remainders and sequences, also
// moved or converted.
bool is_never_negative(Op& op, Value* value) {
  constexpr std::int64_t kMost = 4096;
  for (const DraftNode* node = nullptr;; value = node->inputs[0]) {
    if (const Tensor* known = op.importer().known(value, kMost)) {
      for (std::int64_t i = 0; i < known->element_count(); ++i) {
        if (known->value_as_double(i) < 0) return false;
      }
      return true;
    }
    node = op.draft().producer(value);
    if (node == nullptr || is_floating_point(value->dtype)) return false;
    const std::string_view name = functional_name(node->op);
    if (name == "argmax" || name == "argmin") return true;
    if (name == "remainder") return number_of(*node).value_or(0) > 0;
    if (name == "arange") {
      return number_of(*node, "start").value_or(-1) >= 0 &&
             number_of(*node, "step").value_or(0) > 0;
    }
    if (name != "reshape" && name != "expand" && name != "slice" && name != "to") return false;
  }
}

}  // namespace

Value* match_indices(Op& op, Value* x, Value* index) {
  const DraftNode* view = made_by(op, x, "aten.reshape.default");
  if (view == nullptr || made_of_two(op, index, "aten.add.Tensor") == nullptr) return nullptr;
  Value* whole = view->inputs[0];
  auto terms = terms_of(op, index, whole->shape.size());
  if (!terms || terms->size() < 2) return nullptr;
  std::stable_sort(terms->begin(), terms->end(),
                   [](const IndexTerm& a, const IndexTerm& b) { return a.rows > b.rows; });
  const std::size_t axes = terms->size();
  if (product(whole->shape, 0, axes) != x->shape[0]) return nullptr;
  std::vector<Value*> operands{whole};
  Shape places;
  for (std::size_t i = 0; i < axes; ++i) {
    Value* place = (*terms)[i].index;
    if ((*terms)[i].rows != product(whole->shape, i + 1, axes)) return nullptr;
    if (place->dtype != DType::kInt64) return nullptr;
    operands.push_back(place);
    places = broadcast(places, place->shape);
  }
  if (places != index->shape) return nullptr;
  // In the sum an index below 0 counts from the end of the row in front, not of its own.
  for (std::size_t i = axes; i > 1; --i) {
    if (is_never_negative(op, operands[i])) continue;
    Value* is_before = op.compare("lt", operands[i], op.integer_constant({0}, {}));
    operands[i - 1] = op.binary("sub", operands[i - 1], op.cast(is_before, DType::kInt64));
  }
  Shape shape(whole->shape.begin(), whole->shape.begin() + static_cast<std::ptrdiff_t>(axes));
  shape.insert(shape.end(), x->shape.begin() + 1, x->shape.end());
  operands[0] = op.view(whole, std::move(shape));
  Shape result = places;
  result.insert(result.end(), x->shape.begin() + 1, x->shape.end());
  return op.emit("aten.index.Tensor", operands,
                 Json{{"_tensor_list_sizes", Ints{static_cast<std::int64_t>(axes)}}}, x->dtype,
                 std::move(result));
}

Value* match_quotient(Op& op, Value* a, Value* b) {
  if (const auto six = op.single(b); six && is_near(*six, 6)) {
    const DraftNode* product = made_by(op, a, "aten.mul.Tensor");
    if (product == nullptr || product->inputs.size() != 2) return nullptr;
    Value* x = product->inputs[0];
    Value* clip = product->inputs[1];
    for (int turn = 0; turn < 2; ++turn, std::swap(x, clip)) {
      const DraftNode* clipped = made_by(op, clip, "aten.hardtanh.default");
      Value* operand = nullptr;
      if (clipped != nullptr && number_of(*clipped, "min_val") == 0.0 &&
          number_of(*clipped, "max_val") == 6.0 &&
          is_scaled_by(op, clipped->inputs[0], "aten.add.Tensor", 3, operand) && operand == x) {
        return op.emit_like("aten.hardswish.default", {x});
      }
    }
    return nullptr;
  }
  return layer_norm_of(op, a, b);
}

}  // namespace npu::onnx
