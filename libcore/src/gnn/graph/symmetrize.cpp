// SPDX-License-Identifier: Apache-2.0
// Makes the simple undirected graph that METIS wants. Rows by source are made with a counting sort
// and merged with the rows by target. O(nodes + edges).
#include "gnn/graph/symmetrize.hpp"

#include <algorithm>
#include <climits>
#include <numeric>

#include "gnn/graph/edge_rows.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

// The rows by source; sources ascend within a row since targets are walked in order.
CsrGraph rows_by_source(const CsrGraph& in_edges) {
  const std::int32_t nodes = in_edges.node_count();
  CsrGraph out;
  out.offsets.assign(index_of(nodes) + 1, 0);
  for (const std::int32_t u : in_edges.neighbors) ++out.offsets[index_of(u) + 1];
  std::partial_sum(out.offsets.begin(), out.offsets.end(), out.offsets.begin());
  out.neighbors.resize(in_edges.neighbors.size());
  const bool weighted = !in_edges.edge_weights.empty();
  if (weighted) out.edge_weights.resize(in_edges.neighbors.size());
  {
    std::vector<std::int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
    for (std::int32_t v = 0; v < nodes; ++v) {
      for (std::int64_t e = in_edges.offsets[index_of(v)]; e < in_edges.offsets[index_of(v) + 1];
           ++e) {
        const std::int64_t slot = next[index_of(in_edges.neighbors[index_of(e)])]++;
        out.neighbors[index_of(slot)] = v;
        if (weighted) out.edge_weights[index_of(slot)] = in_edges.edge_weights[index_of(e)];
      }
    }
  }
  return out;
}

}  // namespace

std::string SymmetrizedGraph::note() const {
  std::string dropped;
  if (loops > 0) dropped = count_text(loops, "loop", "loops");
  if (duplicates > 0) {
    dropped += (dropped.empty() ? "" : " and ") +
               count_text(duplicates, "parallel edge", "parallel edges");
  }
  std::string text;
  if (!dropped.empty()) text = dropped + " dropped";
  if (added_reverses > 0) {
    text += (text.empty() ? "" : ", ") +
            count_text(added_reverses, "reverse edge", "reverse edges") + " added";
  }
  return text;
}

SymmetrizedGraph symmetrize(const CsrGraph& in_edges) {
  SymmetrizedGraph result;
  const std::int32_t nodes = in_edges.node_count();
  const bool weighted = !in_edges.edge_weights.empty();
  const CsrGraph out = rows_by_source(in_edges);
  CsrGraph& graph = result.graph;
  graph.node_weights = in_edges.node_weights;
  graph.node_weight_count = in_edges.node_weight_count;
  graph.offsets.assign(1, 0);
  graph.offsets.reserve(index_of(nodes) + 1);
  graph.neighbors.reserve(in_edges.neighbors.size());
  // Merges both rows of v. A pair that has both directions counts once; its weight is the larger
  // one, which both ends see alike.
  for (std::int32_t v = 0; v < nodes; ++v) {
    std::int64_t a = in_edges.offsets[index_of(v)];
    const std::int64_t a_end = in_edges.offsets[index_of(v) + 1];
    std::int64_t b = out.offsets[index_of(v)];
    const std::int64_t b_end = out.offsets[index_of(v) + 1];
    while (a < a_end || b < b_end) {
      const std::int32_t in = a < a_end ? in_edges.neighbors[index_of(a)] : INT32_MAX;
      const std::int32_t to = b < b_end ? out.neighbors[index_of(b)] : INT32_MAX;
      const std::int32_t u = std::min(in, to);
      std::int64_t ins = 0;
      std::int64_t outs = 0;
      std::int64_t weight = 0;
      for (; a < a_end && in_edges.neighbors[index_of(a)] == u; ++a, ++ins) {
        if (weighted) weight = std::max(weight, in_edges.edge_weights[index_of(a)]);
      }
      for (; b < b_end && out.neighbors[index_of(b)] == u; ++b, ++outs) {
        if (weighted) weight = std::max(weight, out.edge_weights[index_of(b)]);
      }
      if (u == v) {
        result.loops += ins;
        continue;
      }
      if (ins > 1) result.duplicates += ins - 1;
      if (ins == 0) ++result.added_reverses;
      graph.neighbors.push_back(u);
      if (weighted) graph.edge_weights.push_back(weight);
    }
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
  }
  return result;
}

}  // namespace npu::gnn
