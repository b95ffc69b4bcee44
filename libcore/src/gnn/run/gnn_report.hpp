// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "npu/runtime/compare.hpp"
#include "npu/support/json.hpp"
#include "npu/support/progress.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// A block of the last run.
struct PlanRunStep {
  std::int32_t layer = 1;
  std::int32_t subgraph = 0;
  std::int32_t first = 1;  ///< stages
  std::int32_t last = 1;
  std::int32_t device = 0;  ///< index into RunPlanReport::devices
  double start_ms = 0;      ///< since the run began
  double end_ms = 0;
  bool moved = false;                  ///< to another device than the plan's
  std::optional<double> predicted_ms;  ///< everything that the device does for the subgraph
};

/// The runs after the first one.
struct BenchTimes {
  std::int64_t runs = 0;
  double median_ms = 0;
  double min_ms = 0;
  double p90_ms = 0;
};

/// What crossed between the ranks of a plan.
struct RankReport {
  std::int32_t size = 1;
  std::string exchange;           ///< "cover" or "features"
  std::int64_t exchanges = 0;     ///< of each rank: one before every layer of every run
  std::int64_t rows = 0;          ///< that crossed before each layer
  std::int64_t planned_rows = 0;  ///< by the plan
  std::int64_t bytes = 0;         ///< in all exchanges
  double exchange_ms = 0;         ///< of the first rank, in all exchanges, waiting included
  double hidden_ms = 0;           ///< of that, while the rank computed what needs no row of others
  /// The exchange before a layer of the last run, as the first rank saw it.
  struct Layer {
    std::int32_t layer = 1;
    double start_ms = 0;  ///< since the run began
    double end_ms = 0;    ///< when all rows were there
    double ms = 0;        ///< its part of exchange_ms, and
    double hidden_ms = 0;
  };
  std::vector<Layer> layers;
  /// A rank: what the plan predicts of it beside what it measured.
  struct Rank {
    std::optional<double> predicted_ms;  ///< to compute all layers; nothing: the plan does not say
    double compute_ms = 0;               ///< in the last run, exchanges that held it up left out
    double held_ms = 0;                  ///< in the last run, by exchanges
    bool streams = false;                ///< rows of nodes are in files
    std::int64_t planned_bytes = 0;      ///< PlannedRank::memory_bytes, or ::streamed_bytes
    std::int64_t blocks_read = 0;        ///< of such files, in the last run
    std::int64_t bytes_read = 0;
    double reads_of_row = 0;      ///< how often a row was read in a layer, on average
    std::int64_t peak_bytes = 0;  ///< that the process has had in memory, libraries included
  };
  std::vector<Rank> ranks;
  struct Pair {
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::int64_t rows = 0;
    std::int64_t planned_rows = 0;
  };
  std::vector<Pair> pairs;
};

/// What crossed between the devices of a plan for one process, in the last run.
struct ExchangeReport {
  struct Layer {
    std::int32_t layer = 1;
    std::int64_t rows = 0;  ///< of other parts that devices other than the host have read
    std::int64_t planned_rows = 0;
    std::int64_t halo = 0;  ///< that they would have read without sums
  };
  std::vector<Layer> layers;
  double sums_ms = 0;  ///< that the host has spent on sums, in all runs
};

/// The result of running a plan; npu-run(1) lists its keys.
struct RunPlanReport {
  std::int32_t k = 1;
  double predicted_ms = 0;
  /// Set if the plan's times were replayed instead of computing; besides it only k and the
  /// prediction are meaningful then.
  std::optional<double> simulated_ms;
  Shape output;
  std::vector<std::string> devices;
  std::vector<PlanRunStep> steps;
  double first_ms = 0;
  double measured_ms = 0;  ///< median of the later runs; the first if it is the only one
  double load_ms = 0;
  double compile_ms = 0;
  std::int32_t static_compiles = 0;
  std::int32_t cache_hits = 0;
  std::optional<std::int32_t> units;  ///< blocks of a folder of units, if there is one
  std::int32_t fused_reductions = 0;
  std::int32_t products_first = 0;  ///< linear layers that run before the aggregation they follow
  std::string precision = "f32";    ///< or "bf16": of the features
  std::int32_t reexecuted = 0;      ///< tasks of a failed device that ran elsewhere
  std::optional<BenchTimes> bench;
  std::optional<Comparison> comparison;
  std::optional<RankReport> ranks;  ///< of a plan with ranks
  std::optional<ExchangeReport> exchange;
};

/// What running a plan gives.
struct RunPlanResult {
  RunPlanReport report;
  Tensor output;       ///< [nodes, features]
  bool within = true;  ///< the comparison, if any, held
  /// False on all ranks of a plan but one: nothing is to be said here, and what follows has no
  /// meaning. If all have failed, that one throws, and the process that it ends is the only one
  /// with a status other than 0: launchers end all others as soon as they see the first such
  /// status.
  bool speaks = true;
  PhaseTimes times;
};

Json to_json(const RunPlanReport& report);
/// What first_ms, measured_ms and predicted_ms measure, for people; empty if nothing was run.
std::string format_run_times(const RunPlanReport& report);
/// Every number at the top level of the report and in "bench".
std::map<std::string, double> run_metrics(const RunPlanReport& report);
/// The blocks of the last run as Chrome trace JSON.
std::string run_trace(const RunPlanReport& report);

}  // namespace npu::gnn
