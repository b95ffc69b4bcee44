// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/exchange/rank_plan.hpp"
#include "gnn/exchange/row_sums.hpp"
#include "gnn/graph/binary_graph.hpp"
#include "gnn/graph/halo.hpp"
#include "transport/transport.hpp"

namespace npu::gnn {

/// What one rank of a plan holds. The rows of its tensors per node are those of the nodes that it
/// owns, then those that its parts read besides: of halo nodes, or, if sums cross, sums over edges
/// from other parts and at last a row of zeros. An edge whose source is in such a sum reads the sum
/// if it is the first one, else the zeros, so that edges keep their number; where sums are the
/// largest rows, all of these edges read it.
struct RankLayout {
  std::vector<std::int32_t> own_nodes;   ///< by row
  std::vector<std::int32_t> halo_nodes;  ///< by row behind the owned ones, if features alone cross
  std::int64_t row_count = 0;
  std::vector<Subgraph> parts;  ///< of the whole plan; those of others are empty. `nodes` are rows
  TransportPeers from;
  TransportPeers to;
  RowSums sent;   ///< rows to send, in the order of `to`; a row of features is a sum of one
  RowSums local;  ///< rows behind the owned ones, if sums cross; else received rows lie there
  bool holds_sums = false;    ///< rows behind the owned ones are `local`
  std::int64_t received = 0;  ///< rows of all ranks of `from`
  std::vector<char> late;     ///< by row: 1 if it holds what is received

  std::int64_t own_count() const noexcept { return static_cast<std::int64_t>(own_nodes.size()); }
  /// `late` of the rows of `local`.
  const char* late_sums() const noexcept { return late.data() + own_nodes.size(); }
};

/// The layout of one rank. Throws Error kInvalidGraph if the plan's covers do not cover the edges
/// of the graph; `file` is the plan's. `is_max`: EdgeSums::is_max. O(nodes + edges of the rank), or
/// of the whole graph if features alone cross.
RankLayout lay_out_rank(const RankPlan& plan, const GraphRows& in_edges,
                        const std::vector<std::int32_t>& part_of, std::int32_t rank,
                        const std::string& file, bool is_max = false);

}  // namespace npu::gnn
