// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "gnn/exchange/rank_exchange.hpp"
#include "gnn/run/plan_process.hpp"

namespace npu::gnn {

/// A plan for one process, with the rows of all nodes in memory.
class SingleRun : public PlanProcess {
 public:
  /// Refers to the options.
  SingleRun(const RunPlanOptions& options, GnnPlan plan);

 private:
  void prepare() override;
  PlanRun& plan_run() override { return *executor_; }
  void finish(double run_ms, RunPlanResult& result) override;

  GnnPlan plan_;
  std::optional<RankExchange> sums_;  // that cross between devices
  std::optional<PlanExecutor> executor_;
};

}  // namespace npu::gnn
