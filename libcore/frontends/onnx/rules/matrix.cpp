// SPDX-License-Identifier: Apache-2.0
// Products of matrices. A product with a constant matrix becomes aten.linear, whose weight is the
// transpose: the document says so, and nothing is copied. So does one with a matrix that is
// dequantized from a constant, whose transpose is dequantized instead.
#include <algorithm>
#include <map>
#include <string_view>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

bool is_stored(const Value* value) { return value->is_constant() && value->stored != nullptr; }

// The node that makes real numbers of a stored quantized constant; null for other values.
const DraftNode* dequantized(Op& op, const Value* value) {
  const DraftNode* node = op.draft().producer(value);
  if (node == nullptr || !node->op.starts_with("quantized_decomposed.dequantize_per_")) {
    return nullptr;
  }
  return is_stored(node->inputs[0]) && node->inputs[0]->shape == value->shape ? node : nullptr;
}

Value* transposed(Op& op, Value* matrix) {
  if (is_stored(matrix)) return op.draft().transpose_of(matrix);
  const DraftNode* node = dequantized(op, matrix);
  if (node == nullptr) return op.permute(matrix, {1, 0});
  // The conversion of the transpose, whose channels are along the other axis.
  std::vector<Value*> operands = node->inputs;
  operands[0] = op.draft().transpose_of(operands[0]);
  Json attrs = node->attrs;
  if (attrs.contains("axis")) attrs["axis"] = 1 - attrs["axis"].get<std::int64_t>();
  const Shape shape{matrix->shape[1], matrix->shape[0]};
  return op.emit(std::string(node->op), std::move(operands), std::move(attrs), matrix->dtype,
                 shape);
}

bool is_stored_matrix(Op& op, const Value* value) {
  return value->rank() == 2 && is_floating_point(value->dtype) &&
         (is_stored(value) || dequantized(op, value) != nullptr);
}

}  // namespace

Shape matrix_product_shape(const Shape& a, const Shape& b) {
  if (a.empty() || b.empty()) Op::refuse("an operand is no matrix");
  Shape left = a.size() == 1 ? Shape{1, a[0]} : a;
  Shape right = b.size() == 1 ? Shape{b[0], 1} : b;
  if (left.back() != right[right.size() - 2]) {
    Op::refuse("shapes " + shape_text(a) + " and " + shape_text(b) + " do not fit together");
  }
  Shape shape =
      broadcast(Shape(left.begin(), left.end() - 2), Shape(right.begin(), right.end() - 2));
  if (a.size() > 1) shape.push_back(left[left.size() - 2]);
  if (b.size() > 1) shape.push_back(right.back());
  return shape;
}

Value* matrix_product(Op& op, Value* a, Value* b) {
  if (a->dtype != b->dtype) Op::refuse("operands of two types");
  const Shape shape = matrix_product_shape(a->shape, b->shape);
  if (is_stored_matrix(op, b) && a->rank() >= 2) {
    return op.emit("aten.linear.default", {a, transposed(op, b)}, Json::object(), a->dtype, shape);
  }
  return op.emit("aten.matmul.default", {a, b}, Json::object(), a->dtype, shape);
}

void import_mat_mul(Op& op) { op.set(0, matrix_product(op, op.in(0), op.in(1))); }

