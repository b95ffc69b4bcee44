// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csr/csr_graph.hpp"

namespace npu::gnn {

enum class GraphFormat : std::uint8_t {
  kAuto,          ///< by content: the binary form or a MatrixMarket banner, else by name (.graph,
                  ///< .safetensors)
  kMatrixMarket,  ///< coordinate; row i, column j is the edge i -> j
  kMetis,         ///< undirected
  kEdgeList,      ///< SNAP: one "source target" per line, any 64-bit ids
  kBinary,        ///< the form that npu-plan --csr writes, npu-gnn(5)
  kSafetensors,   ///< indptr and indices (row i lists the targets of i), or edge_index [2, m]
};

struct GraphReadOptions {
  GraphFormat format = GraphFormat::kAuto;
  /// Edge lists: the ids are nodes 0 .. node_count - 1, so nodes without edges are possible.
  /// If not set, the ids that occur are numbered in ascending order.
  std::optional<std::int64_t> node_count;
  bool undirected = false;  ///< adds the reverse of every edge that has none
  bool one_loop = false;    ///< adds a loop to every node without, and drops all but one of others
};

/// A graph to compute on: row v of `in_edges` lists the sources of the edges into v, in ascending
/// order; parallel edges and loops are kept.
struct DataGraph {
  CsrGraph in_edges;
  std::vector<std::int64_t> ids;  ///< by node, where the file's ids are not 0 .. n - 1
  std::string format;  ///< "matrix-market", "metis", "edge-list", "safetensors" or "binary"
  std::vector<std::string> notes;  ///< remarks for people on what was left out or added
};

/// Throws Error kParse with the line of the fault. The path "-" is stdin.
DataGraph parse_graph(std::string_view bytes, const std::string& file,
                      const GraphReadOptions& options);
DataGraph read_graph_file(const std::string& path, const GraphReadOptions& options);

}  // namespace npu::gnn
