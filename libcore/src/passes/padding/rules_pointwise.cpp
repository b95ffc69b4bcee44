// SPDX-License-Identifier: Apache-2.0
// Rules of ops that treat every element, or every element of a shape, alone: element-wise ops with
// and without broadcasting, tensors that are made of attributes, triangles, npu.tail.
//
// What a function makes of 0, of minus infinity and of finite numbers is a table by name; what is
// not in it keeps repeated rows and nothing else. O(operands x rank) for a node.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "ops/op_name.hpp"
#include "passes/padding/row_rules.hpp"
#include "passes/padding/rule_parts.hpp"

namespace npu::padding {

ValueClass least_value(const PaddedNode& node) {
  ValueClass least = ValueClass::kFinite;
  for (std::size_t i = 0; i < node.operands(); ++i) least = std::max(least, node.value(i));
  return least;
}

std::string fixed_size_text(std::size_t operand, std::int32_t dim) {
  return "dimension " + std::to_string(dim) + " of its result varies, that of operand " +
         std::to_string(operand) + " does not";
}

ResultDim moved_dim(std::int32_t result, std::int32_t dim, Place from) {
  return {.result = result,
          .dim = dim,
          .from = {from},
          .values = {from},
          .value_operands = 1,
          .repeat = Keep::kAll,
          .zero = Keep::kAll,
          .lowest = Keep::kAll,
          .finite = Keep::kAll};
}

ResultDim shifted_dim(std::int32_t result, std::int32_t dim, Place from) {
  ResultDim along = moved_dim(result, dim, from);
  along.repeat = Keep::kNo;
  return along;
}

std::string quoted_size(const SizeExpression& size) { return "'" + size.text() + "'"; }

namespace {

/// What an element-wise op makes of numbers.
struct PointwiseTraits {
  std::string_view name;
  Keep zero = Keep::kNo;
  Keep finite = Keep::kAll;
  Keep lowest = Keep::kNo;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr Keep kNo = Keep::kNo;
constexpr Keep kAll = Keep::kAll;
constexpr Keep kAny = Keep::kAny;

// Sorted by name.
constexpr PointwiseTraits kPointwiseTraits[] = {
    {"__and__", kAny},
    {"__or__", kAll},
    {"__xor__", kAll},
    {"_assert_tensor_metadata", kAll},
    {"_native_batch_norm_legit_no_training"},
    {"_to_copy", kAll, kAll, kAll},
    {"abs", kAll},
    {"add", kAll, kAll, kAny},
    {"addcmul"},
    {"alpha_dropout", kAll, kAll, kAll},
    {"asinh", kAll},
    {"atan", kAll},
    {"atan2"},
    {"batch_norm"},
    {"bitwise_and", kAny},
    {"bitwise_not"},
    {"bitwise_or", kAll},
    {"bitwise_xor", kAll},
    {"ceil", kAll, kAll, kAll},
    {"celu", kAll},
    {"clamp"},
    {"clamp_max"},
    {"clamp_min"},
    {"clone", kAll, kAll, kAll},
    {"cos"},
    {"div", kNo, kNo},
    {"dropout", kAll, kAll, kAll},
    {"elu", kAll},
    {"eq"},
    {"erf", kAll},
    {"erfc"},
    {"feature_dropout", kAll, kAll, kAll},
    {"floor", kAll, kAll, kAll},
    {"frac", kAll},
    {"ge"},
    {"gelu", kAll},
    {"gt"},
    {"hardshrink", kAll},
    {"hardsigmoid"},
    {"hardswish", kAll},
    {"hardtanh"},
    {"isfinite"},
    {"isinf", kAll},
    {"isnan", kAll},
    {"le"},
    {"leaky_relu", kAll},
    {"lerp"},
    {"lift_fresh_copy", kAll, kAll, kAll},
    {"log_sigmoid"},
    {"logical_and", kAny},
    {"logical_not"},
    {"logical_or", kAll},
    {"logical_xor", kAll},
    {"lt"},
    {"max", kAll, kAll, kAll},
    {"maximum", kAll, kAll, kAll},
    {"min", kAll, kAll, kAll},
    {"minimum", kAll, kAll, kAll},
    {"mish", kAll},
    {"mul", kAny},
    {"nan_to_num", kAll},
    {"ne"},
    {"neg", kAll},
    {"outer", kAny},
    {"prelu", kAll},
    {"relu", kAll},
    {"relu6", kAll},
    {"round", kAll, kAll, kAll},
    {"rsub"},
    {"selu", kAll},
    {"sigmoid"},
    {"sign", kAll},
    {"silu", kAll},
    {"sin", kAll},
    {"softplus"},
    {"softshrink", kAll},
    {"square", kAll},
    {"sub", kAll},
    {"tanh", kAll},
    {"to", kAll, kAll, kAll},
    {"trunc", kAll, kAll, kAll},
    {"type_as", kAll, kAll, kAll},
};

constexpr bool traits_are_sorted() {
  for (std::size_t i = 1; i < std::size(kPointwiseTraits); ++i) {
    if (!(kPointwiseTraits[i - 1].name < kPointwiseTraits[i].name)) return false;
  }
  return true;
}
static_assert(traits_are_sorted());

// Whether an argument is a number: not only those of overloads with a Scalar are.
bool is_number(const PaddedNode& node, std::string_view argument) {
  const BoundArgument* bound = node.bound().find(argument);
  return bound != nullptr && bound->kind == BoundArgument::Kind::kValue;
}

// Functions whose arguments say what they make of 0.
void look_at_numbers(const PaddedNode& node, std::string_view name, PointwiseTraits& traits) {
  if (name == "clamp" || name == "clamp_min" || name == "clamp_max" || name == "hardtanh") {
    if (node.operands() != 1) return;
    const bool is_hardtanh = name == "hardtanh";
    const double min = node.number_or(is_hardtanh ? "min_val" : "min", -kInfinity);
    const double max = node.number_or(is_hardtanh ? "max_val" : "max", kInfinity);
    if (min <= 0 && max >= 0) traits.zero = kAll;
    return;
  }
  if (name == "pow" && is_number(node, "exponent")) {
    const double exponent = node.number_or("exponent", -1);
    if (exponent > 0) traits.zero = kAll;
    if (exponent >= 0 && exponent == std::floor(exponent)) traits.finite = kAll;
    return;
  }
  if (!is_number(node, "other")) return;
  const double other = node.number_or("other", kNoNumber);
  const bool is_finite = std::isfinite(other);
  if (name == "mul" || name == "div") {
    const bool keeps = is_finite && (name == "mul" || other != 0);
    traits.zero = keeps ? kAll : kNo;
    traits.finite = keeps ? kAll : kNo;
    traits.lowest = keeps && other > 0 ? kAll : kNo;
  } else if (name == "add" || name == "sub") {
    traits.zero = other == 0 ? kAll : kNo;
    traits.finite = is_finite ? kAll : kNo;
    traits.lowest = is_finite ? kAll : kNo;
  } else if (name == "exp2" || name == "rsub") {
    traits.finite = is_finite ? kAll : kNo;
  } else if (name.find("or") != std::string_view::npos) {  // bitwise ones, and those of Python
    traits.zero = other == 0 ? kAll : kNo;
  }
}

PointwiseTraits traits_of(const PaddedNode& node) {
  const std::string& op_type = node.node().op_type;
  if (is_quantization(op_type) || is_dequantization(op_type)) {
    const BoundArgument* zero_point = node.bound().find("zero_point");
    const bool is_symmetric = zero_point != nullptr &&
                              zero_point->kind == BoundArgument::Kind::kValue &&
                              node.integer_or("zero_point", 1) == 0;
    return {.name = "quantized", .zero = is_symmetric ? kAll : kNo};
  }
  const std::string_view name = functional_name(op_type);
  const auto* row = std::ranges::lower_bound(kPointwiseTraits, name, {}, &PointwiseTraits::name);
  PointwiseTraits traits{.name = name, .finite = kNo};
  if (row != std::end(kPointwiseTraits) && row->name == name) traits = *row;
  look_at_numbers(node, name, traits);
  return traits;
}

/// One of the forms of `where` and `masked_fill`: operands whose values it hands on, and the
/// number that it puts in, if that is an attribute.
struct Choice {
  std::vector<std::size_t> operands;
  std::vector<double> numbers;
};

std::optional<Choice> choice_of(const PaddedNode& node, std::string_view name) {
  if (name != "where" && name != "masked_fill") return std::nullopt;
  Choice choice;
  const bool is_where = name == "where";
  constexpr std::array<std::string_view, 2> kOfWhere{"self", "other"};
  constexpr std::array<std::string_view, 2> kOfFill{"self", "value"};
  for (const std::string_view argument : is_where ? kOfWhere : kOfFill) {
    if (const auto operand = node.argument(argument)) {
      choice.operands.push_back(*operand);
    } else {
      choice.numbers.push_back(node.number_or(argument, kNoNumber));
    }
  }
  return choice;
}

Place trailing_place(const PaddedNode& node, std::size_t operand, std::int32_t dim,
                     std::int32_t rank) {
  return {static_cast<std::int32_t>(operand), dim - (rank - node.rank(operand))};
}

ValueClass value_of_number(double number) {
  if (std::isfinite(number)) return ValueClass::kFinite;
  return number < 0 ? ValueClass::kNotAbove : ValueClass::kAny;
}

ValueClass pointwise_value(const PaddedNode& node, const PointwiseTraits& traits,
                           const std::optional<Choice>& choice) {
  if (choice) {
    ValueClass value = ValueClass::kFinite;
    for (const std::size_t i : choice->operands) value = std::max(value, node.value(i));
    for (const double number : choice->numbers) value = std::max(value, value_of_number(number));
    return value;
  }
  constexpr std::array<std::string_view, 5> kAlwaysFinite{"sigmoid", "tanh", "exp", "nan_to_num",
                                                          "relu"};
  const ValueClass least = least_value(node);
  if (least == ValueClass::kNotAbove) {
    if (std::find(kAlwaysFinite.begin(), kAlwaysFinite.end(), traits.name) != kAlwaysFinite.end()) {
      return ValueClass::kFinite;
    }
    if (traits.lowest == kNo) return ValueClass::kAny;
  }
  return least;
}

// The other operands have a number for each channel, dimension 1, whatever lies behind it.
NodeRule by_channel_rule(const PaddedNode& node, Keep zero) {
  NodeRule rule;
  rule.value = least_value(node);
  if (node.operand_varies(0, 1)) return refuse_rule("its channels vary");
  add_rowwise(
      rule, node, 0, 0, [](std::int32_t d) { return d; }, zero, Keep::kAll);
  return rule;
}

}  // namespace

NodeRule pointwise_rule(const PaddedNode& node) {
  NodeRule rule;
  const std::string_view name = functional_name(node.node().op_type);
  if (name.find("batch_norm") != std::string_view::npos) {
    if (node.bound().find("training") && node.bound().boolean("training")) {
      return refuse_rule("a batch norm in training mixes padding into its statistics");
    }
    return by_channel_rule(node, Keep::kNo);
  }
  if (name == "prelu" && node.rank(0) > 1) return by_channel_rule(node, Keep::kAll);
  const PointwiseTraits traits = traits_of(node);
  const std::optional<Choice> choice = choice_of(node, name);
  rule.value = pointwise_value(node, traits, choice);
  const auto rank = static_cast<std::int32_t>(node.result().size());
  const auto counts = [&](std::size_t operand) {
    return !choice || std::find(choice->operands.begin(), choice->operands.end(), operand) !=
                          choice->operands.end();
  };
  for (const std::int32_t dim : node.varying_dims(0)) {
    ResultDim along{.result = 0, .dim = dim};
    for (std::size_t i = 0; i < node.operands(); ++i) {
      if (counts(i)) ++along.value_operands;
      const Place place = trailing_place(node, i, dim, rank);
      if (!node.operand_varies(i, place.dim)) {
        if (!node.broadcasts(i, place.dim)) return refuse_rule(fixed_size_text(i, dim));
        continue;
      }
      along.from.push_back(place);
      if (counts(i)) along.values.push_back(place);
    }
    along.repeat = Keep::kAll;
    if (choice) {
      const auto all = [&](auto is) {
        return std::all_of(choice->numbers.begin(), choice->numbers.end(), is) ? kAll : kNo;
      };
      along.zero = all([](double number) { return number == 0; });
      along.lowest = all([](double number) { return number == -kInfinity; });
      along.finite = all([](double number) { return std::isfinite(number); });
    } else {
      along.zero = traits.zero;
      along.lowest = traits.lowest;
      along.finite = traits.finite;
      along.zero_from_lowest = name == "exp" || name == "sigmoid" || name == "relu";
    }
    rule.results.push_back(std::move(along));
  }
  return rule;
}

NodeRule create_rule(const PaddedNode& node) {
  NodeRule rule;
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "linspace") return refuse_rule("linspace has other numbers for each number of steps");
  if (name.starts_with("empty") || name == "new_empty") {
    return refuse_rule("what it holds is not defined");
  }
  const bool is_zero = name.find("zero") != std::string_view::npos;
  const bool is_one = name.find("ones") != std::string_view::npos;
  const bool is_full = name.find("full") != std::string_view::npos || name == "fill";
  double number = is_zero ? 0 : 1;
  if (is_full) number = node.number_or(name == "fill" ? "value" : "fill_value", kNoNumber);
  if (name == "copy") {
    // Its second operand, broadcast to the shape of the first.
    const std::size_t source = 1;
    const auto rank = static_cast<std::int32_t>(node.result().size());
    for (const std::int32_t dim : node.varying_dims(0)) {
      const Place place = trailing_place(node, source, dim, rank);
      ResultDim along = moved_dim(0, dim, place);
      if (!node.operand_varies(source, place.dim)) {
        along = {.result = 0, .dim = dim, .repeat = Keep::kYes, .finite = Keep::kAll};
      }
      rule.results.push_back(std::move(along));
    }
    rule.value = node.value(source);
  } else {
    if (is_full && std::isnan(number) && node.operands() < 2) rule.value = ValueClass::kAny;
    if (!std::isnan(number)) rule.value = value_of_number(number);
    const bool is_uniform = is_zero || is_one || is_full;
    for (const std::int32_t dim : node.varying_dims(0)) {
      ResultDim along{.result = 0, .dim = dim};
      along.repeat = is_uniform ? Keep::kYes : Keep::kNo;
      along.zero = is_uniform && number == 0 ? Keep::kYes : Keep::kNo;
      along.lowest = is_uniform && number == -kInfinity ? Keep::kYes : Keep::kNo;
      along.finite = rule.value == ValueClass::kFinite ? Keep::kYes : Keep::kNo;
      rule.results.push_back(std::move(along));
    }
  }
  // Of an operand only shape and dtype count.
  for (std::size_t i = 0; i < node.operands(); ++i) {
    for (std::int32_t d = 0; d < node.rank(i); ++d) {
      if (node.operand_varies(i, d)) rule.consumed.push_back({static_cast<std::int32_t>(i), d});
    }
  }
  return rule;
}

NodeRule triangle_rule(const PaddedNode& node) {
  NodeRule rule;
  rule.value = node.value(0);
  const std::int32_t rank = node.rank(0);
  for (const std::int32_t dim : node.varying_dims(0)) {
    const Place from{0, dim};
    ResultDim along = moved_dim(0, dim, from);
    if (dim + 2 >= rank) {
      along.repeat = Keep::kNo;
      along.lowest = Keep::kNo;
    }
    rule.results.push_back(std::move(along));
  }
  return rule;
}

NodeRule tail_rule(const PaddedNode& node) {
  NodeRule rule;
  rule.value = node.value(0);
  const auto dim = node.dimension("dim", node.rank(0));
  const auto fill = parse_fill(node.bound().string("fill"));
  if (!dim || !fill) return refuse_rule("its dim or fill is none that npu.tail has");
  for (const std::int32_t d : node.varying_dims(0)) {
    const Place from{0, d};
    ResultDim along = moved_dim(0, d, from);
    if (d == *dim) {
      along.repeat = *fill == Fill::kEdge ? Keep::kYes : Keep::kNo;
      along.zero = *fill == Fill::kZero ? Keep::kYes : Keep::kNo;
      along.lowest = *fill == Fill::kLowest ? Keep::kYes : Keep::kNo;
      along.finite = *fill == Fill::kZero ? Keep::kYes : Keep::kNo;
    } else {
      // Rows of another dimension have what is written, too, which they all share.
      if (*fill != Fill::kZero && *fill != Fill::kEdge) along.zero = Keep::kNo;
      if (*fill == Fill::kZero) along.lowest = Keep::kNo;
      along.overwritten = Place{0, *dim};
    }
    rule.results.push_back(std::move(along));
  }
  return rule;
}

}  // namespace npu::padding
