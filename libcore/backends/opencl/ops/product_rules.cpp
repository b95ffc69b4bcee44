// SPDX-License-Identifier: Apache-2.0
// Matrix products as sums of products: batches and vectors become places.
#include <algorithm>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"
#include "ops/product_spec.hpp"
#include "support/checked.hpp"

namespace npu::opencl {
namespace {

std::int64_t extent_product(const Shape& shape) { return checked_element_count(shape).value_or(0); }

Index joined(Index a, const Index& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The batch dimensions' index in an operand that is broadcast.
Index batch_index(const std::string& b, const Shape& batch, const Shape& operand) {
  return broadcast_index(index_of_place(b, batch), operand);
}

/// Of tensors as aten.matmul has them; `transposes` reads the second one as its transpose.
ProductSpec matrix_product(Emitter& emitter, const Node& node, TensorId a, TensorId b,
                           bool transposes) {
  Shape left = emitter.shape(a);
  Shape right = emitter.shape(b);
  if (left.empty() || right.empty()) emitter.refuse(node, "a scalar has no rows");
  const bool left_is_vector = left.size() == 1;
  const bool right_is_vector = right.size() == 1;
  if (left_is_vector) left.insert(left.begin(), 1);
  if (right_is_vector) {
    right.insert(transposes ? right.begin() : right.end(), 1);
  }
  ProductSpec spec;
  spec.dtype = emitter.dtype(a);
  if (emitter.dtype(b) != spec.dtype) emitter.refuse(node, "its operands differ in dtype");
  const std::size_t lr = left.size();
  const std::size_t rr = right.size();
  spec.m = left[lr - 2];
  spec.k = left[lr - 1];
  spec.n = transposes ? right[rr - 2] : right[rr - 1];
  if ((transposes ? right[rr - 1] : right[rr - 2]) != spec.k) {
    emitter.refuse(node, "its operands do not fit together");
  }
  const Shape left_batch(left.begin(), left.end() - 2);
  const Shape right_batch(right.begin(), right.end() - 2);
  Shape batch = left_batch;
  if (!join_shape(batch, right_batch)) emitter.refuse(node, "its operands do not broadcast");
  Shape expected = batch;
  if (!left_is_vector) expected.push_back(spec.m);
  if (!right_is_vector) expected.push_back(spec.n);
  emitter.expect_shape(node, 0, expected);
  // A matrix for all batches is one product with more rows.
  const bool folds = right_batch.empty() && !left_is_vector && !batch.empty();
  const Shape rows = folds ? Shape(left.begin(), left.end() - 1) : Shape{spec.m};
  if (folds) {
    spec.m = extent_product(rows);
    batch.clear();
  }
  spec.batch = extent_product(batch);
  spec.left = [=, &emitter](const std::string& at, const std::string& m, const std::string& k) {
    if (left_is_vector) return emitter.element(a, {k});
    Index index = folds ? index_of_place(m, rows) : joined(batch_index(at, batch, left_batch), {m});
    index.push_back(k);
    return emitter.element(a, index);
  };
  spec.right = [=, &emitter](const std::string& at, const std::string& k, const std::string& n) {
    if (right_is_vector) return emitter.element(b, {k});
    return emitter.element(
        b, joined(batch_index(at, batch, right_batch), transposes ? Index{n, k} : Index{k, n}));
  };
  spec.right_is_transposed = transposes;
  spec.place = [=](const std::string& at, const std::string& m, const std::string& n) {
    Index index = folds ? index_of_place(m, rows) : index_of_place(at, batch);
    if (!folds && !left_is_vector) index.push_back(m);
    if (!right_is_vector) index.push_back(n);
    return index;
  };
  return spec;
}

/// Adds a tensor that is broadcast, times a number.
void add_operand(Emitter& emitter, const BoundNode& node, ProductSpec& spec, TensorId added,
                 double beta, double alpha) {
  const DType dtype = spec.dtype;
  emitter.expect_broadcast(node.node(), added, emitter.shape(node.node().outputs[0]));
  spec.finish = [=, &emitter](const std::string& sum, const Index& index) {
    std::string result = alpha == 1 ? sum : sum + " * " + literal(alpha, dtype);
    if (beta == 0) return "(" + result + ")";
    const std::string value = emitter.broadcast_element(added, index, dtype);
    return "(" + result + " + " + (beta == 1 ? value : value + " * " + literal(beta, dtype)) + ")";
  };
}

}  // namespace

ProductSpec product_of(Emitter& emitter, NodeId id) {
  const BoundNode& node = emitter.model().bound(id);
  const std::string_view name = functional_name(node.node().op_type);
  const auto tensor = [&](const char* argument) { return tensor_of(emitter, node, argument); };
  if (name.find("conv") != std::string_view::npos) return convolution_product(emitter, node);
  if (name == "einsum") return einsum_product(emitter, node);
  emitter.expect_dtype(node.node(), 0, emitter.dtype(node.node().inputs.at(0)));
  if (name == "linear") {
    const TensorId weight = tensor("weight");
    if (emitter.shape(weight).size() > 2) emitter.refuse(node.node(), "its weight is no matrix");
    ProductSpec spec = matrix_product(emitter, node.node(), tensor("input"), weight, true);
    if (const auto bias = node.tensor("bias")) add_operand(emitter, node, spec, *bias, 1, 1);
    return spec;
  }
  if (name == "addmm" || name == "baddbmm") {
    const bool is_batched = name == "baddbmm";
    ProductSpec spec = matrix_product(emitter, node.node(), tensor(is_batched ? "batch1" : "mat1"),
                                      tensor(is_batched ? "batch2" : "mat2"), false);
    add_operand(emitter, node, spec, tensor("self"), node.number("beta"), node.number("alpha"));
    return spec;
  }
  const char* second = name == "matmul" ? "other" : "mat2";
  const std::size_t rank = name == "mm" ? 2 : name == "bmm" ? 3 : 0;
  if (rank != 0 && (emitter.shape(tensor("self")).size() != rank ||
                    emitter.shape(tensor(second)).size() != rank)) {
    emitter.refuse(node.node(), "its operands have another rank");
  }
  return matrix_product(emitter, node.node(), tensor("self"), tensor(second), false);
}

/// _grouped_mm of rows: a row is multiplied with the matrix of the first group that ends behind it;
/// one behind all groups is zero.
std::string grouped_product_element(Emitter& emitter, const BoundNode& node, int,
                                    const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const TensorId right = tensor_of(emitter, node, "mat2");
  const auto ends = node.tensor("offs");
  const Shape& rows = emitter.shape(self);
  const Shape& matrices = emitter.shape(right);
  if (!ends || rows.size() != 2 || matrices.size() != 3) {
    emitter.refuse(node.node(), "only a matrix whose rows are grouped is supported");
  }
  if (!node.is_none("bias") || !node.is_none("out_dtype")) {
    emitter.refuse(node.node(), "a bias and out_dtype are not supported");
  }
  const DType dtype = emitter.dtype(self);
  const bool fits = matrices[1] == rows[1] && emitter.shape(*ends) == Shape{matrices[0]} &&
                    emitter.dtype(right) == dtype;
  if (!fits) emitter.refuse(node.node(), "its operands do not fit together");
  emitter.expect_shape(node.node(), 0, {rows[0], matrices[2]});
  emitter.expect_dtype(node.node(), 0, dtype);
  const std::string group = emitter.fresh("g");
  const std::string sum = emitter.fresh("s");
  const std::string step = emitter.fresh("k");
  const std::string& type = emitter.index_type();
  emitter.line(type + " " + group + " = 0;");
  emitter.open("for (; " + group + " < " + std::to_string(matrices[0]) + "; ++" + group + ")");
  emitter.line("if (" + emitter.element(*ends, {group}) + " > " + index[0] + ") break;");
  emitter.close();
  emitter.line(value_type(dtype) + " " + sum + " = 0;");
  emitter.open("if (" + group + " < " + std::to_string(matrices[0]) + ")");
  emitter.open("for (" + type + " " + step + " = 0; " + step + " < " + std::to_string(rows[1]) +
               "; ++" + step + ")");
  const std::string left = emitter.element(self, {index[0], step});
  emitter.line(sum + " += " + left + " * " + emitter.element(right, {group, step, index[1]}) + ";");
  emitter.close();
  emitter.close();
  return sum;
}

}  // namespace npu::opencl
