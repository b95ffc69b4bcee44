// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// What a node of a decomposition reads, or gives.
struct PartValue {
  TensorId tensor = {};    ///< a tensor of the graph, or, if that is not valid,
  std::int32_t part = -1;  ///< the result of the part of this number
  Shape shape = {};
  DType dtype = DType::kFloat32;
};

/// One node of a decomposition, with one result.
struct DecomposedPart {
  std::string op_type;
  std::vector<PartValue> inputs;
  Json attrs = Json::object();
  Shape shape;
  DType dtype = DType::kFloat32;
};

/// The ops that have a decomposition, by name; in-place forms stand beside the others.
std::vector<std::string_view> decomposed_ops();

/// The nodes that together give what a node gives, in topological order, the last one its result;
/// nothing if its op has no decomposition, or none for these arguments, shapes and dtypes.
std::optional<std::vector<DecomposedPart>> decompose(const Graph& graph, const Node& node);

}  // namespace npu
