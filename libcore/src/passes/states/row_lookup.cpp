// SPDX-License-Identifier: Apache-2.0
// Tells lookups of rows, whatever op writes them. O(1).
#include "passes/states/row_lookup.hpp"

#include "ops/op_name.hpp"

namespace npu::states {

std::optional<RowLookup> row_lookup(const BoundNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const std::vector<TensorId>& inputs = node.node().inputs;
  std::optional<TensorId> index;
  std::int64_t dim = 0;
  if (name == "embedding") {
    index = node.tensor("indices");
  } else if (name == "index_select") {
    index = node.tensor("index");
    dim = node.integer("dim");
    if (dim < 0) dim += std::ssize(node.graph().tensor(inputs.at(0)).shape);
  } else if (name == "index") {
    const BoundArgument* indices = node.find("indices");
    if (indices == nullptr || inputs.size() != 2) return std::nullopt;
    while (index_of(dim) < indices->inputs.size() && indices->inputs[index_of(dim)] < 0) ++dim;
    index = inputs[1];
  }
  // The table comes first, and has no places itself.
  if (!index || dim < 0 || inputs.size() != 2 || *index != inputs[1]) return std::nullopt;
  return RowLookup{*index, index_of(dim)};
}

}  // namespace npu::states
