// SPDX-License-Identifier: Apache-2.0
// Rows of results in several graphs, by the names of nodes. O(nodes).
#include "lowering/engine/entry_rows.hpp"

#include <algorithm>

#include "support/checked.hpp"

namespace npu::onednn {

EntryRows::EntryRows(std::span<const Graph> graphs) {
  if (graphs.size() < 2) return;
  for (const Graph& graph : graphs) {
    for (const Node& node : graph.nodes()) {
      if (node.outputs.size() != 1) continue;
      Shape shape = graph.tensor(node.outputs.front()).shape;
      if (shape.empty()) continue;
      shape.pop_back();
      const auto rows = checked_element_count(shape);
      if (!rows) continue;
      const auto [found, is_new] = nodes_.try_emplace(node.name, RowRange{*rows, *rows});
      RowRange& range = found->second;
      range = {std::min(range.least, *rows), std::max(range.most, *rows)};
    }
  }
}

RowRange EntryRows::of(const Node& node, std::int64_t rows) const {
  const auto found = nodes_.find(node.name);
  const bool is_known =
      found != nodes_.end() && found->second.least <= rows && rows <= found->second.most;
  return is_known ? found->second : RowRange{rows, rows};
}

}  // namespace npu::onednn
