// SPDX-License-Identifier: Apache-2.0
// Contracts clusters to nodes. Rows of clusters are made in pieces, each by one thread, and put
// behind one another, so the result is the same on any number of threads.
#include "csr/multilevel/contract_graph.hpp"

#include <algorithm>

#include "csr/graph_weights.hpp"
#include "csr/multilevel/pieces.hpp"
#include "csr/multilevel/weight_table.hpp"

namespace npu {
namespace {

// Nodes by cluster.
struct ClusterMembers {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> nodes;

  explicit ClusterMembers(const NodeClusters& clusters)
      : offsets(index_of(clusters.count) + 1, 0), nodes(clusters.cluster_of.size()) {
    for (const std::int32_t cluster : clusters.cluster_of) ++offsets[index_of(cluster) + 1];
    for (std::size_t c = 1; c < offsets.size(); ++c) offsets[c] += offsets[c - 1];
    std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
    for (std::size_t v = 0; v < nodes.size(); ++v) {
      nodes[index_of(next[index_of(clusters.cluster_of[v])]++)] = static_cast<std::int32_t>(v);
    }
  }
};

// Some rows of the contracted graph.
struct RowPiece {
  std::vector<std::int64_t> degrees;
  std::vector<std::int32_t> neighbors;
  std::vector<std::int64_t> weights;
};

class Contraction {
 public:
  Contraction(const CsrGraph& graph, const NodeClusters& clusters)
      : graph_(graph), clusters_(clusters), members_(clusters) {}

  RowPiece rows(std::int32_t begin, std::int32_t end) const {
    RowPiece piece;
    WeightTable table;
    std::vector<std::pair<std::int32_t, std::int64_t>> row;
    for (std::int32_t cluster = begin; cluster < end; ++cluster) {
      sum_edges(cluster, table);
      row.clear();
      for (std::size_t i = 0; i < table.size(); ++i) row.push_back(table.entry(i));
      std::sort(row.begin(), row.end());
      for (const auto& [neighbor, weight] : row) {
        piece.neighbors.push_back(neighbor);
        piece.weights.push_back(weight);
      }
      piece.degrees.push_back(static_cast<std::int64_t>(row.size()));
    }
    return piece;
  }

  std::vector<std::int64_t> node_weights() const {
    const std::int32_t count = graph_.node_weight_count;
    std::vector<std::int64_t> weights(index_of(std::int64_t{clusters_.count} * count), 0);
    for (std::int32_t v = 0; v < graph_.node_count(); ++v) {
      const std::int64_t first = std::int64_t{clusters_.cluster_of[index_of(v)]} * count;
      for (std::int32_t c = 0; c < count; ++c) {
        weights[index_of(first + c)] += node_weight(graph_, v, c);
      }
    }
    return weights;
  }

 private:
  void sum_edges(std::int32_t cluster, WeightTable& table) const {
    const auto first = members_.offsets[index_of(cluster)];
    const auto last = members_.offsets[index_of(cluster) + 1];
    std::int64_t entries = 0;
    for (auto i = first; i < last; ++i) entries += graph_.degree(members_.nodes[index_of(i)]);
    table.reset(std::min<std::int64_t>(entries, clusters_.count));
    for (auto i = first; i < last; ++i) {
      const std::int32_t v = members_.nodes[index_of(i)];
      for (std::int64_t e = graph_.offsets[index_of(v)]; e < graph_.offsets[index_of(v) + 1]; ++e) {
        const std::int32_t to = clusters_.cluster_of[index_of(graph_.neighbors[index_of(e)])];
        if (to != cluster) table.add(to, edge_weight(graph_, e));
      }
    }
  }

  const CsrGraph& graph_;
  const NodeClusters& clusters_;
  ClusterMembers members_;
};

}  // namespace

CsrGraph contract_graph(const CsrGraph& graph, const NodeClusters& clusters, std::size_t threads) {
  const Contraction contraction(graph, clusters);
  std::vector<RowPiece> pieces(piece_count(index_of(clusters.count)));
  in_pieces(index_of(clusters.count), threads, [&](std::size_t begin, std::size_t end) {
    pieces[begin / kPieceSize] =
        contraction.rows(static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end));
  });
  CsrGraph coarse;
  coarse.node_weight_count = graph.node_weight_count;
  coarse.node_weights = contraction.node_weights();
  std::size_t entries = 0;
  for (const RowPiece& piece : pieces) entries += piece.neighbors.size();
  coarse.offsets.reserve(index_of(clusters.count) + 1);
  coarse.neighbors.reserve(entries);
  coarse.edge_weights.reserve(entries);
  for (RowPiece& piece : pieces) {
    for (const std::int64_t degree : piece.degrees) {
      coarse.offsets.push_back(coarse.offsets.back() + degree);
    }
    coarse.neighbors.insert(coarse.neighbors.end(), piece.neighbors.begin(), piece.neighbors.end());
    coarse.edge_weights.insert(coarse.edge_weights.end(), piece.weights.begin(),
                               piece.weights.end());
    piece = RowPiece();
  }
  return coarse;
}

}  // namespace npu
