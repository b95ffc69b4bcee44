// SPDX-License-Identifier: Apache-2.0
// Arguments of nodes, with refusals that name them. O(1).
#include "lowering/engine/node_arguments.hpp"

#include <algorithm>

#include "ops/op_catalogue.hpp"
#include "support/checked.hpp"

namespace npu::onednn {

BoundNode bound(const Graph& graph, const Node& node) {
  return BoundNode(graph, node, find_op(node.op_type)->schema);
}

TensorId tensor_argument(const Lowering& lowering, const BoundNode& node, std::string_view name) {
  const auto tensor = node.tensor(name);
  if (!tensor) lowering.refuse(name, "only a tensor is supported here");
  return *tensor;
}

TensorId first_operand(const Lowering& lowering) {
  if (lowering.node().inputs.empty()) lowering.invalid("the op has no operand");
  return lowering.node().inputs.front();
}

std::vector<std::int64_t> spatial_argument(const Lowering& lowering, const BoundNode& node,
                                           std::string_view name, std::size_t rank,
                                           std::int64_t least) {
  std::vector<std::int64_t> values = node.integers(name);
  if (values.size() == 1) values.assign(rank, values.front());
  if (values.size() != rank) {
    lowering.invalid("argument '" + std::string(name) + "' has " + std::to_string(values.size()) +
                     " values for " + std::to_string(rank) + " dimensions");
  }
  for (const std::int64_t value : values) {
    if (value < least || value > INT32_MAX) {
      lowering.refuse(name, "value " + number_text(value) + " is not in " + number_text(least) +
                                ".." + number_text(INT32_MAX));
    }
  }
  return values;
}

std::size_t normalize_dimension(const Lowering& lowering, std::string_view argument,
                                std::int64_t dimension, std::size_t rank) {
  const auto limit = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  if (dimension < -limit || dimension >= limit) {
    lowering.invalid("argument '" + std::string(argument) + "': dimension " +
                     number_text(dimension) + " is not in a tensor of rank " +
                     std::to_string(rank));
  }
  return static_cast<std::size_t>(dimension < 0 ? dimension + limit : dimension);
}

Shape broadcast_shape(const Lowering& lowering, const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      lowering.invalid("shapes " + shape_text(a) + " and " + shape_text(b) + " do not broadcast");
    }
    result[result.size() - 1 - i] = from_a == 1 ? from_b : from_a;
  }
  return result;
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

}  // namespace npu::onednn
