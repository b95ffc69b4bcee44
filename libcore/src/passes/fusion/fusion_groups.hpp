// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// A group as a document or a sub-IR states it.
struct GivenGroup {
  std::optional<std::int64_t> id;  ///< nothing: a node without a group
  std::string pattern;             ///< empty if it is not stated
  std::vector<NodeId> nodes;       ///< in list order
};

/// The groups that `nodes`, in list order, belong to, by their first node: `fusion_group` says
/// which, `fusion_pattern` of a sub-IR or npu.fusion of a document what it is. O(nodes + groups).
std::vector<GivenGroup> given_groups(const Graph& graph, std::span<const NodeId> nodes);

/// True for a group that a kernel computes: it moves data, and its pattern is not one of those
/// whose nodes become none (npu-fuse(1)).
bool launches_kernel(const Graph& graph, std::string_view pattern, std::span<const NodeId> nodes);

/// A node that keeps some of its elements and fills the others by a mask of bool.
struct SelectingMask {
  TensorId elements;
  TensorId truth;
  double fill = 0;
  bool keeps = true;  ///< what true means; else true fills
};
/// Nothing for nodes other than `where` with one number and `masked_fill` with a number.
std::optional<SelectingMask> selecting_mask(const Graph& graph, const Node& node);

/// How many of the groups of `nodes` launch a kernel.
std::int64_t predicted_kernels(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace npu
