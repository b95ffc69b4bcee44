// SPDX-License-Identifier: Apache-2.0
// What is done with parts wherever they come from. METIS leaves parts empty when there are nearly
// as many as nodes, so those are filled; cut and balance are computed anew.
//
// O(nodes + entries), and O(entries of one part) for each empty part.
#include "csr/finish_partition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "csr/graph_weights.hpp"
#include "npu/support/error.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

// Gives each empty part a node of the part with the most nodes: the one
// whose move adds least to the cut.
std::int32_t fill_empty_parts(const CsrGraph& graph, std::int32_t part_count,
                              std::vector<std::int32_t>& part_of) {
  std::vector<std::vector<std::int32_t>> members(index_of(part_count));
  for (std::int32_t v = 0; v < graph.node_count(); ++v)
    members[index_of(part_of[index_of(v)])].push_back(v);
  std::int32_t repaired = 0;
  for (std::int32_t p = 0; p < part_count; ++p) {
    if (!members[index_of(p)].empty()) continue;
    auto& donor =
        *std::max_element(members.begin(), members.end(),
                          [](const auto& a, const auto& b) { return a.size() < b.size(); });
    std::size_t best = 0;
    std::int64_t best_internal = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < donor.size(); ++i) {
      const std::int32_t v = donor[i];
      std::int64_t internal = 0;  // weight of the edges that the move would cut
      for (std::int64_t e = graph.offsets[index_of(v)]; e < graph.offsets[index_of(v) + 1]; ++e) {
        if (part_of[index_of(graph.neighbors[index_of(e)])] != part_of[index_of(v)]) continue;
        internal = saturating_add(internal, edge_weight(graph, e));
      }
      if (internal < best_internal) {
        best_internal = internal;
        best = i;
      }
    }
    const std::int32_t moved = donor[best];
    donor.erase(donor.begin() + static_cast<std::ptrdiff_t>(best));
    part_of[index_of(moved)] = p;
    members[index_of(p)].push_back(moved);
    ++repaired;
  }
  return repaired;
}

// How far balance misses its goal, in steps of 5 %: a slightly smaller cut does not make up for a
// part that is much too heavy.
std::int64_t balance_excess(const std::vector<double>& imbalance, const MetisOptions& options) {
  double excess = 0;
  for (std::size_t c = 0; c < imbalance.size(); ++c) {
    excess =
        std::max(excess, imbalance[c] -
                             options.max_imbalance[std::min(c, options.max_imbalance.size() - 1)]);
  }
  return static_cast<std::int64_t>(std::floor(std::min(excess, 1e6) / 0.05));
}

// The quantity to minimise: the halo if requested, else the cut.
std::int64_t objective_of(const CsrGraph& graph, const MetisOptions& options,
                          const GraphPartition& partition) {
  if (!options.minimize_volume) return partition.edge_cut;
  if (options.volume_of) return options.volume_of(partition.part_of);
  return volume_of(graph, partition.part_of, options.part_count);
}

}  // namespace

void check_cut(const CsrGraph& graph, const MetisOptions& options) {
  if (options.part_count < 1 || options.seed_count < 1) {
    throw Error(ErrorCode::kUsage, "a graph is cut into at least 1 part, with at least 1 seed");
  }
  if (options.max_imbalance.empty() ||
      std::any_of(options.max_imbalance.begin(), options.max_imbalance.end(),
                  [](double value) { return !(value > 1) || !std::isfinite(value); })) {
    throw Error(ErrorCode::kUsage, "the imbalance of parts has to be above 1");
  }
  if (const std::string fault = undirected_graph_fault(graph); !fault.empty()) {
    throw Error(ErrorCode::kInvalidGraph, "cannot partition the graph: " + fault);
  }
  if (options.part_count > std::max(graph.node_count(), 1)) {
    throw Error(ErrorCode::kInfeasible,
                std::to_string(options.part_count) + " parts requested but the graph has " +
                    std::to_string(graph.node_count()) + " nodes; ask for " +
                    std::to_string(std::max(graph.node_count(), 1)) + " or fewer");
  }
}

GraphPartition finish_partition(const CsrGraph& graph, std::int32_t part_count,
                                std::vector<std::int32_t> part_of, std::uint64_t seed) {
  GraphPartition result;
  result.part_count = part_count;
  result.seed = seed;
  if (graph.node_count() > 0) {
    result.repaired_parts = fill_empty_parts(graph, part_count, part_of);
  }
  result.part_of = std::move(part_of);
  result.edge_cut = edge_cut_of(graph, result.part_of);
  result.imbalance = imbalance_of(graph, result.part_of, part_count);
  result.hash = partition_hash(result.part_of);
  return result;
}

std::pair<std::int64_t, std::int64_t> partition_rank(const CsrGraph& graph,
                                                     const MetisOptions& options,
                                                     const GraphPartition& partition) {
  return {balance_excess(partition.imbalance, options), objective_of(graph, options, partition)};
}

}  // namespace npu
