// SPDX-License-Identifier: Apache-2.0
// Runs a plan in one process, compares the result, and writes it. Sums that cross between devices
// are added up before every layer, as those of one rank alone.
#include "gnn/run/single_run.hpp"

#include <string>
#include <utility>
#include <vector>

#include "gnn/block/tensor_rows.hpp"
#include "gnn/graph/features.hpp"
#include "npu/tensor/safetensors.hpp"
#include "tensor/npy.hpp"

namespace npu::gnn {
namespace {

ExchangeReport exchange_report(const DeviceExchange& planned, const PlanExecutor& executor,
                               double sums_ms) {
  ExchangeReport report;
  report.sums_ms = sums_ms;
  const std::vector<std::int64_t> rows = executor.rows_crossed(planned.host);
  for (const LayerCrossing& layer : planned.layers) {
    const auto l = static_cast<std::size_t>(layer.layer - 1);
    const std::int64_t crossed = l < rows.size() ? rows[l] : 0;
    report.layers.push_back({layer.layer, crossed, layer.rows, layer.halo});
  }
  return report;
}

void compare_and_write(const RunPlanOptions& options, bool is_narrow, RunPlanResult& result) {
  if (!options.expect.empty()) {
    const Tensor expected = read_features(options.expect);
    result.report.comparison = compare_tensors(result.output, expected,
                                               {options.rtol.value_or(is_narrow ? 2e-2 : 1e-4),
                                                options.atol.value_or(is_narrow ? 2e-2 : 1e-5)});
    result.within = result.report.comparison->ok;
  }
  if (options.outputs.ends_with(".npy")) {
    write_npy(options.outputs, result.output);
  } else if (!options.outputs.empty()) {
    write_safetensors(options.outputs, {{"out", result.output}});
  }
}

}  // namespace

SingleRun::SingleRun(const RunPlanOptions& options, GnnPlan plan)
    : PlanProcess(options, plan), plan_(std::move(plan)) {}

void SingleRun::prepare() {
  loaded_ = load_plan(std::move(plan_), options_, times_);
  const PhaseTimes::Scope phase(times_, "devices and programs");
  open_devices();
  PlanExecutorOptions options = executor_options();
  if (const DeviceLayout* layout = loaded_.exchange.get()) {
    sums_.emplace(layout->rows, nullptr, layout->row_bytes, layout->factors, options_.threads);
    options.before_layer = [this](std::size_t layer, Tensor& input) { sums_->begin(layer, input); };
  }
  executor_.emplace(loaded_, devices_, options_.plan, std::move(options));
}

void SingleRun::finish(double /*run_ms*/, RunPlanResult& result) {
  result.output = rows_of(executor_->output(), 0, loaded_.nodes);
  if (const auto& planned = loaded_.plan.choice.exchange) {
    result.report.exchange = exchange_report(*planned, *executor_, sums_ ? sums_->ms() : 0);
  }
  compare_and_write(options_, result.report.precision == "bf16", result);
  write_trace(result);
}

}  // namespace npu::gnn
