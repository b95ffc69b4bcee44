// SPDX-License-Identifier: Apache-2.0
// Sizes that nodes compute from the valid sizes, written and read.
//
// A backend sees scalars of int64, no expressions. Both directions know the same few ops: sums,
// products, quotients rounded down, remainders, the lesser and the greater of two.
// O(length of the expression).
#include "passes/padding/size_nodes.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "ir/mention_form.hpp"
#include "ops/op_name.hpp"
#include "support/json_fields.hpp"

namespace npu::padding {

std::string valid_input_name(const std::string& symbol) { return "npu.n." + symbol; }

namespace {

/// Numbers and tensors by number, as SizeVisitor wants it.
class SizeWriter : public SizeVisitor {
 public:
  SizeWriter(SizeNodes& nodes, const PaddedSizes& sizes) : nodes_(nodes), sizes_(sizes) {}

  const Json& mention(std::int32_t part) const { return parts_[index_of(part)].mention; }

  std::int32_t number(std::int64_t value) override { return keep({.number = value}); }
  std::int32_t symbol(const std::string& name) override {
    const std::string input = sizes_.find(name)->valid;
    return keep(
        {.mention = tensor_mention(input, {}, DType::kInt64, {input, 0}), .text = "n." + name});
  }
  std::int32_t add(std::int32_t a, std::int32_t b) override { return both("add", a, b); }
  std::int32_t multiply(std::int32_t a, std::int32_t b) override { return both("mul", a, b); }
  std::int32_t floor_divide(std::int32_t a, std::int64_t divisor) override {
    return both("floor_divide", a, number(divisor));
  }
  std::int32_t modulo(std::int32_t a, std::int64_t divisor) override {
    return both("remainder", a, number(divisor));
  }
  std::int32_t min(std::int32_t a, std::int32_t b) override { return both("minimum", a, b); }
  std::int32_t max(std::int32_t a, std::int32_t b) override { return both("maximum", a, b); }

 private:
  struct Part {
    std::int64_t number = 0;
    Json mention = {};  // null for a number
    std::string text = {};
  };

  std::int32_t keep(Part part) {
    parts_.push_back(std::move(part));
    return static_cast<std::int32_t>(parts_.size()) - 1;
  }

  // At least one of the two is a tensor, since constants of a sum are taken together.
  std::int32_t both(const std::string& name, std::int32_t a, std::int32_t b) {
    if (parts_[index_of(a)].mention.is_null()) std::swap(a, b);
    const Part left = parts_[index_of(a)];
    Part right = parts_[index_of(b)];
    const bool is_extreme = name == "minimum" || name == "maximum";
    if (right.mention.is_null() && is_extreme) {
      right.text = std::to_string(right.number);
      right.mention = nodes_.add("size." + right.text, "aten.full.default", Json::array(),
                                 {{"size", Json::array()},
                                  {"fill_value", right.number},
                                  {"dtype", std::string(dtype_name(DType::kInt64))}},
                                 {}, DType::kInt64);
    }
    const bool is_tensor = !right.mention.is_null();
    Json inputs = Json::array({left.mention});
    Json attrs = Json::object();
    if (is_tensor) {
      inputs.push_back(right.mention);
    } else {
      attrs["other"] = right.number;
    }
    if (name == "add") attrs["alpha"] = 1;
    const std::string overload = is_extreme ? ".default" : is_tensor ? ".Tensor" : ".Scalar";
    const std::string text =
        left.text + "." + name + "." + (is_tensor ? right.text : std::to_string(right.number));
    return keep({.mention = nodes_.add("size." + text, "aten." + name + overload, std::move(inputs),
                                       std::move(attrs), {}, DType::kInt64),
                 .text = text});
  }

  SizeNodes& nodes_;
  const PaddedSizes& sizes_;
  std::vector<Part> parts_;
};

bool is_called_size(const std::string& name) {
  return name.starts_with("size.") || name.starts_with("rows.") || name.starts_with("keys.");
}

/// The first node that is no size, and reads more than sizes: earlier rounds have written those.
NodeId behind_sizes(const Graph& graph) {
  const auto is_size = [&](TensorId id) {
    const TensorInfo& tensor = graph.tensor(id);
    return tensor.kind == TensorKind::kResult ? is_called_size(tensor.name)
                                              : tensor.kind == TensorKind::kGraphInput &&
                                                    tensor.name.starts_with(valid_input_name(""));
  };
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const Node& node = graph.node(id);
    const bool is_one =
        is_called_size(node.name) && std::all_of(node.inputs.begin(), node.inputs.end(), is_size);
    if (!is_one) return id;
  }
  return NodeId{0};
}

}  // namespace

