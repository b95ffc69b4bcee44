// SPDX-License-Identifier: Apache-2.0
// Builds and checks graphs in compressed sparse row form.
//
// Building counts, fills and sorts each row: O(nodes + edges log degree). The check of symmetry
// walks the rows once with a cursor in each: since rows ascend, the reverse entries of row v are
// met in order, so it takes O(nodes + entries) with one word per node.
#include "csr/csr_graph.hpp"

#include <algorithm>

#include "npu/support/error.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

std::size_t at(std::int32_t node) { return static_cast<std::size_t>(node); }

std::string edge_text(std::int32_t a, std::int32_t b) {
  return std::to_string(a) + " - " + std::to_string(b);
}

std::string size_fault(const CsrGraph& graph) {
  if (graph.offsets.empty() || graph.offsets.front() != 0) return "offsets do not begin with 0";
  if (graph.offsets.size() - 1 > static_cast<std::size_t>(INT32_MAX)) return "too many nodes";
  if (!std::is_sorted(graph.offsets.begin(), graph.offsets.end())) return "offsets descend";
  if (graph.offsets.back() != static_cast<std::int64_t>(graph.neighbors.size())) {
    return "offsets end at " + std::to_string(graph.offsets.back()) + ", but there are " +
           std::to_string(graph.neighbors.size()) + " neighbours";
  }
  if (!graph.edge_weights.empty() && graph.edge_weights.size() != graph.neighbors.size()) {
    return "there are " + std::to_string(graph.edge_weights.size()) + " edge weights for " +
           std::to_string(graph.neighbors.size()) + " neighbours";
  }
  const std::size_t nodes = graph.offsets.size() - 1;
  if (graph.node_weight_count < 1 ||
      (!graph.node_weights.empty() &&
       graph.node_weights.size() != nodes * at(graph.node_weight_count))) {
    return "there are " + std::to_string(graph.node_weights.size()) + " node weights for " +
           std::to_string(nodes) + " nodes";
  }
  return {};
}

}  // namespace

CsrGraph build_undirected_graph(std::int32_t node_count, std::span<const WeightedEdge> edges) {
  CsrGraph graph;
  graph.offsets.assign(at(node_count) + 1, 0);
  for (const WeightedEdge& edge : edges) {
    if (edge.a < 0 || edge.b < 0 || edge.a >= node_count || edge.b >= node_count) {
      throw Error(ErrorCode::kInvalidGraph, "edge " + edge_text(edge.a, edge.b) +
                                                " has an end that is not one of the " +
                                                std::to_string(node_count) + " nodes");
    }
    if (edge.a == edge.b) continue;
    ++graph.offsets[at(edge.a) + 1];
    ++graph.offsets[at(edge.b) + 1];
  }
  for (std::size_t v = 1; v < graph.offsets.size(); ++v) graph.offsets[v] += graph.offsets[v - 1];
  struct Entry {
    std::int32_t neighbor;
    std::int64_t weight;
  };
  std::vector<Entry> entries(static_cast<std::size_t>(graph.offsets.back()));
  std::vector<std::int64_t> next(graph.offsets.begin(), graph.offsets.end() - 1);
  for (const WeightedEdge& edge : edges) {
    if (edge.a == edge.b) continue;
    entries[static_cast<std::size_t>(next[at(edge.a)]++)] = {edge.b, edge.weight};
    entries[static_cast<std::size_t>(next[at(edge.b)]++)] = {edge.a, edge.weight};
  }
  bool weighted = false;
  std::int64_t begin = 0;
  for (std::int32_t v = 0; v < node_count; ++v) {
    const std::int64_t end = graph.offsets[at(v) + 1];
    const auto first = entries.begin() + begin;
    const auto last = entries.begin() + end;
    std::sort(first, last, [](const Entry& a, const Entry& b) { return a.neighbor < b.neighbor; });
    const std::size_t row = graph.neighbors.size();
    for (auto entry = first; entry != last; ++entry) {
      if (graph.neighbors.size() > row && graph.neighbors.back() == entry->neighbor) {
        graph.edge_weights.back() = saturating_add(graph.edge_weights.back(), entry->weight);
      } else {
        graph.neighbors.push_back(entry->neighbor);
        graph.edge_weights.push_back(entry->weight);
      }
    }
    for (std::size_t e = row; e < graph.edge_weights.size(); ++e) {
      weighted = weighted || graph.edge_weights[e] != 1;
    }
    begin = end;
    graph.offsets[at(v) + 1] = static_cast<std::int64_t>(graph.neighbors.size());
  }
  if (!weighted) graph.edge_weights.clear();
  return graph;
}

std::string undirected_graph_fault(const CsrGraph& graph) {
  if (std::string fault = size_fault(graph); !fault.empty()) return fault;
  const std::int32_t nodes = graph.node_count();
  std::vector<std::int64_t> cursor(graph.offsets.begin(), graph.offsets.end() - 1);
  const auto weight = [&](std::int64_t entry) {
    return graph.edge_weights.empty() ? 1 : graph.edge_weights[static_cast<std::size_t>(entry)];
  };
  for (std::int32_t v = 0; v < nodes; ++v) {
    std::int32_t previous = -1;
    for (std::int64_t e = graph.offsets[at(v)]; e < graph.offsets[at(v) + 1]; ++e) {
      const std::int32_t u = graph.neighbors[static_cast<std::size_t>(e)];
      if (u < 0 || u >= nodes) {
        return "node " + std::to_string(v) + " has the neighbour " + std::to_string(u) +
               ", but there are " + std::to_string(nodes) + " nodes";
      }
      if (u == v) return "node " + std::to_string(v) + " has a loop";
      if (u <= previous) {
        return "the neighbours of node " + std::to_string(v) + " do not ascend strictly";
      }
      if (weight(e) < 0) return "edge " + edge_text(v, u) + " has a negative weight";
      previous = u;
      // Row u lists its neighbours in order, so the next one has to be v.
      const std::int64_t reverse = cursor[at(u)];
      if (reverse >= graph.offsets[at(u) + 1] ||
          graph.neighbors[static_cast<std::size_t>(reverse)] > v) {
        return "edge " + edge_text(v, u) + " has no reverse";
      }
      if (graph.neighbors[static_cast<std::size_t>(reverse)] < v) {
        return "edge " + edge_text(u, graph.neighbors[static_cast<std::size_t>(reverse)]) +
               " has no reverse";
      }
      if (weight(reverse) != weight(e)) {
        return "edge " + edge_text(v, u) + " has weight " + std::to_string(weight(e)) +
               " one way and " + std::to_string(weight(reverse)) + " the other";
      }
      ++cursor[at(u)];
    }
  }
  for (std::int32_t v = 0; v < nodes; ++v) {
    if (cursor[at(v)] != graph.offsets[at(v) + 1]) {
      return "edge " + edge_text(v, graph.neighbors[static_cast<std::size_t>(cursor[at(v)])]) +
             " has no reverse";
    }
  }
  const bool negative = std::any_of(graph.node_weights.begin(), graph.node_weights.end(),
                                    [](std::int64_t w) { return w < 0; });
  return negative ? "a node has a negative weight" : std::string();
}

}  // namespace npu
