// SPDX-License-Identifier: Apache-2.0
// Evaluates what models compute with shapes: integer and float arithmetic, comparisons and moves of
// small constants. Only ops whose result is exact are computed, so a constant is the one
// that a device would have made; everything else stays in the document. O(elements), of which no
// operand and no result has more than Importer::kMostKnown.
#include "evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "support/checked.hpp"

namespace npu::onnx {
namespace {

/// A small constant: reals if the dtype is a float, else integers.
struct Numbers {
  DType dtype = DType::kInt64;
  Shape shape;
  std::vector<double> reals;
  Ints ints;

  bool is_real() const { return is_floating_point(dtype); }
  std::size_t size() const { return is_real() ? reals.size() : ints.size(); }
};

using Operands = std::vector<Numbers>;
using Result = std::optional<Numbers>;

Numbers numbers_of(const Tensor& tensor) {
  Numbers numbers{tensor.dtype(), tensor.shape(), {}, {}};
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    if (numbers.is_real()) {
      numbers.reals.push_back(tensor.value_as_double(i));
    } else if (tensor.dtype() == DType::kInt64) {
      numbers.ints.push_back(tensor.as<std::int64_t>()[i]);
    } else {
      numbers.ints.push_back(static_cast<std::int64_t>(tensor.value_as_double(i)));
    }
  }
  return numbers;
}

template <typename T>
void store(Tensor& tensor, const Ints& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.as_mutable<T>()[i] = static_cast<T>(values[i]);
  }
}

std::optional<Tensor> tensor_of(const Numbers& numbers) {
  Tensor tensor(numbers.dtype, numbers.shape);
  for (std::size_t i = 0; i < numbers.reals.size(); ++i) {
    const double value = numbers.reals[i];
    if (numbers.dtype == DType::kFloat32) {
      tensor.as_mutable<float>()[i] = static_cast<float>(value);
    } else if (numbers.dtype == DType::kFloat64) {
      tensor.as_mutable<double>()[i] = value;
    } else if (numbers.dtype == DType::kFloat16) {
      tensor.as_mutable<std::uint16_t>()[i] = float_to_float16(static_cast<float>(value));
    } else {
      tensor.as_mutable<std::uint16_t>()[i] = float_to_bfloat16(static_cast<float>(value));
    }
  }
  switch (numbers.dtype) {
    case DType::kInt8:
      store<std::int8_t>(tensor, numbers.ints);
      break;
    case DType::kUInt8:
      store<std::uint8_t>(tensor, numbers.ints);
      break;
    case DType::kInt16:
      store<std::int16_t>(tensor, numbers.ints);
      break;
    case DType::kInt32:
      store<std::int32_t>(tensor, numbers.ints);
      break;
    case DType::kInt64:
      store<std::int64_t>(tensor, numbers.ints);
      break;
    case DType::kBool:
      for (std::size_t i = 0; i < numbers.ints.size(); ++i) {
        tensor.as_mutable<std::uint8_t>()[i] = numbers.ints[i] != 0 ? 1 : 0;
      }
      break;
    case DType::kComplex64:
    case DType::kComplex128:
      return std::nullopt;
    default:
      break;
  }
  return tensor;
}

bool is_small(const Shape& shape) {
  const auto count = checked_element_count(shape);
  return count && *count <= Importer::kMostKnown;
}

// ---- Moves ----

