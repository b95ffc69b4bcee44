// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "npu/cost/profile_table.hpp"
#include "npu/graph/graph_reader.hpp"
#include "npu/graph/metis_partitioner.hpp"
#include "npu/plan/pep_costs.hpp"
#include "npu/plan/selection.hpp"
#include "npu/plan/simulate.hpp"
#include "npu/plan/staged_model.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"

namespace npu {

/// What npu-plan can be asked for.
struct PlanGnnOptions {
  std::string graph;      ///< file; empty if `subgraphs` is given
  std::string subgraphs;  ///< JSON list of id, n, m
  std::string model;      ///< staged document; empty: the seven stages of GraphSAGE
  std::string profile;
  std::string bandwidths;  ///< published form, beside a published table
  std::string target = "host";
  GraphReadOptions graph_options;
  std::vector<std::int32_t> part_counts{8, 9, 10, 11, 12, 13, 14, 15, 16};
  std::uint64_t seed = 0;
  std::int32_t seed_count = 1;
  double node_imbalance = 1.05;
  double edge_imbalance = 1.03;
  bool minimize_volume = false;
  bool greedy = false;
  std::int64_t pad = 1000;  ///< 0: chosen for each k
  std::vector<double> ratios;
  std::int32_t max_segments = 3;
  std::int32_t top_k = 0;  ///< candidates kept for each subgraph; 0: all
  bool transfers = true;
  Interpolation interpolation = Interpolation::kBilinear;
  std::vector<std::string> devices;    ///< only these; empty: all of the profile
  std::vector<std::string> excludes;   ///< DEVICE=STAGE[,STAGE...]
  std::vector<std::string> memory;     ///< DEVICE=BYTES
  std::vector<std::string> resources;  ///< DEVICE=NAME
  std::string output;                  ///< where the plan goes, for relative paths; empty: stdout
  std::string partition_file;          ///< where the partition goes; empty: beside the plan
  ProgressCallback progress;           ///< told of each number of parts
};

/// Everything that planning reads.
struct PlanInput {
  ProfileTable profile;
  std::optional<StagedModel> model;
  std::optional<DataGraph> graph;
  std::vector<SubgraphSize> subgraphs;  ///< without a graph
  std::vector<PlanLayer> layers;        ///< refer to `model`
  CostSettings settings;
  PhaseTimes times;  ///< of reading
};

/// Reads the files that the options name. The result refers to itself: it stays where it is.
std::unique_ptr<PlanInput> read_plan_input(const PlanGnnOptions& options, Diagnostics& diagnostics);

/// One task of the simulated schedule, for drawings.
struct ScheduledTask {
  std::int32_t layer = 1;
  std::int32_t subgraph = 0;
  std::string pep;
  std::string block;
  std::string device;
  double start_ms = 0;
  double end_ms = 0;
};

struct GnnPlan {
  Json document;                      ///< npu-plan(1) lists its keys
  std::vector<std::int32_t> part_of;  ///< by node; empty without a graph
  std::vector<ScheduledTask> schedule;
  PhaseTimes times;  ///< not part of the document, which repeats
};

/// Finds the plan. Throws Error kInfeasible if no k has one.
GnnPlan plan_gnn(const PlanInput& input, const PlanGnnOptions& options, Diagnostics& diagnostics);

/// Reads, plans, and writes the partition file. What npu-plan does.
GnnPlan make_gnn_plan(const PlanGnnOptions& options, Diagnostics& diagnostics);

/// Recomputes a plan from its inputs and adds an error for everything that does not hold. Returns
/// what it computed.
Json verify_gnn_plan(const std::string& path, Diagnostics& diagnostics);

/// Every legal plan of a subgraph with its cost; refusals by reason if `refusals` is not null.
struct PlanCandidate {
  Pep pep;
  PepCost cost;
};
std::vector<PlanCandidate> plan_candidates(const PepCosts& costs,
                                           const std::vector<Pep>& structures,
                                           const SubgraphSize& subgraph,
                                           std::vector<std::string>* refusals);

/// Tables for people.
std::string format_plan_report(const Json& plan);
/// The simulated schedule as a drawing.
std::string gantt_svg(const GnnPlan& plan);
/// The simulated schedule as Chrome trace JSON.
std::string schedule_trace(const GnnPlan& plan);

}  // namespace npu
