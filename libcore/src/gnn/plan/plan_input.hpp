// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csr/found_parts.hpp"
#include "csr/partition_sweep.hpp"
#include "gnn/graph/graph_reader.hpp"
#include "gnn/model/stage_table.hpp"
#include "gnn/model/staged_model.hpp"
#include "gnn/plan/costs/device_plan_costs.hpp"
#include "gnn/plan/document/plan_document.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"

namespace npu::gnn {

/// What npu-plan can be asked for.
struct MakePlanOptions {
  std::string graph;      ///< file; empty if `subgraphs` is given
  std::string subgraphs;  ///< JSON list of id, n, m
  std::string model;      ///< staged document; empty: the seven stages of GraphSAGE
  std::string profile;
  std::string bandwidths;  ///< published form, beside a published table
  GraphReadOptions graph_options;
  PlanSettings settings;
  std::vector<std::int32_t> part_counts{8, 9, 10, 11, 12, 13, 14, 15, 16};
  std::uint64_t seed = 0;
  std::int32_t seed_count = 1;
  double node_imbalance = 1.05;
  double edge_imbalance = 1.03;
  bool minimize_volume = false;
  Partitioner partitioner = Partitioner::kAutomatic;
  int threads = 0;               ///< SweepOptions::threads
  std::int64_t pad = 1000;       ///< 0: chosen for each k
  std::int32_t rank_count = 0;   ///< processes that share the parts; 0: one, without a rank plan
  std::int64_t rank_memory = 0;  ///< the most that a rank may hold, in bytes; 0: no limit
  std::optional<RankLink> rank_link;  ///< by which the time of exchanges is predicted
  std::string rank_links;             ///< file with the links of all pairs, instead of that
  bool features_only = false;         ///< what crosses between ranks are features, never sums
  bool device_cover = false;          ///< sums may cross between devices of a plan for one process
  std::string output;          ///< where the plan is written, for relative paths; empty: stdout
  std::string partition_file;  ///< where the partition is written; empty: beside the plan
  std::string csr_file;        ///< where the graph is written in binary form, which the plan names
  ProgressCallback progress;   ///< called for each number of parts
};

/// Parts that processes have found together.
struct FoundCuts {
  std::string partitioner;
  std::int32_t processes = 1;
  std::vector<FoundParts> parts;  ///< of every number of parts and seed that took a partitioner
};

/// Everything that planning reads.
struct PlanInput {
  StageTable profile;
  std::optional<StagedModel> model;
  std::optional<DataGraph> graph;
  std::vector<SubgraphSize> subgraphs;  ///< without a graph
  std::vector<PlanLayer> layers;        ///< refer to `model`
  CostSettings settings;
  std::optional<FoundCuts> found;  ///< instead of cutting the graph
  std::optional<RankLinks> rank_links;
  PhaseTimes times;  ///< of reading
};

/// Reads the files that the options name. The result refers to itself and cannot be moved. Throws
/// Error kUsage for settings that name devices or stages which do not exist.
std::unique_ptr<PlanInput> read_plan_input(const MakePlanOptions& options,
                                           Diagnostics& diagnostics);

/// Its two halves: everything but the graph or table of subgraphs, and that.
std::unique_ptr<PlanInput> read_plan_facts(const MakePlanOptions& options,
                                           Diagnostics& diagnostics);
void read_plan_graph(const MakePlanOptions& options, PlanInput& input, Diagnostics& diagnostics);

}  // namespace npu::gnn
