// SPDX-License-Identifier: Apache-2.0
// What an op's operands say of its result's shape, for ops whose result follows from shapes alone:
// element-wise ops, products of matrices, views. Others depend on arguments, which whoever lowers
// the op looks at. O(rank) for a node.
#include "ops/result_shapes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

/// The shape that two shapes broadcast to; nothing if they do not.
std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) return std::nullopt;
    result[result.size() - 1 - i] = from_a == 1 ? from_b : from_a;
  }
  return result;
}

/// Of a product of matrices, vectors and batches of them, as aten.matmul has it.
std::optional<Shape> product(Shape a, Shape b) {
  if (a.empty() || b.empty()) return std::nullopt;
  const bool left_is_vector = a.size() == 1;
  const bool right_is_vector = b.size() == 1;
  if (left_is_vector) a.insert(a.begin(), 1);
  if (right_is_vector) b.push_back(1);
  const std::int64_t rows = a[a.size() - 2];
  const std::int64_t columns = b.back();
  if (a.back() != b[b.size() - 2]) return std::nullopt;
  auto result = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!result) return std::nullopt;
  if (!left_is_vector) result->push_back(rows);
  if (!right_is_vector) result->push_back(columns);
  return result;
}

/// How a result's shape follows from operands.
enum class Rule : std::uint8_t {
  kNone,       ///< from arguments, too: the op's lowering function derives it
  kFirst,      ///< that of the first operand
  kBroadcast,  ///< what the operands broadcast to
  kLinear,
  kProduct,     ///< of the first two operands
  kAddProduct,  ///< of the second and third
  kView,        ///< as many elements as the first operand has
};

Rule rule_of(std::string_view op_type) {
  if (is_quantization(op_type) || is_dequantization(op_type)) return Rule::kFirst;
  if (!op_type.starts_with("aten.")) return Rule::kNone;
  // Bounds that are tensors broadcast.
  if (op_type.starts_with("aten.clamp") && op_type.ends_with(".Tensor")) return Rule::kNone;
  const std::string_view name = functional_name(op_type);
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  constexpr auto kFirst = std::to_array<std::string_view>(
      {"_log_softmax", "_softmax",    "_to_copy",       "abs",         "alias",
       "batch_norm",   "celu",        "clamp",          "clamp_max",   "clamp_min",
       "clone",        "contiguous",  "detach",         "dropout",     "elu",
       "exp",          "gelu",        "group_norm",     "hardsigmoid", "hardswish",
       "hardtanh",     "index_copy",  "layer_norm",     "leaky_relu",  "log",
       "log_sigmoid",  "log_softmax", "mish",           "neg",         "relu",
       "relu6",        "rms_norm",    "selu",           "sigmoid",     "silu",
       "softmax",      "softplus",    "sqrt",           "square",      "tanh",
       "to",           "type_as",     "feature_dropout"});
  constexpr auto kBroadcast = std::to_array<std::string_view>(
      {"add", "div", "maximum", "minimum", "mul", "pow", "rsub", "sub"});
  constexpr auto kProduct = std::to_array<std::string_view>({"bmm", "matmul", "mm"});
  constexpr auto kAddProduct = std::to_array<std::string_view>({"addmm", "baddbmm"});
  constexpr auto kView = std::to_array<std::string_view>(
      {"_unsafe_view", "flatten", "movedim", "numpy_T", "permute", "reshape", "reshape_as",
       "squeeze", "swapaxes", "t", "transpose", "unflatten", "unsqueeze", "view", "view_as"});
  if (is_one_of(kFirst)) return Rule::kFirst;
  if (is_one_of(kBroadcast)) return Rule::kBroadcast;
  if (is_one_of(kProduct)) return Rule::kProduct;
  if (is_one_of(kAddProduct)) return Rule::kAddProduct;
  if (is_one_of(kView)) return Rule::kView;
  return name == "linear" ? Rule::kLinear : Rule::kNone;
}

/// What the operands give; nothing if they do not fit together. `stated` is the answer for what
/// follows from them in part only.
std::optional<Shape> derived(const std::vector<const Shape*>& operands, Rule rule,
                             const Shape& stated) {
  const auto operand = [&](std::size_t i) -> const Shape& { return *operands[i]; };
  const std::size_t count = operands.size();
  switch (rule) {
    case Rule::kNone:
      return stated;
    case Rule::kFirst:
      return operand(0);
    case Rule::kBroadcast:
      return count == 1 ? operand(0) : broadcast(operand(0), operand(1));
    case Rule::kLinear: {
      if (count < 2 || operand(1).size() != 2) return stated;  // refused where it is lowered
      Shape weight = operand(1);
      std::swap(weight[0], weight[1]);
      return product(operand(0), weight);
    }
    case Rule::kProduct:
      return count < 2 ? stated : product(operand(0), operand(1));
    case Rule::kAddProduct:
      return count < 3 ? stated : product(operand(1), operand(2));
    case Rule::kView:
      if (checked_element_count(operand(0)) == checked_element_count(stated)) return stated;
      return std::nullopt;
  }
  return stated;
}

}  // namespace

bool has_shape_rule(std::string_view op_type) { return rule_of(op_type) != Rule::kNone; }

std::optional<std::string> result_shape_fault(std::string_view op_type,
                                              const std::vector<const Shape*>& operands,
                                              const Shape& result) {
  if (operands.empty()) return std::nullopt;
  const auto shape = derived(operands, rule_of(op_type), result);
  if (shape == result) return std::nullopt;
  std::string list;
  for (const Shape* operand : operands) list += (list.empty() ? "" : ", ") + shape_text(*operand);
  return shape_text(result) + ", but operands of " + list +
         (shape ? " give " + shape_text(*shape) : " do not give that");
}

}  // namespace npu
