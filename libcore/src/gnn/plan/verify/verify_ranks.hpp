// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "csr/csr_graph.hpp"
#include "gnn/exchange/rank_plan.hpp"
#include "gnn/plan/search/replay_clusters.hpp"

namespace npu::gnn {

/// Told of every fault: its place below the plan's `ranks`, and a text.
using RankComplaint = std::function<void(const std::string& pointer, const std::string& text)>;

/// Edges as pairs of source and target, each once.
using EdgeSet = std::set<std::pair<std::int32_t, std::int32_t>>;

/// The size of a largest matching: no fewer rows cross for these edges. By another algorithm than
/// the one that plans.
std::int64_t least_rows(const EdgeSet& edges);

/// That a cover's edges are some of `edges` and a matching, and that what crosses covers all of
/// them.
void check_cover(const std::string& pointer, const std::vector<CrossingRow>& cover,
                 const EdgeSet& edges, const RankComplaint& complain);

/// Counts again what a plan says of its ranks, from the graph and its partition: what each owns and
/// holds, and for each pair the edges, that the cover covers them, that its edges are a matching,
/// and, by another algorithm, that no matching is larger.
void verify_ranks(const RankPlan& plan, const CsrGraph& in_edges,
                  const std::vector<std::int32_t>& part_of, const RowWidths& widths,
                  const RankComplaint& complain);

/// Complains if the plan says something else of a layer, from 0, than a replay of the tasks of each
/// rank. `tasks` are those of the layer; `part_at` by ReplayTask::position. O(tasks^2).
void verify_compute(const RankPlan& plan, std::size_t layer, const std::vector<ReplayTask>& tasks,
                    const std::vector<std::int64_t>& part_at, const std::vector<double>& switch_ms,
                    const RankComplaint& complain);

}  // namespace npu::gnn
