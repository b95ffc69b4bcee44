// SPDX-License-Identifier: Apache-2.0
// einsum of two operands as a batched matrix product: a letter in both operands and the result is
// a batch dimension, one in both operands alone is summed, the others are rows and columns.
#include <algorithm>
#include <initializer_list>
#include <map>

#include "ops/einsum.hpp"
#include "ops/op_name.hpp"
#include "ops/op_table.hpp"
#include "ops/product_spec.hpp"

namespace npu::opencl {
namespace {

using Parts = std::initializer_list<std::pair<std::string, std::string>>;

/// The index of a tensor with these labels, by the places of parts of the labels.
Index index_for(const EinsumProduct& einsum, const std::string& labels, Parts parts) {
  std::map<char, std::string> places;
  for (const auto& [part, place] : parts) {
    const Index index = index_of_place(place, einsum.shape_of(part));
    for (std::size_t i = 0; i < index.size(); ++i) places[part[i]] = index[i];
  }
  Index index;
  for (const char label : labels) index.push_back(places.at(label));
  return index;
}

}  // namespace

ProductSpec einsum_product(Emitter& emitter, const BoundNode& node) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  std::vector<Shape> shapes;
  for (const TensorId id : tensors) shapes.push_back(emitter.shape(id));
  std::string reason;
  const auto read = read_einsum_product(node.string("equation"), shapes, reason);
  if (!read) emitter.refuse(node.node(), "'equation': " + reason);
  EinsumProduct einsum = *read;
  emitter.expect_shape(node.node(), 0, einsum.shape_of(einsum.result));
  // What is summed in the order of the second operand, so that its elements are read in order.
  std::ranges::sort(einsum.inner, {}, [&](char c) { return einsum.operands[1].find(c); });
  ProductSpec spec;
  spec.dtype = emitter.dtype(tensors[0]);
  if (emitter.dtype(tensors[1]) != spec.dtype) {
    emitter.refuse(node.node(), "its operands differ in dtype");
  }
  emitter.expect_dtype(node.node(), 0, spec.dtype);
  spec.batch = einsum.count_of(einsum.batch);
  spec.m = einsum.count_of(einsum.rows);
  spec.n = einsum.count_of(einsum.columns);
  spec.k = einsum.count_of(einsum.inner);
  const std::string& left = einsum.operands[0];
  const std::string& right = einsum.operands[1];
  const auto ends_in = [](const std::string& labels, const std::string& part) {
    return !labels.empty() && part.find(labels.back()) != std::string::npos;
  };
  spec.right_is_transposed = ends_in(right, einsum.inner);
  spec.left_is_transposed = ends_in(left, einsum.rows);
  const TensorId a = tensors[0];
  const TensorId b = tensors[1];
  spec.left = [=, &emitter](const std::string& at, const std::string& m, const std::string& k) {
    return emitter.element(a, index_for(einsum, einsum.operands[0],
                                        {{einsum.batch, at}, {einsum.rows, m}, {einsum.inner, k}}));
  };
  spec.right = [=, &emitter](const std::string& at, const std::string& k, const std::string& n) {
    return emitter.element(b,
                           index_for(einsum, einsum.operands[1],
                                     {{einsum.batch, at}, {einsum.columns, n}, {einsum.inner, k}}));
  };
  spec.place = [=](const std::string& at, const std::string& m, const std::string& n) {
    return index_for(einsum, einsum.result,
                     {{einsum.batch, at}, {einsum.rows, m}, {einsum.columns, n}});
  };
  return spec;
}

}  // namespace npu::opencl
