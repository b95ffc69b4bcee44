// SPDX-License-Identifier: Apache-2.0
// Runs one rank of a plan: prepares together with the others, exchanges rows before every layer,
// and writes its rows of the result.
#include "gnn/ranks/ranked_run.hpp"

#include <utility>

#include "gnn/block/tensor_rows.hpp"

namespace npu::gnn {

RankedRun::RankedRun(const RunPlanOptions& options, std::unique_ptr<RankRun> ranks)
    : PlanProcess(options, ranks->plan()), ranks_(std::move(ranks)) {}

void RankedRun::prepare() {
  ranks_->prepare_together([this] {
    loaded_ = ranks_->load(options_, times_);
    const PhaseTimes::Scope phase(times_, "devices and programs");
    open_devices();
    ranks_->limit_buffers(devices_);
    open_rows();
  });
}

void RankedRun::open_rows() {
  PlanExecutorOptions options = executor_options();
  if (ranks_->streams()) {
    stream_.emplace(loaded_, devices_, ranks_->stream_inputs(options_), std::move(options));
    return;
  }
  options.before_layer = [this](std::size_t layer, Tensor& input) {
    ranks_->exchange().begin(layer, input);
  };
  options.late = ranks_->late_rows();
  if (options_.bench == 0) options.features = &loaded_.features;
  executor_.emplace(loaded_, devices_, options_.plan, std::move(options));
}

PlanRun& RankedRun::plan_run() {
  if (executor_) return *executor_;
  return *stream_;
}

RowsToWrite RankedRun::output() {
  if (executor_) {
    const Tensor& rows = executor_->output();
    const std::int64_t width = rows.shape()[1];
    return {width, [&rows, width](std::int64_t begin, std::int64_t /*count*/) {
              return rows.as<float>() + begin * width;
            }};
  }
  return {stream_->output().width(), [this](std::int64_t begin, std::int64_t count) {
            std::vector<RowToRead> wanted;
            for (std::int64_t i = 0; i < count; ++i) {
              wanted.push_back({static_cast<std::int32_t>(begin + i), i});
            }
            piece_.resize(static_cast<std::size_t>(count * stream_->output().width()));
            stream_->output().read(wanted, piece_.data());
            return static_cast<const float*>(piece_.data());
          }};
}

void RankedRun::finish(double run_ms, RunPlanResult& result) {
  RunPlanReport& report = result.report;
  if (executor_) result.output = rows_of(executor_->output(), 0, loaded_.nodes);
  report.predicted_ms = ranks_->predicted_ms().value_or(report.predicted_ms);
  report.output = {ranks_->node_count(), loaded_.model.layers.back().output_features};
  if (!options_.outputs.empty()) ranks_->write(options_.outputs, output());
  report.ranks =
      ranks_->finish(plan_run().started(), run_ms, stream_ ? stream_->reads() : RowReads{});
  if (ranks_->rank() == 0) write_trace(result);
}

}  // namespace npu::gnn