// A tensor whose element i is element from(i) of `numbers`.
Numbers taken(const Numbers& numbers, const Shape& shape,
              const std::function<std::size_t(const Ints&)>& from) {
  Numbers result{numbers.dtype, shape, {}, {}};
  Ints at(shape.size(), 0);
  const std::int64_t count = checked_element_count(shape).value_or(0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t source = from(at);
    if (numbers.is_real()) {
      result.reals.push_back(numbers.reals[source]);
    } else {
      result.ints.push_back(numbers.ints[source]);
    }
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return result;
}

Ints strides_of(const Shape& shape) {
  Ints strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// The element of a tensor of `shape` that broadcasting reads for index `at` of a larger one.
std::size_t broadcast_index(const Shape& shape, const Ints& at) {
  std::size_t index = 0;
  const std::size_t skip = at.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    index = index * static_cast<std::size_t>(shape[d]) +
            (shape[d] == 1 ? 0 : static_cast<std::size_t>(at[skip + d]));
  }
  return index;
}

Numbers reshaped(Numbers numbers, Shape shape) {
  numbers.shape = std::move(shape);
  return numbers;
}

Result evaluate_gather(Op& op, const Operands& in) {
  if (in.size() != 2 || in[1].is_real()) return std::nullopt;
  const Shape& data = in[0].shape;
  const auto axis = static_cast<std::size_t>(
      Op::axis_of(op.integer("axis", 0), static_cast<std::int64_t>(data.size())));
  Shape shape(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), in[1].shape.begin(), in[1].shape.end());
  shape.insert(shape.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
  if (!is_small(shape)) return std::nullopt;
  for (const std::int64_t index : in[1].ints) {
    if (index < -data[axis] || index >= data[axis]) Op::refuse("an index is out of range");
  }
  const Ints strides = strides_of(data);
  return taken(in[0], shape, [&](const Ints& at) {
    const std::size_t rank = in[1].shape.size();
    const Ints index_at(at.begin() + static_cast<std::ptrdiff_t>(axis),
                        at.begin() + static_cast<std::ptrdiff_t>(axis + rank));
    std::int64_t index = in[1].ints[broadcast_index(in[1].shape, index_at)];
    if (index < 0) index += data[axis];
    std::int64_t source = index * strides[axis];
    for (std::size_t d = 0; d < data.size(); ++d) {
      if (d < axis) source += at[d] * strides[d];
      if (d > axis) source += at[d + rank - 1] * strides[d];
    }
    return static_cast<std::size_t>(source);
  });
}

Result evaluate_concat(Op& op, const Operands& in) {
  if (in.empty()) return std::nullopt;
  const std::int64_t axis = op.integer("axis", op.opset() < 4 ? 1 : 0);
  Shape shape = in[0].shape;
  const auto at_axis =
      static_cast<std::size_t>(Op::axis_of(axis, static_cast<std::int64_t>(shape.size())));
  Numbers result{in[0].dtype, {}, {}, {}};
  shape[at_axis] = 0;
  for (const Numbers& part : in) {
    if (part.dtype != in[0].dtype || part.shape.size() != shape.size()) return std::nullopt;
    if (product(part.shape, 0, at_axis) != 1) return std::nullopt;  // rows would interleave
    shape[at_axis] += part.shape[at_axis];
    result.reals.insert(result.reals.end(), part.reals.begin(), part.reals.end());
    result.ints.insert(result.ints.end(), part.ints.begin(), part.ints.end());
  }
  if (!is_small(shape) ||
      checked_element_count(shape) != static_cast<std::int64_t>(result.size())) {
    return std::nullopt;
  }
  return reshaped(std::move(result), shape);
}

Result evaluate_transpose(Op& op, const Operands& in) {
  const std::size_t rank = in[0].shape.size();
  Ints order;
  for (std::size_t i = rank; i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  if (auto given = op.list("perm")) order = *given;
  if (order.size() != rank) return std::nullopt;
  Shape shape;
  for (const std::int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return std::nullopt;
    shape.push_back(in[0].shape[static_cast<std::size_t>(axis)]);
  }
  if (checked_element_count(shape) != checked_element_count(in[0].shape)) return std::nullopt;
  const Ints strides = strides_of(in[0].shape);
  return taken(in[0], shape, [&](const Ints& at) {
    std::int64_t source = 0;
    for (std::size_t d = 0; d < rank; ++d)
      source += at[d] * strides[static_cast<std::size_t>(order[d])];
    return static_cast<std::size_t>(source);
  });
}

Result evaluate_expand(Op& /*op*/, const Operands& in) {
  if (in.size() != 2 || in[1].is_real()) return std::nullopt;
  const Shape shape = broadcast(in[0].shape, in[1].ints);
  if (!is_small(shape)) return std::nullopt;
  return taken(in[0], shape, [&](const Ints& at) { return broadcast_index(in[0].shape, at); });
}

Result evaluate_fill(Op& op, const Operands& in) {
  if (in.size() != 1 || in[0].is_real() || !is_small(in[0].ints)) return std::nullopt;
  Numbers value{DType::kFloat32, {}, {0}, {}};
  if (const OnnxTensor* given = op.tensor("value")) {
    value = numbers_of(decode_onnx_tensor(*given, op.importer().bytes(), 1));
  }
  if (value.size() != 1) return std::nullopt;
  return taken(value, in[0].ints, [](const Ints&) { return std::size_t{0}; });
}

Result evaluate_range(Op& /*op*/, const Operands& in) {
  if (in.size() != 3) return std::nullopt;
  for (const Numbers& number : in) {
    if (number.is_real() || number.size() != 1) return std::nullopt;
  }
  const std::int64_t start = in[0].ints[0];
  const std::int64_t limit = in[1].ints[0];
  const std::int64_t step = in[2].ints[0];
  if (step == 0) Op::refuse("a step of 0");
  Numbers result{in[0].dtype, {0}, {}, {}};
  for (std::int64_t value = start; step > 0 ? value < limit : value > limit;) {
    result.ints.push_back(value);
    if (result.ints.size() > static_cast<std::size_t>(Importer::kMostKnown)) return std::nullopt;
    if (__builtin_add_overflow(value, step, &value)) break;
  }
  result.shape = {static_cast<std::int64_t>(result.ints.size())};
  return result;
}

// ---- Arithmetic ----

Result evaluate_cast(Op& op, const Operands& in) {
  if (op.opset() < 6) return std::nullopt;
  const auto dtype = onnx_dtype(op.integer("to", 0));
  if (!dtype || *dtype == DType::kComplex64 || *dtype == DType::kComplex128) return std::nullopt;
  if (*dtype == DType::kBFloat16 && op.opset() < 19) return std::nullopt;
  Numbers result{*dtype, in[0].shape, {}, {}};
  for (std::size_t i = 0; i < in[0].size(); ++i) {
    const double real = in[0].is_real() ? in[0].reals[i] : static_cast<double>(in[0].ints[i]);
    if (result.is_real()) {
      result.reals.push_back(real);
    } else if (*dtype == DType::kBool) {
      result.ints.push_back(real != 0 ? 1 : 0);
    } else if (in[0].is_real()) {
      if (!(std::abs(real) < 0x1p31)) return std::nullopt;
      result.ints.push_back(static_cast<std::int64_t>(real));
    } else {
      result.ints.push_back(in[0].ints[i]);
    }
  }
  return result;
}

Result evaluate_unary(Op& op, const Operands& in) {
  const std::string_view name = op.node().op_type;
  Numbers result = in[0];
  for (double& x : result.reals) {
    if (name == "Neg") x = -x;
    if (name == "Abs") x = std::abs(x);
    if (name == "Floor") x = std::floor(x);
    if (name == "Ceil") x = std::ceil(x);
    if (name == "Sqrt") x = std::sqrt(x);
    if (name == "Relu") x = x > 0 ? x : std::isnan(x) ? x : 0;
  }
  for (std::int64_t& x : result.ints) {
    if (x == INT64_MIN) return std::nullopt;
    if (name == "Neg") x = -x;
    if (name == "Abs") x = std::abs(x);
    if (name == "Not") x = x != 0 ? 0 : 1;
    if (name == "Relu") x = std::max<std::int64_t>(x, 0);
  }
  return result;
}

std::optional<std::int64_t> integer_result(std::string_view name, std::int64_t a, std::int64_t b) {
  std::int64_t value = 0;
  if (name == "Add" && !__builtin_add_overflow(a, b, &value)) return value;
  if (name == "Sub" && !__builtin_sub_overflow(a, b, &value)) return value;
  if (name == "Mul" && !__builtin_mul_overflow(a, b, &value)) return value;
  if (name == "Div" && b != 0 && b != -1) return a / b;
  if (name == "Mod" && b > 0) return (a % b + b) % b;
  if (name == "Min") return std::min(a, b);
  if (name == "Max") return std::max(a, b);
  if (name == "And") return a != 0 && b != 0;
  if (name == "Or") return a != 0 || b != 0;
  if (name == "Xor") return (a != 0) != (b != 0);
  return std::nullopt;
}

std::optional<double> real_result(std::string_view name, double a, double b) {
  if (name == "Add") return a + b;
  if (name == "Sub") return a - b;
  if (name == "Mul") return a * b;
  if (name == "Div") return a / b;
  // Those whose rounding is that of their exact value.
  if (name == "Pow" && b == 2) return a * a;
  if (name == "Pow" && b == 0.5) return std::sqrt(a);
  if (name == "Pow" && b == -0.5) return 1 / std::sqrt(a);
  return std::nullopt;
}

template <typename T>
std::optional<bool> comparison(std::string_view name, T a, T b) {
  if (name == "Equal") return a == b;
  if (name == "Greater") return a > b;
  if (name == "Less") return a < b;
  if (name == "GreaterOrEqual") return a >= b;
  if (name == "LessOrEqual") return a <= b;
  return std::nullopt;
}

Result evaluate_binary(Op& op, const Operands& in) {
  if (in.size() != 2 || in[0].dtype != in[1].dtype || op.opset() < 7) return std::nullopt;
  if (op.node().op_type == "Mod" && op.integer("fmod", 0) != 0) return std::nullopt;
  const Shape shape = broadcast(in[0].shape, in[1].shape);
  if (!is_small(shape)) return std::nullopt;
  const Numbers a =
      taken(in[0], shape, [&](const Ints& at) { return broadcast_index(in[0].shape, at); });
  const Numbers b =
      taken(in[1], shape, [&](const Ints& at) { return broadcast_index(in[1].shape, at); });
  Numbers result{in[0].dtype, shape, {}, {}};
  const std::string_view name = op.node().op_type;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto truth = a.is_real() ? comparison(name, a.reals[i], b.reals[i])
                                   : comparison(name, a.ints[i], b.ints[i]);
    if (truth) {
      result.dtype = DType::kBool;
      result.ints.push_back(*truth ? 1 : 0);
    } else if (a.is_real()) {
      const auto value = real_result(name, a.reals[i], b.reals[i]);
      if (!value) return std::nullopt;
      result.reals.push_back(*value);
    } else {
      const auto value = integer_result(name, a.ints[i], b.ints[i]);
      if (!value) return std::nullopt;
      result.ints.push_back(*value);
    }
  }
  if (a.size() == 0 && comparison(name, 0, 0)) result.dtype = DType::kBool;
  return result;
}

Result evaluate_where(Op& /*op*/, const Operands& in) {
  if (in.size() != 3 || in[0].dtype != DType::kBool || in[1].dtype != in[2].dtype) {
    return std::nullopt;
  }
  const Shape shape = broadcast(broadcast(in[0].shape, in[1].shape), in[2].shape);
  if (!is_small(shape)) return std::nullopt;
  const auto wide = [&](const Numbers& x) {
    return taken(x, shape, [&](const Ints& at) { return broadcast_index(x.shape, at); });
  };
  const Numbers condition = wide(in[0]);
  Numbers result = wide(in[1]);
  const Numbers other = wide(in[2]);
  for (std::size_t i = 0; i < condition.size(); ++i) {
    if (condition.ints[i] != 0) continue;
    if (result.is_real()) {
      result.reals[i] = other.reals[i];
    } else {
      result.ints[i] = other.ints[i];
    }
  }
  return result;
}

// Products, sums and extrema of all elements of a list of integers.
Result evaluate_reduce(Op& op, const Operands& in) {
  if (in[0].is_real() || in[0].shape.size() != 1 || in[0].ints.empty()) return std::nullopt;
  if (op.integer("noop_with_empty_axes", 0) != 0) return std::nullopt;
  // The one axis there is, however it is stated.
  if (in.size() > 1 && op.opset() < (op.node().op_type == "ReduceSum" ? 13 : 18)) {
    return std::nullopt;
  }
  const Ints axes = in.size() > 1 ? in[1].ints : op.list("axes").value_or(Ints{});
  if (axes.size() > 1 || (axes.size() == 1 && axes[0] != 0 && axes[0] != -1)) return std::nullopt;
  const std::string_view name = op.node().op_type;
  const std::string_view verb = name == "ReduceProd"  ? "Mul"
                                : name == "ReduceSum" ? "Add"
                                : name == "ReduceMax" ? "Max"
                                                      : "Min";
  std::int64_t value = in[0].ints[0];
  for (std::size_t i = 1; i < in[0].ints.size(); ++i) {
    const auto next = integer_result(verb, value, in[0].ints[i]);
    if (!next) return std::nullopt;
    value = *next;
  }
  const Shape shape = op.integer("keepdims", 1) != 0 ? Shape{1} : Shape{};
  return Numbers{in[0].dtype, shape, {}, {value}};
}

Result evaluate_non_zero(Op& /*op*/, const Operands& in) {
  const std::size_t rank = in[0].shape.size();
  std::vector<Ints> found;
  Ints at(rank, 0);
  for (std::size_t i = 0; i < in[0].size(); ++i) {
    if (in[0].is_real() ? in[0].reals[i] != 0 : in[0].ints[i] != 0) found.push_back(at);
    for (std::size_t d = rank; d-- > 0;) {
      if (++at[d] < in[0].shape[d]) break;
      at[d] = 0;
    }
  }
  Numbers result{DType::kInt64,
                 {static_cast<std::int64_t>(rank), static_cast<std::int64_t>(found.size())},
                 {},
                 {}};
  for (std::size_t d = 0; d < rank; ++d) {
    for (const Ints& place : found) result.ints.push_back(place[d]);
  }
  return is_small(result.shape) ? Result(result) : std::nullopt;
}

// Sizes of which some are set, as exporters write index_copy. Of indices that are not apart any may
// count, so none does here.
Result evaluate_scatter(Op& op, const Operands& in) {
  if (in.size() != 3 || in[1].is_real() || in[0].shape.size() != 1 || in[2].dtype != in[0].dtype ||
      in[1].shape != in[2].shape || in[1].shape.size() != 1 ||
      op.text("reduction", "none") != "none") {
    return std::nullopt;
  }
  if (const std::int64_t axis = op.integer("axis", 0); axis != 0 && axis != -1) return std::nullopt;
  Numbers result = in[0];
  const auto count = static_cast<std::int64_t>(result.size());
  std::vector<bool> is_set(result.size(), false);
  for (std::size_t i = 0; i < in[1].ints.size(); ++i) {
    const std::int64_t index = in[1].ints[i] < 0 ? in[1].ints[i] + count : in[1].ints[i];
    if (index < 0 || index >= count) return std::nullopt;
    const auto at = static_cast<std::size_t>(index);
    if (is_set[at]) return std::nullopt;
    is_set[at] = true;
    if (result.is_real()) result.reals[at] = in[2].reals[i];
    if (!result.is_real()) result.ints[at] = in[2].ints[i];
  }
  return result;
}

struct EvaluationRow {
  Result (*evaluate)(Op& op, const Operands& in);
  std::size_t operands;  ///< at most
};

const std::map<std::string_view, EvaluationRow>& evaluations() {
  constexpr std::size_t kAny = SIZE_MAX;
  static const std::map<std::string_view, EvaluationRow> table{
      {"Abs", {evaluate_unary, 1}},
      {"Add", {evaluate_binary, 2}},
      {"And", {evaluate_binary, 2}},
      {"Cast", {evaluate_cast, 1}},
      {"Ceil", {evaluate_unary, 1}},
      {"Concat", {evaluate_concat, kAny}},
      {"ConstantOfShape", {evaluate_fill, 1}},
      {"Div", {evaluate_binary, 2}},
      {"Equal", {evaluate_binary, 2}},
      {"Expand", {evaluate_expand, 2}},
      {"Floor", {evaluate_unary, 1}},
      {"Gather", {evaluate_gather, 2}},
      {"Greater", {evaluate_binary, 2}},
      {"GreaterOrEqual", {evaluate_binary, 2}},
      {"Less", {evaluate_binary, 2}},
      {"LessOrEqual", {evaluate_binary, 2}},
      {"Max", {evaluate_binary, 2}},
      {"Min", {evaluate_binary, 2}},
      {"Mod", {evaluate_binary, 2}},
      {"Mul", {evaluate_binary, 2}},
      {"Neg", {evaluate_unary, 1}},
      {"NonZero", {evaluate_non_zero, 1}},
      {"Pow", {evaluate_binary, 2}},
      {"Not", {evaluate_unary, 1}},
      {"Or", {evaluate_binary, 2}},
      {"Range", {evaluate_range, 3}},
      {"ReduceMax", {evaluate_reduce, 2}},
      {"ReduceMin", {evaluate_reduce, 2}},
      {"ReduceProd", {evaluate_reduce, 2}},
      {"ReduceSum", {evaluate_reduce, 2}},
      {"Relu", {evaluate_unary, 1}},
      {"ScatterElements", {evaluate_scatter, 3}},
      {"Sqrt", {evaluate_unary, 1}},
      {"Sub", {evaluate_binary, 2}},
      {"Transpose", {evaluate_transpose, 1}},
      {"Where", {evaluate_where, 3}},
      {"Xor", {evaluate_binary, 2}}};
  return table;
}

}  // namespace

