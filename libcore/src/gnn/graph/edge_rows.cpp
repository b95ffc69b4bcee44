// SPDX-License-Identifier: Apache-2.0
// Shared by all graph readers: a counting sort turns edges in file order into rows by target.
// O(nodes + edges) where sources are in order already; 4 more bytes of memory per edge.
#include "gnn/graph/edge_rows.hpp"

#include <algorithm>
#include <numeric>

#include "npu/support/ids.hpp"

namespace npu::gnn {
CsrGraph rows_by_target(std::int64_t node_count, EdgeArrays edges) {
  CsrGraph graph;
  const std::size_t count = edges.sources.size();
  graph.offsets.assign(index_of(node_count) + 1, 0);
  for (const std::int32_t target : edges.targets) ++graph.offsets[index_of(target) + 1];
  std::partial_sum(graph.offsets.begin(), graph.offsets.end(), graph.offsets.begin());
  graph.neighbors.resize(count);
  std::vector<std::int64_t> next(graph.offsets.begin(), graph.offsets.end() - 1);
  for (std::size_t e = 0; e < count; ++e) {
    graph.neighbors[index_of(next[index_of(edges.targets[e])]++)] = edges.sources[e];
  }
  for (std::int64_t v = 0; v < node_count; ++v) {
    const auto begin = graph.neighbors.begin() + graph.offsets[index_of(v)];
    const auto end = graph.neighbors.begin() + graph.offsets[index_of(v) + 1];
    if (!std::is_sorted(begin, end)) std::sort(begin, end);
  }
  return graph;
}

void check_node_count(LineReader& lines, std::int64_t nodes, std::string_view bytes) {
  if (nodes < 1) lines.fail("the graph has no nodes");
  if (nodes > kMaxNodes) {
    lines.fail(std::to_string(nodes) + " nodes are more than the " + std::to_string(kMaxNodes) +
               " that npu-tools takes");
  }
  if (index_of(nodes) > 64 * bytes.size() + (std::size_t{1} << 20)) {
    lines.fail("a file of " + std::to_string(bytes.size()) + " bytes promises " +
               std::to_string(nodes) + " nodes");
  }
}

std::size_t plausible_entries(std::int64_t promised, std::string_view bytes) {
  return std::min(index_of(promised), bytes.size() / 4 + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string count_text(std::int64_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

}  // namespace npu::gnn
