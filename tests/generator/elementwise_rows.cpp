// SPDX-License-Identifier: Apache-2.0
// Element-wise functions, comparisons, conversions, and tensors that are made of a number.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "op_rows.hpp"
#include "ops/op_name.hpp"

namespace npu::test {
namespace {

constexpr DType kBool = DType::kBool;

// ---- Functions of one number ----

double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }
double clamp(double x, double least, double most) {
  return x > most ? most : x < least ? std::min(least, most) : x;
}

using enum UnaryFunction::Kind;
const UnaryFunction kFunctions[] = {
    {"relu6", kExact, NPU_FUNCTION(clamp(x, 0, 6))},
    {"hardtanh", kExact, clamp, "min_val", "max_val"},
    {"clamp", kExact, clamp, "min", "max", -HUGE_VAL, HUGE_VAL},
    {"clamp_min", kExact, NPU_FUNCTION(clamp(x, a, HUGE_VAL)), "min"},
    {"clamp_max", kExact, NPU_FUNCTION(clamp(x, -HUGE_VAL, a)), "max"},
    {"threshold", kExact, NPU_FUNCTION(x > a || std::isnan(x) ? x : b), "threshold", "value"},
    {"leaky_relu", kRounded, NPU_FUNCTION(x > 0 ? x : a * x), "negative_slope"},
    {"elu", kBesideOne, NPU_FUNCTION(b*(x > 0 ? x : a * std::expm1(x))), "alpha", "scale"},
    {"selu", kBesideOne,
     NPU_FUNCTION(1.0507009873554805 * (x > 0 ? x : 1.6732632423543773 * std::expm1(x)))},
    {"celu", kBesideOne, NPU_FUNCTION(x > 0 ? x : a * std::expm1(x / a)), "alpha"},
    {"mish", kBesideSelf, NPU_FUNCTION(x* std::tanh(softplus(x)))},
    {"hardsigmoid", kBesideOne, NPU_FUNCTION(clamp(x + 3, 0, 6) / 6)},
    {"hardswish", kBesideSelf, NPU_FUNCTION(x* clamp(x + 3, 0, 6) / 6)},
    {"softplus", kRounded, NPU_FUNCTION(a* x > b ? x : softplus(a * x) / a), "beta", "threshold"},
    {"log_sigmoid", kBesideOne, NPU_FUNCTION(-softplus(-x))},
    {"rsqrt", kRounded, NPU_FUNCTION(1 / std::sqrt(x))},
    {"reciprocal", kRounded, NPU_FUNCTION(1 / x)},
    {"square", kRounded, NPU_FUNCTION(x* x)},
    {"sign", kExact,
     NPU_FUNCTION(x > 0           ? 1
                  : x < 0         ? -1
                  : std::isnan(x) ? 0
                                  : x)},
    {"isnan", kExact, NPU_FUNCTION(std::isnan(x))},
    {"isinf", kExact, NPU_FUNCTION(std::isinf(x))},
    {"isfinite", kExact, NPU_FUNCTION(std::isfinite(x))},
    {"logical_not", kExact, NPU_FUNCTION(x == 0)},
    {"floor", kExact, NPU_FUNCTION(std::floor(x))},
    {"ceil", kExact, NPU_FUNCTION(std::ceil(x))},
    {"round", kExact, NPU_FUNCTION(std::nearbyint(x))},
    {"trunc", kExact, NPU_FUNCTION(std::trunc(x))},
    {"expm1", kRounded, NPU_FUNCTION(std::expm1(x))},
    {"log", kRounded, NPU_FUNCTION(std::log(x))},
    {"log2", kRounded, NPU_FUNCTION(std::log2(x))},
    {"log10", kRounded, NPU_FUNCTION(std::log10(x))},
    {"log1p", kRounded, NPU_FUNCTION(std::log1p(x))},
    {"sin", kRounded, NPU_FUNCTION(std::sin(x))},
    {"cos", kRounded, NPU_FUNCTION(std::cos(x))},
    {"tan", kRounded, NPU_FUNCTION(std::tan(x))},
    {"asin", kRounded, NPU_FUNCTION(std::asin(x))},
    {"acos", kRounded, NPU_FUNCTION(std::acos(x))},
    {"atan", kRounded, NPU_FUNCTION(std::atan(x))},
    {"sinh", kRounded, NPU_FUNCTION(std::sinh(x))},
    {"cosh", kRounded, NPU_FUNCTION(std::cosh(x))},
    {"erf", kRounded, NPU_FUNCTION(std::erf(x))}};

constexpr std::string_view kOfPositive = "sqrt rsqrt log log2 log10";

void draw_function(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  const bool is_test = name.starts_with("is") || name == "logical_not";
  const bool is_clip = name.starts_with("clamp");
  if (is_test) d.dtype = draw_dtype(d, {DType::kInt32, DType::kInt64, kBool});
  if (is_clip && d.chance(20)) d.dtype = draw_dtype(d, {DType::kInt32, DType::kInt64});
  const bool positive = kOfPositive.find(name) != std::string_view::npos;
  d.subject(0, 5,
            positive && d.chance(90) ? Fill::kPositive
            : name == "reciprocal"   ? Fill::kNotZero
                                     : Fill::kAny);
  const auto bound = [&](double value) {
    return d.is_float() ? Json(value) : Json(static_cast<int>(value));
  };
  double least = d.number(), most = d.number();
  if (least > most) std::swap(least, most);
  if (name == "hardtanh") d.attrs = {{"min_val", least}, {"max_val", most}};
  if (is_clip && name != "clamp_max" && (name == "clamp_min" || d.chance(75)))
    d.attrs["min"] = bound(least);
  if (is_clip && name != "clamp_min" && (d.attrs.empty() || d.chance(75)))
    d.attrs["max"] = bound(most);
  if (name == "leaky_relu" && d.chance(70))
    d.attrs = {{"negative_slope", d.one_of({0.2, 0.3, 0.01, 1.5, -0.5})}};
  if ((name == "elu" || name == "celu") && d.chance(60))
    d.attrs = {{"alpha", d.one_of({0.7, 0.25, 1.5})}};
  if (name == "threshold") d.attrs = {{"threshold", least}, {"value", most}};
}

/// Whether an inexact number may be 0 or not.
bool is_truth_open(Bounded x) { return x.error > 0 && std::abs(x.value) <= x.error; }

Results function(const Call& call) {
  const std::string_view name = call.name();
  Results results = apply_to_all(find_function(kFunctions, name), call);
  if (name.starts_with("is") || name == "logical_not") results[0].dtype = kBool;
  for (std::size_t i = 0; i < results[0].data.size() && name == "logical_not"; ++i) {
    if (is_truth_open(call.operand(0).data[i])) results[0].data[i] = anything();
  }
  if (name == "sin" || name == "cos" || name == "tan") {
    const auto turn = [](double x) { return std::floor(x / std::numbers::pi - 0.5); };
    for (std::size_t i = 0; i < results[0].data.size(); ++i) {
      const Bounded x = call.operand(0).data[i];
      const bool has_pole = name == "tan" && turn(x.value - x.error) != turn(x.value + x.error);
      if (has_pole || x.error > 0.5) results[0].data[i] = anything();
    }
  }
  return results;
}

Results nan_to_num(const Call& call) {
  Values x = call.operand(0);
  const double most = x.dtype == DType::kBFloat16 ? 0x1.fep127 : Rounding::now().most;
  const double nan = call.number_or("nan", 0), high = call.number_or("posinf", most),
               low = call.number_or("neginf", -most);
  for (Bounded& element : x.data) {
    element = exactly(
        [&](double v) {
          return std::isnan(v) ? nan : v == HUGE_VAL ? high : v == -HUGE_VAL ? low : v;
        },
        element);
  }
  return {x};
}

// ---- Of two ----

Results prelu(const Call& call) {
  const Values& x = call.operand(0);
  Values slope = call.operand(1);
  if (x.rank() > 1) slope.shape.assign(index_of(x.rank() - 1), 1);
  if (!slope.shape.empty()) slope.shape[0] = std::ssize(slope.data);
  return {zip(x, slope, x.dtype, [](Bounded v, Bounded factor) {
    const Bounded positive{v.value > 0 ? 1.0 : 0.0, v.error > std::abs(v.value) ? 1.0 : 0.0};
    return select(positive, v, v * factor);
  })};
}

void draw_two(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  const bool is_bitwise = name.starts_with("bitwise") || d.op.find("__") != std::string::npos;
  const bool divides =
      name.starts_with("div") || name.starts_with("floor") || name == "remainder" || name == "fmod";
  if (is_bitwise) {
    d.dtype = d.one_of({kBool, DType::kInt32, DType::kInt64, DType::kInt8});
  } else if (divides) {
    d.dtype = draw_dtype(d, {DType::kInt32, DType::kInt64, DType::kInt16});
  } else if (name != "pow") {
    d.dtype = draw_dtype(d, {DType::kInt32, DType::kInt64, kBool, DType::kInt16, DType::kUInt8});
  }
  const Shape shape = d.subject(0, 5, name == "pow" && d.chance(90) ? Fill::kPositive : Fill::kAny);
  if (d.op.find("_mode") != std::string::npos)
    d.attrs["rounding_mode"] = d.chance(50) ? "floor" : "trunc";
  if (name == "bitwise_not") return;
  if (d.op.find("Scalar") != std::string::npos) {
    double number = divides && d.is_float() ? d.one_of({0.5, -1.5, 2.0, 0.3}) : d.number();
    if (name == "pow") number = d.one_of({2.0, 3.0, 0.5, -1.0, -0.5, 1.0, 0.0, 1.7});
    if (!d.is_float())
      number = static_cast<double>(d.dtype == DType::kUInt8 ? d.pick(1, 5)
                                                            : d.one_of<int>({-3, -1, 2, 5}));
    Json value = d.is_float() ? Json(number) : Json(static_cast<int>(number));
    if (d.dtype == kBool) value = number > 0;
    d.attrs[d.op == "aten.pow.Scalar" ? "self"
            : name == "pow"           ? "exponent"
                                      : "other"] =
        d.op == "aten.pow.Scalar" ? Json(std::abs(number) + 0.25) : value;
    return;
  }
  if (d.op == "aten.fill.Tensor" || d.op == "aten.fill_.Tensor") return d.beside(Shape{}, 50);
  d.beside(d.broadcast_to(shape), 60, divides ? Fill::kNotZero : Fill::kAny);
}

Bounded compare(std::string_view name, Bounded x, Bounded y) {
  const double a = x.value, b = y.value;
  const bool truth = name == "eq"   ? a == b
                     : name == "ne" ? a != b
                     : name == "lt" ? a < b
                     : name == "le" ? a <= b
                     : name == "gt" ? a > b
                                    : a >= b;
  const double error = x.error + y.error;
  const bool is_open = error > 0 && (!std::isfinite(error) || std::abs(a - b) <= error);
  return {truth ? 1.0 : 0.0, is_open ? 1.0 : 0.0};
}

Results comparison(const Call& call) {
  const Values& x = call.tensor("self");
  const std::string name(call.name());
  return {zip(x, call.tensor_or_number("other", x.dtype), kBool,
              [&](Bounded a, Bounded b) { return compare(name, a, b); })};
}

Results logical(const Call& call) {
  const std::string name(call.name());
  return {zip(call.operand(0), call.operand(1), kBool, [&](Bounded x, Bounded y) {
    const bool a = x.value != 0, b = y.value != 0;
    const bool truth = name == "logical_and" ? a && b : name == "logical_or" ? a || b : a != b;
    return Bounded{truth ? 1.0 : 0.0, is_truth_open(x) || is_truth_open(y) ? 1.0 : 0.0};
  })};
}

Results bitwise(const Call& call) {
  const Values& x = call.tensor("self");
  const std::string name = call.op();
  const bool is_bool = x.dtype == kBool;
  const auto joined = [&](Bounded a, Bounded b) {
    const auto i = static_cast<std::int64_t>(a.value), k = static_cast<std::int64_t>(b.value);
    const std::int64_t bits = name.find("not") != std::string::npos   ? (is_bool ? 1 - i : ~i)
                              : name.find("and") != std::string::npos ? i & k
                              : name.find("xor") != std::string::npos ? i ^ k
                                                                      : i | k;
    return Bounded{static_cast<double>(bits), a.error + b.error > 0 ? anything().error : 0};
  };
  if (name.find("not") != std::string::npos) return {zip(x, x, x.dtype, joined)};
  return {zip(x, call.tensor_or_number("other", x.dtype), x.dtype, joined)};
}

/// Quotients and remainders that jump where a quotient is an integer.
Bounded divided(std::string_view name, std::string_view mode, Bounded x, Bounded y) {
  const Bounded quotient = x / y;
  const auto floor = [](double v) { return std::floor(v); };
  const auto trunc = [](double v) { return std::trunc(v); };
  const bool truncates = mode == "trunc" || name == "fmod";
  const double whole = truncates ? std::trunc(x.value / y.value) : std::floor(x.value / y.value);
  Bounded steps = truncates ? exactly(trunc, quotient) : exactly(floor, quotient);
  const bool is_rest = name == "fmod" || name == "remainder";
  // PyTorch takes the rest of a division that rounds down first, which is NaN of an infinity.
  if (!is_rest && !truncates && std::isinf(x.value) && y.value != 0)
    return x.error == 0 && y.error == 0 ? Bounded{std::nan(""), 0} : anything();
  // And of a number by an infinity that number, so that other signs give -1.
  if (!is_rest && !truncates && std::isinf(y.value) && std::isfinite(x.value)) {
    if (x.error > 0 || y.error > 0) return anything();
    return {x.value != 0 && (x.value < 0) != (y.value < 0) ? -1.0 : steps.value, 0};
  }
  if (!is_rest) return steps;
  // libtorch's vectors take the quotient, which has to be a number.
  if (!quotient.is_known()) return anything();
  double rest = std::fmod(x.value, y.value);
  if (!truncates && rest != 0 && (rest < 0) != (y.value < 0)) rest += y.value;
  const bool is_exact = x.error == 0 && y.error == 0;
  if (is_exact) return rounded(rest, 0, std::abs(rest) + std::abs(y.value));
  const double jump = steps.error > 0 ? std::abs(y.value) : 0;
  return rounded(rest, x.error + std::abs(whole) * y.error + jump,
                 std::abs(x.value) + std::abs(y.value));
}

Results division(const Call& call) {
  const Values& x = call.tensor("self");
  const std::string name(call.name()), mode = call.text("rounding_mode");
  return {zip(x, call.tensor_or_number("other", x.dtype), x.dtype,
              [&](Bounded a, Bounded b) { return divided(name, mode, a, b); })};
}

Results power(const Call& call) {
  const DType dtype = call.operand(0).dtype;
  const Values x = call.tensor_or_number("self", dtype);
  const Values e = call.tensor_or_number("exponent", dtype);
  return {zip(x, e, dtype, [](Bounded a, Bounded b) {
    // PyTorch takes roots there, which minus infinity has none of.
    if (a.value == -HUGE_VAL && std::abs(b.value) == 0.5) return anything();
    Bounded y = apply([&](double v) { return std::pow(v, b.value); }, a);
    y.error += variation([&](double v) { return std::pow(a.value, v); }, b);
    return y;
  })};
}

Results copied(const Call& call) {
  const Values& x = call.tensor("self");
  const Values from =
      call.name() == "fill" ? call.tensor_or_number("value", x.dtype) : call.tensor("src");
  return {zip(x, from, x.dtype, [](Bounded, Bounded b) { return b; })};
}

// ---- Choices ----

constexpr std::initializer_list<DType> kChosen{DType::kInt32, DType::kInt64, kBool, DType::kInt8};

void draw_where(NodeDraw& d) {
  const DType given = d.dtype;
  d.dtype = d.op.ends_with(".Scalar") ? DType::kFloat32 : draw_dtype(d, kChosen);
  const DType type = d.dtype;
  const Json number = d.is_float() ? Json(d.number()) : type == kBool ? Json(true) : Json(3);
  const Json second = d.is_float() ? Json(d.number()) : number;
  const bool self = d.op.ends_with(".self") || d.op.ends_with("ScalarOther");
  const bool other = d.op.ends_with(".self") || d.op.ends_with("ScalarSelf");
  if (!self && !other) {
    d.dtype = kBool;
    d.subject(0, 5);
    d.dtype = given;
  } else {
    const Shape shape = d.subject(0, 5);
    d.beside({.shape = d.broadcast_to(shape), .dtype = kBool}, 40);
    std::swap(d.operands[0], d.operands[1]);
    if (self && other) d.beside(d.broadcast_to(shape), 50);
    if (self && other && d.chance(30)) std::swap(d.operands[1], d.operands[2]);
  }
  if (!self) d.attrs["self"] = number;
  if (!other) d.attrs["other"] = second;
}

Results where(const Call& call) {
  const Values& condition = call.tensor("condition");
  const Values* first = call.find("self");
  const DType dtype = first != nullptr                ? first->dtype
                      : call.find("other") != nullptr ? call.tensor("other").dtype
                                                      : DType::kFloat32;
  const Values a = call.tensor_or_number("self", dtype), b = call.tensor_or_number("other", dtype);
  Values result = make_values(broadcast_shape({&condition.shape, &a.shape, &b.shape}), dtype);
  for_each_place(result.shape, [&](std::size_t i, const Shape& place) {
    result.data[i] =
        select(broadcast_at(condition, place), broadcast_at(a, place), broadcast_at(b, place));
  });
  return {result};
}

void draw_masked_fill(NodeDraw& d) {
  d.dtype = draw_dtype(d, {DType::kInt32, DType::kInt64, kBool});
  const Shape shape = d.subject(0, 5);
  d.beside({.shape = d.broadcast_to(shape), .dtype = kBool}, 40);
  if (d.op.ends_with("Tensor")) return d.beside(Shape{}, 50);
  d.attrs["value"] = d.dtype == kBool ? Json(true)
                     : d.is_float()
                         ? d.one_of<Json>({Json("-inf"), Json(-100.0), Json(0), Json(d.number())})
                         : Json(7);
}

Results masked_fill(const Call& call) {
  const Values& x = call.tensor("self");
  const Values value = call.tensor_or_number("value", x.dtype);
  return {zip(x, call.tensor("mask"), x.dtype,
              [&](Bounded a, Bounded mask) { return select(mask, value.data[0], a); })};
}

void draw_tensor_clamp(NodeDraw& d) {
  d.dtype = draw_dtype(d, {DType::kInt32, DType::kInt64});
  const Shape shape = d.subject(0, 4);
  d.beside(d.broadcast_to(shape), 60);
  if (d.op == "aten.clamp.Tensor") d.beside(d.broadcast_to(shape), 60);
}

Results tensor_clamp(const Call& call) {
  Values x = call.tensor("self");
  if (const Values* least = call.find("min")) x = zip(x, *least, x.dtype, larger);
  if (const Values* most = call.find("max")) x = zip(x, *most, x.dtype, smaller);
  return {x};
}

// ---- Conversions ----

Bounded converted(Bounded x, DType from, DType to) {
  if (to == kBool) return {x.value != 0 ? 1.0 : 0.0, is_truth_open(x) || !x.is_known() ? 1.0 : 0.0};
  if (is_floating_point(to)) {
    if (x.error > 0 || to == DType::kFloat64) {
      Values one{{}, to, {x}};
      if (to != from && to != DType::kFloat64) store(one);
      return one.data[0];
    }
    Tensor tensor(to, {});
    set_element(tensor, 0, x.value);
    return {tensor.value_as_double(0), 0};
  }
  if (!is_floating_point(from)) return x;
  // What the integer does not hold may give anything.
  const double bits = 8.0 * static_cast<double>(dtype_size(to)) - (to == DType::kUInt8 ? 0 : 1);
  const double least = to == DType::kUInt8 ? 0 : -std::exp2(bits);
  const Bounded whole = exactly([](double v) { return std::trunc(v); }, x);
  const bool is_held =
      whole.value - whole.error >= least && whole.value + whole.error < std::exp2(bits);
  return is_held ? whole : anything();
}

const std::initializer_list<DType> kAll{
    DType::kFloat64, DType::kBFloat16, DType::kFloat16, DType::kInt8, DType::kUInt8,
    DType::kInt16,   DType::kInt32,    DType::kInt64,   kBool,        DType::kFloat32};

void draw_cast(NodeDraw& d) {
  if (d.chance(30)) d.dtype = d.one_of(kAll);
  d.subject(0, 5);
  const DType to = d.one_of(kAll);
  if (d.op == "aten.type_as.default") return d.beside({.shape = {2}, .dtype = to}, 50);
  d.attrs["dtype"] = "torch." + std::string(dtype_name(to));
}

Results cast(const Call& call) {
  Values x = call.operand(0);
  const DType to =
      call.operand_count() > 1 ? call.operand(1).dtype : call.dtype_or("dtype", x.dtype);
  for (Bounded& element : x.data) element = converted(element, x.dtype, to);
  x.dtype = to;
  if (!is_floating_point(to)) store(x);
  return {x};
}

// ---- Of one number ----

void draw_creation(NodeDraw& d) {
  const std::string name(functional_name(d.op));
  const bool is_new = name.starts_with("new_"),
             is_fill = name == "fill" || d.op == "aten.zero_.default";
  const bool from_tensor = is_new || is_fill || name.ends_with("like");
  if (name == "arange") {
    const std::int64_t start = d.op == "aten.arange.default" ? 0 : d.pick(-5, 5),
                       step = d.op.ends_with("step") ? d.pick(1, 3) : 1;
    d.attrs = {{"end", start + d.pick(1, 20)}, {"dtype", "torch.int64"}};
    if (d.op != "aten.arange.default") d.attrs["start"] = start;
    if (d.op.ends_with("step")) d.attrs["step"] = step;
    return;
  }
  if (name == "linspace") {
    d.attrs = {{"start", d.pick(-3, 0)},
               {"end", d.pick(1, 9)},
               {"steps", d.pick(1, 20)},
               {"dtype", "torch.float32"}};
    return;
  }
  DType type = from_tensor ? draw_dtype(d, kAll) : d.one_of(kAll);
  const Shape shape = d.shape(0, 4);
  if (from_tensor) {
    d.dtype = type;
    d.subject(0, 4);
  }
  if (!from_tensor || (!is_fill && d.chance(50))) {
    type = d.one_of(kAll);
    d.attrs["dtype"] = "torch." + std::string(dtype_name(type));
  }
  if (is_new || (!from_tensor && name != "scalar_tensor")) d.attrs["size"] = shape;
  const Json number = type == kBool             ? Json(true)
                      : is_floating_point(type) ? Json(d.number())
                                                : Json(3);
  if (name.find("full") != std::string::npos) d.attrs["fill_value"] = number;
  if (name == "fill") d.attrs["value"] = number;
  if (name == "scalar_tensor") d.attrs["s"] = number;
}

Results creation(const Call& call) {
  const std::string_view name = call.name();
  if (name == "arange" || name == "linspace") {
    const double start = call.number_or("start", 0), end = call.number("end");
    const double steps = call.number_or("steps", 0);
    const double step =
        name == "arange" ? call.number_or("step", 1) : (end - start) / std::max(steps - 1, 1.0);
    const double count = name == "arange" ? std::ceil((end - start) / step) : steps;
    Values values =
        make_values({static_cast<std::int64_t>(count)}, call.dtype_or("dtype", DType::kFloat32));
    for (std::size_t i = 0; i < values.data.size(); ++i) {
      values.data[i].value = start + static_cast<double>(i) * step;
      if (name == "linspace") values.data[i].error = 0x1p-23 * (std::abs(start) + std::abs(end));
    }
    return {values};
  }
  const bool like = call.operand_count() > 0;
  const DType dtype = call.dtype_or("dtype", like ? call.operand(0).dtype : DType::kFloat32);
  const Shape shape = call.has("size") ? call.integers("size")
                      : like           ? call.operand(0).shape
                                       : Shape{};
  double number = name.find("ones") != std::string_view::npos ? 1 : 0;
  for (const char* key : {"fill_value", "value", "s"}) number = call.number_or(key, number);
  Values values = make_values(shape, dtype);
  for (Bounded& element : values.data) element = converted({number, 0}, DType::kFloat64, dtype);
  return {values};
}

const OpRow kRows[] = {
    {"sign floor ceil round trunc isnan isinf isfinite logical_not", draw_function, function,
     kNothing},
    {"relu6 hardtanh clamp.default clamp_.default clamp_min.default clamp_max.default threshold",
     draw_function, function},
    {"leaky_relu elu selu celu mish hardsigmoid hardswish softplus log_sigmoid", draw_function,
     function},
    {"rsqrt reciprocal square expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh erf",
     draw_function, function},
    {"nan_to_num", draw_function, nan_to_num, kNothing},
    {"prelu", nullptr, prelu},
    {"eq ne lt le gt ge", draw_two, comparison, kNothing},
    {"logical_and logical_or logical_xor", draw_two, logical, kNothing},
    {"bitwise_not bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__", draw_two, bitwise,
     kNothing},
    {"div floor_divide remainder fmod", draw_two, division},
    {"pow", draw_two, power},
    {"copy fill.Tensor fill_.Tensor", draw_two, copied, kNothing},
    {"where", draw_where, where, kNothing},
    {"masked_fill", draw_masked_fill, masked_fill, kNothing},
    {"clamp.Tensor clamp_min.Tensor clamp_max.Tensor", draw_tensor_clamp, tensor_clamp, kNothing},
    {"to _to_copy type_as", draw_cast, cast, kNothing},
    {"full full_like zeros zeros_like ones ones_like new_zeros new_ones new_full fill.Scalar "
     "fill_.Scalar zero scalar_tensor arange linspace",
     draw_creation, creation, kNothing}};

}  // namespace

std::span<const OpRow> elementwise_rows() { return kRows; }

DType draw_dtype(NodeDraw& draw, std::initializer_list<DType> others) {
  return draw.chance(65) ? draw.dtype : draw.one_of(others);
}

const OpRow* row_of(std::string_view op_type) {
  for (const auto rows : {common_ops(), elementwise_rows(), movement_rows(), index_rows(),
                          layer_rows(), reduction_rows(), sampling_rows()}) {
    if (const OpRow* row = find_row(rows, op_type)) return row;
  }
  return nullptr;
}

Results results_of(const Call& call) {
  const OpRow* row = row_of(call.op());
  if (row == nullptr) refuse("no definition of " + call.op());
  return evaluate(*row, call);
}

}  // namespace npu::test
