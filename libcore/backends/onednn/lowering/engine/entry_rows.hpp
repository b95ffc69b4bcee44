// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// The fewest and the most rows that a node's result has in entries that are compiled together.
struct RowRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

/// What entries of one model, which share their weights, say of each other: a product with constant
/// weights may then be lowered so that all of them read the weights in one order.
class EntryRows {
 public:
  /// No other entries.
  EntryRows() = default;
  /// Nodes of all graphs, by their names. O(nodes).
  explicit EntryRows(std::span<const Graph> graphs);

  /// Of a node whose product has `rows` rows in the entry that is lowered: these alone if there are
  /// no other entries with it, or its rows are not those of its result.
  RowRange of(const Node& node, std::int64_t rows) const;

 private:
  std::unordered_map<std::string, RowRange> nodes_;
};

}  // namespace npu::onednn
