// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/graph/csr_graph.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

enum class GraphFormat : std::uint8_t {
  kAuto,          ///< by content: a MatrixMarket banner, else by name (.graph, .safetensors)
  kMatrixMarket,  ///< coordinate; row i, column j is the edge i -> j
  kMetis,         ///< undirected
  kEdgeList,      ///< SNAP: "source target" a line, any 64-bit ids
  kSafetensors,   ///< indptr and indices (row i lists the targets of i), or edge_index [2, m]
};

struct GraphReadOptions {
  GraphFormat format = GraphFormat::kAuto;
  /// Edge lists: ids are nodes 0 .. node_count - 1, so that nodes without edges exist, too.
  /// Otherwise the ids that occur are numbered in ascending order.
  std::optional<std::int64_t> node_count;
  bool undirected = false;  ///< adds the reverse of every edge that is not there
};

/// A graph to compute on: row v of `in_edges` lists the sources of the edges into v, in ascending
/// order; parallel edges and loops stay.
struct DataGraph {
  CsrGraph in_edges;
  std::vector<std::int64_t> ids;   ///< by node, where the file's ids are not 0 .. n - 1
  std::string format;              ///< "matrix-market", "metis", "edge-list" or "safetensors"
  std::vector<std::string> notes;  ///< what was left out or added, for people
};

/// Throws Error kParse with the line of the fault. The path "-" is stdin.
DataGraph parse_graph(std::string_view bytes, const std::string& file,
                      const GraphReadOptions& options);
DataGraph read_graph_file(const std::string& path, const GraphReadOptions& options);

/// The simple undirected graph of `in_edges`, for METIS, and what that took.
struct SymmetrizedGraph {
  CsrGraph graph;
  std::int64_t loops = 0;           ///< dropped
  std::int64_t duplicates = 0;      ///< parallel edges dropped
  std::int64_t added_reverses = 0;  ///< edges that had none
  /// "3 loops and 2 parallel edges dropped, 5 reverse edges added"; empty if nothing was.
  std::string note() const;
};
SymmetrizedGraph symmetrize(const CsrGraph& in_edges);

/// Node features, float32 [n, F]: .npy, safetensors (the tensor "x" or "features", or the only
/// one), or MatrixMarket (coordinate or array). Throws Error kParse.
Tensor read_features(const std::string& path);
Tensor parse_matrix_market_features(std::string_view bytes, const std::string& file);

/// One part number a line, as METIS writes it, with `node_count` lines.
std::vector<std::int32_t> parse_partition(std::string_view text, const std::string& file,
                                          std::int64_t node_count);
std::string partition_text(const std::vector<std::int32_t>& part_of);

}  // namespace npu
