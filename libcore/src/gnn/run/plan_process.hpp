// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gnn/run/block_store.hpp"
#include "gnn/run/gnn_report.hpp"
#include "gnn/run/plan_executor.hpp"
#include "gnn/run/plan_loader.hpp"
#include "gnn/run/plan_run.hpp"
#include "gnn/run/run_options.hpp"
#include "npu/compile/cache.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"

namespace npu::gnn {

/// Tells how far all runs of a plan are, task by task.
class RunProgress {
 public:
  explicit RunProgress(const RunPlanOptions& options) : options_(options) {}

  void set_tasks(std::size_t count) { tasks_ = count; }
  void start(std::int32_t run) { run_ = run; }
  /// False to stop.
  bool task_ended(std::int32_t layer);

 private:
  const RunPlanOptions& options_;
  std::size_t tasks_ = 0;
  std::size_t done_ = 0;
  std::int32_t run_ = 0;
};

/// This process as one that runs a plan: it loads what it takes, runs as often as was asked for,
/// and reports. How rows come and where results go is for those who derive from it.
class PlanProcess {
 public:
  /// `plan` as it was read. Refers to the options.
  PlanProcess(const RunPlanOptions& options, const GnnPlan& plan);
  virtual ~PlanProcess() = default;
  PlanProcess(const PlanProcess&) = delete;
  PlanProcess& operator=(const PlanProcess&) = delete;

  /// Once. Throws what its steps throw.
  RunPlanResult run(Diagnostics& diagnostics);

 protected:
  /// Loads the plan, opens its devices and compiles its blocks.
  virtual void prepare() = 0;
  /// Once it is prepared.
  virtual PlanRun& plan_run() = 0;
  /// Compares, writes, and reports what this kind of run has besides; the last run took `run_ms`.
  virtual void finish(double run_ms, RunPlanResult& result) = 0;

  /// For a loaded plan: its devices, and the blocks that were compiled before, if there are any.
  void open_devices();
  PlanExecutorOptions executor_options();
  void write_trace(const RunPlanResult& result) const;

  const RunPlanOptions& options_;
  LoadedPlan loaded_;
  std::vector<GnnDevice> devices_;
  PhaseTimes times_;

 private:
  void warn_of_others(Diagnostics& diagnostics) const;
  void report(const std::vector<double>& run_ms, RunPlanReport& report);

  BlockIndex expected_;  // what blocks that were compiled before have to be for
  std::optional<BlockStore> blocks_;
  CompileCache cache_;
  ProgramCounts counts_;
  RunProgress progress_;
};

}  // namespace npu::gnn