void import_gemm(Op& op) {
  Value* a = op.in(0);
  Value* b = op.in(1);
  Value* c = op.maybe_in(2);
  if (a->rank() != 2 || b->rank() != 2) Op::refuse("an operand is no matrix");
  const double alpha = op.real("alpha", 1);
  const double beta = op.real("beta", 1);
  const bool turns_b = op.integer("transB", 0) != 0;
  if (op.integer("transA", 0) != 0) a = transposed(op, a);
  const std::int64_t columns = b->shape[turns_b ? 0 : 1];
  if (a->shape[1] != b->shape[turns_b ? 1 : 0]) {
    Op::refuse("shapes " + shape_text(a->shape) + " and " + shape_text(b->shape) +
               " do not fit together");
  }
  const Shape shape{a->shape[0], columns};
  if (c != nullptr && broadcast(c->shape, shape) != shape) {
    Op::refuse("C of shape " + shape_text(c->shape) + " does not fit the product");
  }
  const bool is_row = c != nullptr && (c->is_constant() || dequantized(op, c) != nullptr) &&
                      c->count() == columns &&
                      (c->rank() == 1 || (c->rank() == 2 && c->shape[0] == 1));
  const bool is_linear = alpha == 1 && is_floating_point(a->dtype) &&
                         (c == nullptr || (is_row && beta == 1)) &&
                         (turns_b || is_stored_matrix(op, b));
  if (is_linear) {
    std::vector<Value*> operands{a, turns_b ? b : transposed(op, b)};
    if (c != nullptr) operands.push_back(op.view(c, {columns}));
    return op.set(0, op.emit("aten.linear.default", operands, Json::object(), a->dtype, shape));
  }
  if (turns_b) b = transposed(op, b);
  if (c == nullptr) {
    Value* value = op.emit("aten.mm.default", {a, b}, Json::object(), a->dtype, shape);
    return op.set(0, alpha == 1 ? value : op.scalar("mul", value, alpha));
  }
  Json attrs = Json::object();
  if (beta != 1) attrs["beta"] = json_number_of(beta, a->dtype);
  if (alpha != 1) attrs["alpha"] = json_number_of(alpha, a->dtype);
  op.set(0, op.emit("aten.addmm.default", {c, a, b}, std::move(attrs), a->dtype, shape));
}

void import_einsum(Op& op) {
  std::string equation;
  for (const char c : op.text("equation", "")) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && std::string_view(" ,.->").find(c) == std::string_view::npos) {
      Op::refuse("the equation has another character than letters");
    }
    if (c != ' ') equation += c;
  }
  std::vector<Value*> operands;
  for (std::size_t i = 0; i < op.input_count(); ++i) operands.push_back(op.in(i));
  const std::size_t arrow = equation.find("->");
  std::string_view left = std::string_view(equation).substr(0, arrow);
  std::map<char, std::int64_t> extents;
  std::map<char, int> uses;
  Shape ellipsis;
  for (const Value* operand : operands) {
    const std::string_view term = left.substr(0, left.find(','));
    left.remove_prefix(std::min(term.size() + 1, left.size()));
    const std::size_t dots = term.find("...");
    const std::size_t letters = term.size() - (dots == term.npos ? 0 : 3);
    const std::size_t rank = operand->shape.size();
    if (letters > rank || (dots == term.npos && letters != rank))
      Op::refuse("the equation does not fit");
    std::size_t axis = 0;
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (term[i] == '.') {
        const auto begin = operand->shape.begin() + static_cast<std::ptrdiff_t>(axis);
        ellipsis =
            broadcast(ellipsis, Shape(begin, begin + static_cast<std::ptrdiff_t>(rank - letters)));
        axis += rank - letters;
        i += 2;
        continue;
      }
      auto& extent = extents.emplace(term[i], 1).first->second;
      if (extent == 1) extent = operand->shape[axis];
      if (operand->shape[axis] != extent && operand->shape[axis] != 1)
        Op::refuse("operands do not fit");
      ++uses[term[i]];
      ++axis;
    }
  }
  Shape shape;
  if (arrow == std::string::npos) {
    shape = ellipsis;
    for (const auto& [letter, count] : uses) {
      if (count == 1) shape.push_back(extents[letter]);
    }
  } else {
    const std::string_view right = std::string_view(equation).substr(arrow + 2);
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (right[i] == '.') {
        shape.insert(shape.end(), ellipsis.begin(), ellipsis.end());
        i += 2;
      } else if (extents.count(right[i]) == 0) {
        Op::refuse("the equation does not fit");
      } else {
        shape.push_back(extents[right[i]]);
      }
    }
  }
  const DType dtype = operands.empty() ? DType::kFloat32 : operands[0]->dtype;
  op.set(0, op.emit("aten.einsum.default", operands,
                    Json{{"equation", equation},
                         {"_tensor_list_sizes", Ints{static_cast<std::int64_t>(operands.size())}}},
                    dtype, shape));
}

void import_det(Op& op) {
  Value* x = op.in(0);
  if (x->rank() < 2 || x->shape.back() != x->shape[x->shape.size() - 2]) {
    Op::refuse("shape " + shape_text(x->shape) + " is that of no square matrix");
  }
  op.set(0, op.emit("aten.linalg_det.default", {x}, Json::object(), x->dtype,
                    Shape(x->shape.begin(), x->shape.end() - 2)));
}

}  // namespace npu::onnx