SizeNodes::SizeNodes(const Graph& graph, const PaddedSizes& sizes, GraphEditor& editor)
    : graph_(graph), sizes_(sizes), editor_(editor), place_(behind_sizes(graph)) {}

Json SizeNodes::value(const SizeExpression& size) {
  SizeWriter writer(*this, sizes_);
  const std::int32_t whole = size.visit(writer);
  return writer.mention(whole);
}

Json SizeNodes::last_row(const SizeExpression& rows) {
  const SizeExpression last = rows - 1;
  return add("size." + last.text() + ".row", "aten.view.default", Json::array({value(last)}),
             {{"size", Json::array({1})}}, {1}, DType::kInt64);
}

Json SizeNodes::rows_from(const SizeExpression& first, std::int64_t count) {
  const std::string number = std::to_string(count);
  const Shape shape{count};
  const Json begin = value(first);
  const Json rows = add("rows." + number, "aten.arange.default", Json::array(),
                        {{"end", count}, {"dtype", std::string(dtype_name(DType::kInt64))}}, shape,
                        DType::kInt64);
  return add("size." + first.text() + ".rows." + number, "aten.add.Tensor",
             Json::array({rows, begin}), {{"alpha", 1}}, shape, DType::kInt64);
}

Json SizeNodes::add(const std::string& name, const std::string& op_type, Json inputs, Json attrs,
                    const Shape& shape, DType dtype) {
  const auto [known, is_new] = known_.try_emplace(name);
  if (!is_new) return known->second;
  // A run in rounds may have written it before.
  if (const TensorId before = graph_.find_tensor(name); before.valid()) {
    known->second = mention_json(graph_, before, MentionForm::kAllButWeights);
    return known->second;
  }
  Json node{{"name", name},
            {"op_type", op_type},
            {"inputs", std::move(inputs)},
            {"outputs", Json::array({tensor_mention(name, shape, dtype)})},
            {"attrs", std::move(attrs)}};
  editor_.insert_before(place_, std::move(node));
  known->second = tensor_mention(name, shape, dtype, {name, 0});
  return known->second;
}

void SizeNodes::commit() {
  for (auto& [place, node] : others_) editor_.insert_before(place, std::move(node));
  editor_.commit();
}

namespace {

constexpr int kDeepestSize = 64;

std::optional<SizeExpression> size_behind(const Graph& graph, const PaddedSizes& sizes, TensorId id,
                                          int depth) {
  const TensorInfo& tensor = graph.tensor(id);
  if (depth == 0 || tensor.dtype != DType::kInt64) return std::nullopt;
  if (tensor.kind == TensorKind::kGraphInput) {
    for (const PaddedSymbol& symbol : sizes.symbols()) {
      if (symbol.valid == tensor.name && tensor.shape.empty()) {
        return SizeExpression::symbol(symbol.name);
      }
    }
    return std::nullopt;
  }
  if (tensor.kind != TensorKind::kResult) return std::nullopt;
  const Node& node = graph.node(tensor.producer);
  const std::string_view name = functional_name(node.op_type);
  if (name == "full" && tensor.shape.empty()) {
    if (const auto value = member_integer(node.attrs(), "fill_value"))
      return SizeExpression(*value);
    return std::nullopt;
  }
  std::vector<SizeExpression> parts;
  for (const TensorId input : node.inputs) {
    auto part = size_behind(graph, sizes, input, depth - 1);
    if (!part) return std::nullopt;
    parts.push_back(*std::move(part));
  }
  if (name == "view" && parts.size() == 1) return parts[0];
  const auto other = member_integer(node.attrs(), "other");
  const bool has_alpha = name == "add" && member_integer(node.attrs(), "alpha").value_or(1) != 1;
  if (parts.size() == 1 && other && !has_alpha) {
    if ((name == "floor_divide" || name == "remainder") && *other < 1) return std::nullopt;
    if (name == "floor_divide") return parts[0].floor_divide(*other);
    if (name == "remainder") return parts[0].modulo(*other);
    parts.emplace_back(*other);
  }
  if (parts.size() != 2 || has_alpha) return std::nullopt;
  if (name == "add") return parts[0] + parts[1];
  if (name == "mul") return parts[0] * parts[1];
  if (name == "minimum") return SizeExpression::min(parts);
  if (name == "maximum") return SizeExpression::max(parts);
  return std::nullopt;
}

}  // namespace

std::optional<SizeExpression> computed_size(const Graph& graph, const PaddedSizes& sizes,
                                            TensorId id) {
  try {
    return size_behind(graph, sizes, id, kDeepestSize);
  } catch (const Error&) {
    return std::nullopt;  // beyond the limits of expressions
  }
}

}  // namespace npu::padding
