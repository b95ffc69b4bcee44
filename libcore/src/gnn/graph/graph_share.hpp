// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/graph/graph_reader.hpp"
#include "transport/partitioner_abi.h"
#include "transport/transport.hpp"

namespace npu::gnn {

/// One process's rows of the simple undirected graph that a directed one becomes.
struct GraphShare {
  std::int32_t first = 0;  ///< the number of the first row
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> neighbors;  ///< ascending within a row, in numbers of the whole graph
  /// One per node: the mean number of in-edges of a node, at least 1, and its own in-edges. So
  /// nodes and in-edges count alike.
  std::vector<std::int64_t> weights;
  std::int64_t all_nodes = 0;
  std::int64_t all_entries = 0;
  std::int64_t all_weights = 0;
  std::int64_t all_in_edges = 0;  ///< of the directed graph, with those that were added

  std::int32_t node_count() const noexcept { return static_cast<std::int32_t>(offsets.size()) - 1; }
  /// Refers to this.
  npu_graph_share view() const noexcept;
};

/// Whether a file is a graph in binary form, of which shares can be read. Throws Error kIo if there
/// is none.
bool has_shares(const std::string& path);

/// Reads the own rows of a file in binary form, about as many nodes and edges as the others, and
/// gets from the other processes the edges that leave the own nodes; collective, and the
/// transport's one connection is used up. In-edges are counted as if all that the options add was
/// there. Throws what do_together throws, Error kParse for a row that is not sound, and if the
/// processes see different graphs.
GraphShare read_graph_share(const std::string& path, const GraphReadOptions& options,
                            const Transport& processes);

}  // namespace npu::gnn