bool evaluate(Op& op) {
  if (!op.node().domain.empty() && op.node().domain != "ai.onnx") return false;
  const auto found = evaluations().find(op.node().op_type);
  if (found == evaluations().end() || op.input_count() == 0 || !op.wants(0) ||
      op.input_count() > found->second.operands) {
    return false;
  }
  // Shapes are always evaluated; what is larger, only as far as a hostile model cannot make it
  // last.
  constexpr std::int64_t kSmall = 256;
  Operands in;
  std::int64_t elements = 0;
  for (Value* value : op.inputs()) {
    if (value == nullptr) return false;
    if (value->dtype == DType::kComplex64 || value->dtype == DType::kComplex128) return false;
    const Tensor* tensor = op.importer().known(value);
    if (tensor == nullptr) return false;
    elements += tensor->element_count();
    in.push_back(numbers_of(*tensor));
  }
  if (elements > kSmall && !op.importer().may_spend(elements)) return false;
  const Result result = found->second.evaluate(op, in);
  if (!result) {
    op.forget_reads();  // those of the rule count
    return false;
  }
  const auto size = static_cast<std::int64_t>(result->size());
  if (size > kSmall && !op.importer().may_spend(size)) return false;
  auto tensor = tensor_of(*result);
  if (!tensor) return false;
  for (std::size_t i = 0; i < op.input_count(); ++i) op.in(i);
  op.set(0, op.constant_value(*std::move(tensor)));
  return true;
}

}  // namespace npu::onnx
