// SPDX-License-Identifier: Apache-2.0
// einsum of two operands, or of one: labels in both operands and the result are batches, those in
// both operands alone are contracted, and those of one operand are rows or columns. Each operand is
// permuted, which costs nothing, and reshaped to matrices, which costs a copy where its strides do
// not allow it; then one matrix product. O(labels) besides.
#include <algorithm>
#include <map>

#include "lowering/lowering.hpp"
#include "lowering/movement.hpp"

namespace npu::onednn {

namespace {

using Labels = std::string;

/// "ij,jk->ik" as the labels of each operand and of the result. Dimensions that '...' stands for
/// are labelled by numbers, counted from the last one.
struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

/// What an equation without '->' stands for: the labels that stand in it once, by name.
Labels implied_result(const std::string& operands) {
  Labels result;
  for (const char c : operands) {
    if (c != ',' && c != '.' && std::count(operands.begin(), operands.end(), c) == 1) result += c;
  }
  std::sort(result.begin(), result.end());
  return operands.find("...") == std::string::npos ? result : "..." + result;
}

Equation parse_equation(const Lowering& lowering, const std::string& text,
                        const std::vector<std::size_t>& ranks) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ') plain += c;
  }
  if (plain.find("->") == std::string::npos) plain += "->" + implied_result(plain);
  const std::size_t arrow = plain.find("->");
  Equation equation;
  std::size_t most = 0;  // dimensions that '...' stands for
  const auto expand = [&](const std::string& part, std::size_t dimensions) {
    const std::size_t dots = part.find("...");
    if (dots == std::string::npos) return part;
    Labels hidden;
    for (std::size_t i = dimensions; i > 0; --i) hidden += static_cast<char>('0' + i - 1);
    return part.substr(0, dots) + hidden + part.substr(dots + 3);
  };
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t end = std::min(plain.find(',', begin), arrow);
    const std::string part = plain.substr(begin, end - begin);
    std::size_t dimensions = 0;
    if (part.find("...") != std::string::npos) {
      if (ranks[i] + 3 < part.size()) lowering.invalid("argument 'equation': has too many labels");
      dimensions = ranks[i] + 3 - part.size();
    }
    most = std::max(most, dimensions);
    equation.operands.push_back(expand(part, dimensions));
    if (equation.operands.back().size() != ranks[i]) {
      lowering.invalid("argument 'equation': '" + part + "' is not of rank " +
                       std::to_string(ranks[i]));
    }
    begin = end + 1;
  }
  if (begin != arrow + 1) lowering.invalid("argument 'equation': has other operands");
  equation.result = expand(plain.substr(arrow + 2), most);
  return equation;
}

bool has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

void check_labels(const Lowering& lowering, const Equation& equation) {
  const auto check = [&](const Labels& labels) {
    for (const char c : labels) {
      const bool is_label =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (!is_label) lowering.invalid("argument 'equation': '" + Labels(1, c) + "' is no label");
      if (std::count(labels.begin(), labels.end(), c) != 1) {
        lowering.refuse("equation", "a label that stands twice in one operand is not supported");
      }
    }
  };
  for (const Labels& labels : equation.operands) check(labels);
  check(equation.result);
  for (const char c : equation.result) {
    if (std::none_of(equation.operands.begin(), equation.operands.end(),
                     [&](const Labels& labels) { return has(labels, c); })) {
      lowering.invalid("argument 'equation': '" + Labels(1, c) + "' is in no operand");
    }
  }
}

/// The value with its dimensions in the order of `to`; labels that it does not have are not there.
Value permuted(Lowering& lowering, const Value& value, const Labels& from, const Labels& to) {
  if (from.empty()) return value;
  Value result = lowering.strided(value);
  std::vector<int> permutation(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) permutation[i] = static_cast<int>(to.find(from[i]));
  result.layout = result.layout.permute_axes(permutation);
  return result;
}

/// A label's extent, and the product of those of several.
class Extents {
 public:
  void add(const Lowering& lowering, const Labels& labels, const Shape& shape) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto [known, is_new] = extents_.emplace(labels[i], shape[i]);
      if (!is_new && known->second != shape[i]) {
        lowering.refuse("tensors", "dimensions of one label differ");
      }
    }
  }
  Shape of(const Labels& labels) const {
    Shape shape;
    for (const char c : labels) shape.push_back(extents_.at(c));
    return shape;
  }
  std::int64_t product(const Labels& labels) const { return element_count(of(labels)); }

 private:
  std::map<char, std::int64_t> extents_;
};

}  // namespace

Lowered<Done> lower_einsum(Lowering& lowering, const BoundNode& node) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  if (tensors.size() != 2) lowering.refuse("tensors", "only two operands are supported");
  std::vector<std::size_t> ranks;
  for (const TensorId id : tensors) {
    lowering.require_float("tensors", id);
    ranks.push_back(lowering.shape(id).size());
  }
  const DType dtype = lowering.dtype(tensors[0]);
  if (lowering.dtype(tensors[1]) != dtype) lowering.refuse("tensors", "their dtypes differ");
  const Equation equation = parse_equation(lowering, node.string("equation"), ranks);
  check_labels(lowering, equation);
  Extents extents;
  for (std::size_t i = 0; i < 2; ++i) {
    extents.add(lowering, equation.operands[i], lowering.shape(tensors[i]));
  }
  const Shape shape = extents.of(equation.result);
  lowering.check_result(lowering.result(), shape, dtype);
  const Labels& left = equation.operands[0];
  const Labels& right = equation.operands[1];
  Labels batch;
  Labels rows;
  Labels columns;
  Labels inner;
  for (const char c : equation.result) {
    (has(left, c) && has(right, c) ? batch : has(left, c) ? rows : columns) += c;
  }
  for (const char c : left + right) {
    if (has(equation.result, c) || has(inner, c)) continue;
    if (!has(left, c) || !has(right, c)) {
      lowering.refuse("equation", "a sum over a label of one operand is not supported");
    }
    inner += c;
  }
  const auto matrix = [&](std::size_t i, const Labels& order, const Shape& as) {
    const Value value =
        permuted(lowering, lowering.operand(tensors[i]), equation.operands[i], order);
    return lowering.reshaped(value, as);
  };
  const std::int64_t planes = extents.product(batch);
  const std::int64_t m = extents.product(rows);
  const std::int64_t n = extents.product(columns);
  const std::int64_t k = extents.product(inner);
  MatmulCall call;
  call.type = lowering.compute_type();
  call.a = matrix(0, batch + rows + inner, {planes, m, k});
  call.b = matrix(1, batch + inner + columns, {planes, k, n});
  // What the product gives, with its dimensions where the result has them.
  const Labels made = batch + rows + columns;
  if (lowering.has_epilogue() && made != equation.result) {
    return NotFused{"the product's dimensions are in another order than the result's"};
  }
  const auto product = add_matmul(lowering, call);
  if (!product) return product.refusal();
  const Value value =
      permuted(lowering, lowering.reshaped(*product, extents.of(made)), made, equation.result);
  lowering.define_computed(lowering.result(), shape, dtype, value);
  return Done{};
}

}  // namespace npu::onednn
