// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gnn/ranks/rank_run.hpp"
#include "gnn/ranks/rank_stream.hpp"
#include "gnn/run/plan_process.hpp"

namespace npu::gnn {

/// One rank of a plan for several processes, with the rows of its nodes in memory or in files.
class RankedRun : public PlanProcess {
 public:
  /// `ranks` has joined the others. Refers to the options.
  RankedRun(const RunPlanOptions& options, std::unique_ptr<RankRun> ranks);

 private:
  void prepare() override;
  PlanRun& plan_run() override;
  void finish(double run_ms, RunPlanResult& result) override;
  void open_rows();
  RowsToWrite output();

  std::unique_ptr<RankRun> ranks_;
  std::optional<PlanExecutor> executor_;
  std::optional<RankStream> stream_;  // instead, if rows are in files
  std::vector<float> piece_;          // of the rows to write
};

}  // namespace npu::gnn
