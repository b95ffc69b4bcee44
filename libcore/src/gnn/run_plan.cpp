// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-run for plans: replays the plan's times, or runs it in one process or as
// one of several. The cost is that of these.
#include "gnn/run_plan.hpp"

#include <memory>
#include <utility>

#include "gnn/plan/verify/verify_plan.hpp"
#include "gnn/ranks/rank_run.hpp"
#include "gnn/ranks/ranked_run.hpp"
#include "gnn/run/plan_loader.hpp"
#include "gnn/run/single_run.hpp"
#include "transport/transport.hpp"

namespace npu::gnn {
namespace {

RunPlanResult simulated(const RunPlanOptions& options, Diagnostics& diagnostics) {
  RunPlanResult result;
  const GnnPlan plan = read_runnable_plan(options.plan);
  result.report.k = plan.choice.k;
  result.report.predicted_ms = plan.predicted.makespan_ms;
  result.report.simulated_ms = verify_plan(options.plan, diagnostics).makespan_ms;
  return result;
}

// As one of several processes, all but the first are silent, unless one fails where others do not.
RunPlanResult computed(RunPlanOptions options, Diagnostics& diagnostics) {
  try {
    GnnPlan plan = read_runnable_plan(options.plan);
    std::unique_ptr<RankRun> ranks = RankRun::open(options, plan);
    if (ranks == nullptr) return SingleRun(options, std::move(plan)).run(diagnostics);
    const bool is_first = ranks->rank() == 0;
    if (ranks->size() > 1 && options.joined) options.joined(ranks->rank(), ranks->size());
    if (is_first) return RankedRun(options, std::move(ranks)).run(diagnostics);
    options.progress = {};
    Diagnostics of_this_rank;
    RunPlanResult result = RankedRun(options, std::move(ranks)).run(of_this_rank);
    result.speaks = false;
    return result;
  } catch (const FailedElsewhere&) {
    RunPlanResult result;
    result.speaks = false;
    return result;
  }
}

}  // namespace

RunPlanResult run_plan(const RunPlanOptions& options, Diagnostics& diagnostics) {
  return options.simulate ? simulated(options, diagnostics) : computed(options, diagnostics);
}

}  // namespace npu::gnn
