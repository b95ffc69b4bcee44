// SPDX-License-Identifier: Apache-2.0
// A node as rules look at it: operands by argument, dimensions counted from the front, sizes as
// expressions. O(arguments) for each look-up.
#include "passes/padding/node_rule.hpp"

#include <algorithm>
#include <numeric>

namespace npu::padding {

std::int32_t PaddedNode::rank(std::size_t operand) const {
  return static_cast<std::int32_t>(shapes_.of(node_.inputs[operand]).size());
}

bool PaddedNode::operand_varies(std::size_t i, std::int32_t dim) const {
  return dim >= 0 && dim < rank(i) && shapes_.varies(node_.inputs[i], index_of(dim));
}

bool PaddedNode::broadcasts(std::size_t i, std::int32_t dim) const {
  return dim < 0 || operand(i)[index_of(dim)].constant() == 1;
}

bool PaddedNode::result_varies(std::size_t i, std::int32_t dim) const {
  return shapes_.varies(node_.outputs[i], index_of(dim));
}

std::optional<std::size_t> PaddedNode::argument(std::string_view name) const {
  const BoundArgument* found = bound_.find(name);
  if (found == nullptr || found->kind != BoundArgument::Kind::kTensor) return std::nullopt;
  return index_of(found->inputs.front());
}

std::vector<std::int32_t> PaddedNode::arguments(std::string_view name) const {
  const BoundArgument* found = bound_.find(name);
  return found == nullptr ? std::vector<std::int32_t>{} : found->inputs;
}

namespace {

std::optional<std::int32_t> counted_from_front(std::int64_t dim, std::int32_t rank) {
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return std::nullopt;
  return static_cast<std::int32_t>(dim);
}

bool has_value(const BoundNode& bound, std::string_view name) {
  const BoundArgument* found = bound.find(name);
  return found != nullptr && found->kind == BoundArgument::Kind::kValue && !found->value.is_null();
}

}  // namespace

std::optional<std::int32_t> PaddedNode::dimension(std::string_view name, std::int32_t rank) const {
  if (!has_value(bound_, name)) return std::nullopt;
  return counted_from_front(bound_.integer(name), rank);
}

std::vector<std::int32_t> PaddedNode::dimensions(std::string_view name, std::int32_t rank) const {
  std::vector<std::int32_t> dims;
  if (has_value(bound_, name)) {
    for (const std::int64_t dim : bound_.integers(name)) {
      const auto place = counted_from_front(dim, rank);
      if (!place) return {};
      dims.push_back(*place);
    }
  }
  if (dims.empty()) {
    dims.resize(index_of(rank));
    std::iota(dims.begin(), dims.end(), 0);
  }
  return dims;
}

std::int64_t PaddedNode::integer_or(std::string_view name, std::int64_t otherwise) const {
  return has_value(bound_, name) ? bound_.integer(name) : otherwise;
}

double PaddedNode::number_or(std::string_view name, double otherwise) const {
  return has_value(bound_, name) ? bound_.number(name) : otherwise;
}

std::vector<std::int32_t> PaddedNode::varying_dims(std::size_t result) const {
  std::vector<std::int32_t> dims;
  const SizeShape& shape = this->result(result);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!shape[d].is_constant()) dims.push_back(static_cast<std::int32_t>(d));
  }
  return dims;
}

}  // namespace npu::padding
