// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gnn/block/block_run.hpp"
#include "gnn/graph/halo.hpp"
#include "gnn/plan/document/plan_document.hpp"

namespace npu::gnn {

/// The share of a segment of a subgraph that one device computes.
struct ShareTask {
  std::int32_t subgraph = 0;
  const Subgraph* part = nullptr;  ///< whose rows the view numbers; one of the graph's `parts`
  std::size_t segment = 0;
  std::int32_t first = 1;  ///< stages
  std::int32_t last = 1;
  std::int32_t device = 0;  ///< index into the plan's devices
  SubgraphView view;
  std::vector<std::int32_t> local;  ///< subgraph-local ids of the view's nodes; empty: the same
  std::int64_t row_begin = 0;       ///< of the subgraph's owned rows
  std::int64_t edge_begin = 0;
};

/// The tasks of every layer, in order of priority: cluster by cluster, the segments of a subgraph
/// one after another.
struct TaskGraph {
  std::vector<std::vector<ShareTask>> layers;
};

/// The parts of a graph, and what those of some device plans are instead.
struct TaskParts {
  const std::vector<Subgraph>& parts;
  const std::vector<Subgraph>* crossing = nullptr;  ///< empty ones are as in `parts`
  std::vector<char> crosses = {};                   ///< by device plan: 1 if its tasks read those
};

/// The tasks of a plan over `parts`, which are the subgraphs of a graph of `nodes` nodes, for
/// layers of so many stages. Parts without nodes are those of other processes. Throws Error
/// kInvalidGraph for a plan that names unknown layers, subgraphs, devices or device plans, or
/// leaves a stage or a subgraph out; `file` is the plan's. With `only`, the plan is of that layer
/// alone, from 0. Views refer to `parts`. O(edges) for every segment that devices share.
TaskGraph build_task_graph(const GnnPlan& plan, const TaskParts& parts, std::int64_t nodes,
                           const std::vector<std::int32_t>& stage_counts, const std::string& file,
                           std::optional<std::size_t> only = {});

}  // namespace npu::gnn
