// SPDX-License-Identifier: Apache-2.0
#pragma once

// What decompositions are written with.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/support/ids.hpp"
#include "ops/decompositions.hpp"
#include "ops/schema.hpp"
#include "support/checked.hpp"

namespace npu::decompositions {

using Value = PartValue;
using Values = std::vector<Value>;

/// Thrown by a decomposition that a node does not have.
struct NoDecomposition {};

inline void need(bool condition) {
  if (!condition) throw NoDecomposition{};
}

inline bool has_16_bits(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}
inline DType wide(DType dtype) { return has_16_bits(dtype) ? DType::kFloat32 : dtype; }

inline std::string torch_name(DType dtype) { return "torch." + std::string(dtype_name(dtype)); }

inline std::int64_t rank_of(const Value& value) { return std::ssize(value.shape); }
inline std::int64_t& extent(Value& value, std::int64_t dim) { return value.shape[index_of(dim)]; }
inline std::int64_t extent(const Value& value, std::int64_t dim) {
  return value.shape[index_of(dim)];
}

inline Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t front = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& have = result[front + i];
    need(have == shorter[i] || have == 1 || shorter[i] == 1);
    if (have == 1) have = shorter[i];
  }
  return result;
}

/// Collects the nodes of one decomposition.
class PartWriter {
 public:
  explicit PartWriter(const BoundNode& node) : node_(node) {}

  const BoundNode& node() const { return node_; }
  Value value(TensorId id) const {
    const TensorInfo& tensor = node_.graph().tensor(id);
    return {id, -1, tensor.shape, tensor.dtype};
  }
  Value operand(std::string_view argument) const {
    const auto tensor = node_.tensor(argument);
    need(tensor.has_value());
    return value(*tensor);
  }
  Value result() const { return value(node_.node().outputs.front()); }
  DType dtype() const { return result().dtype; }

  /// The argument's value as the document has it, so that "inf" stays "inf".
  const Json& json(std::string_view argument) const { return node_.find(argument)->value; }
  bool is_none(std::string_view argument) const { return node_.is_none(argument); }
  std::int64_t integer(std::string_view argument) const { return node_.integer(argument); }

  /// A dimension, counted from the front; a scalar has one.
  std::int64_t dimension(std::int64_t dim, std::int64_t rank) const {
    rank = std::max<std::int64_t>(rank, 1);
    need(dim >= -rank && dim < rank);
    return dim < 0 ? dim + rank : dim;
  }
  std::int64_t dimension(std::string_view argument, const Value& value) const {
    return dimension(integer(argument), rank_of(value));
  }

  Value add(std::string op_type, Values inputs, Json attrs, Shape shape, DType dtype) {
    Value made{{}, static_cast<std::int32_t>(parts_.size()), std::move(shape), dtype};
    parts_.push_back(
        {std::move(op_type), std::move(inputs), std::move(attrs), made.shape, made.dtype});
    return made;
  }
  /// A function of elements; the shape and dtype stay.
  Value map(std::string op_type, const Value& a, Json attrs = Json::object()) {
    return add(std::move(op_type), {a}, std::move(attrs), a.shape, a.dtype);
  }
  /// A function of two, broadcast; the dtype is that of the first.
  Value join(std::string op_type, const Value& a, const Value& b) {
    return add(std::move(op_type), {a, b}, Json::object(), broadcast(a.shape, b.shape), a.dtype);
  }
  Value test(std::string op_type, const Value& a, const Json& number) {
    return add(std::move(op_type), {a}, {{"other", number}}, a.shape, DType::kBool);
  }

  Value cast(const Value& a, DType dtype) {
    if (a.dtype == dtype) return a;
    return add("aten.to.dtype", {a}, {{"dtype", torch_name(dtype)}}, a.shape, dtype);
  }
  Value reshape(const Value& a, const Shape& shape) {
    need(checked_element_count(a.shape) == checked_element_count(shape));
    if (a.shape == shape) return a;
    return add("aten.reshape.default", {a}, {{"shape", shape}}, shape, a.dtype);
  }
  Value permute(const Value& a, const std::vector<std::int64_t>& dims) {
    Shape shape;
    for (const std::int64_t dim : dims) shape.push_back(extent(a, dim));
    return add("aten.permute.default", {a}, {{"dims", dims}}, shape, a.dtype);
  }
  Value slice(const Value& a, std::int64_t dim, std::int64_t start, std::int64_t end) {
    if (start == 0 && end == extent(a, dim)) return a;
    Shape shape = a.shape;
    shape[index_of(dim)] = end - start;
    return add("aten.slice.Tensor", {a}, {{"dim", dim}, {"start", start}, {"end", end}}, shape,
               a.dtype);
  }
  Value cat(const Values& values, std::int64_t dim) {
    if (values.size() == 1) return values.front();
    Shape shape = values.front().shape;
    for (std::size_t i = 1; i < values.size(); ++i) shape[index_of(dim)] += extent(values[i], dim);
    return add("aten.cat.default", values, {{"dim", dim}, {"_tensor_list_sizes", {values.size()}}},
               shape, values.front().dtype);
  }
  Value zeros(const Shape& shape, DType dtype) {
    return add("aten.zeros.default", {}, {{"size", shape}, {"dtype", torch_name(dtype)}}, shape,
               dtype);
  }
  /// begin, begin + step, .. as `count` numbers of int64.
  Value sequence(std::int64_t begin, std::int64_t count, std::int64_t step = 1) {
    return add("aten.arange.start_step", {},
               {{"start", begin},
                {"end", begin + count * step},
                {"step", step},
                {"dtype", torch_name(DType::kInt64)}},
               {count}, DType::kInt64);
  }
  /// Places of elements of windows, [windows, size]: window * step + element * dilation.
  Value windows(std::int64_t count, std::int64_t step, std::int64_t size, std::int64_t dilation) {
    return join("aten.add.Tensor", reshape(sequence(0, count, step), {count, 1}),
                reshape(sequence(0, size, dilation), {1, size}));
  }
  Value index_select(const Value& a, std::int64_t dim, const Value& index) {
    Shape shape = a.shape;
    shape[index_of(dim)] = index.shape.front();
    return add("aten.index_select.default", {a, index}, {{"dim", dim}}, shape, a.dtype);
  }
  Value scatter_number(const Value& a, std::int64_t dim, const Value& index, const Json& number) {
    return add("aten.scatter.value", {a, index}, {{"dim", dim}, {"value", number}}, a.shape,
               a.dtype);
  }
  Value reduce(std::string op_type, const Value& a, const std::vector<std::int64_t>& dims,
               bool keep, Json attrs = Json::object()) {
    Shape shape;
    for (std::int64_t d = 0; d < rank_of(a); ++d) {
      const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
      if (reduced && keep) shape.push_back(1);
      if (!reduced) shape.push_back(extent(a, d));
    }
    attrs["dim"] = dims;
    attrs["keepdim"] = keep;
    return add(std::move(op_type), {a}, std::move(attrs), shape, a.dtype);
  }

  /// The parts, of which the last one gives `last`; nothing if that is not what the node gives.
  std::optional<std::vector<DecomposedPart>> finish(const Value& last) {
    const Value wanted = result();
    if (last.shape != wanted.shape || last.dtype != wanted.dtype) return std::nullopt;
    const bool is_last = last.part >= 0 && index_of(last.part) + 1 == parts_.size();
    if (!is_last) map("aten.alias.default", last);
    return std::move(parts_);
  }

 private:
  const BoundNode& node_;
  std::vector<DecomposedPart> parts_;
};

}  // namespace npu::decompositions
