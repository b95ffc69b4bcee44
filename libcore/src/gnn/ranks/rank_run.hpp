// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gnn/exchange/rank_exchange.hpp"
#include "gnn/exchange/rank_layout.hpp"
#include "gnn/ranks/rank_output.hpp"
#include "gnn/ranks/rank_stream.hpp"
#include "gnn/run/gnn_report.hpp"
#include "gnn/run/plan_loader.hpp"
#include "gnn/run/run_options.hpp"
#include "npu/support/ids.hpp"
#include "transport/transport.hpp"

namespace npu::gnn {

/// This process as one rank of a plan.
class RankRun {
 public:
  /// Checks that as many processes were started as the plan has ranks, and joins them; null for a
  /// plan without ranks in a single process. If there are others than the plan's, throws Error
  /// kFailed in the first process and FailedElsewhere in the rest.
  /// Takes the plan over unless it returns null.
  static std::unique_ptr<RankRun> open(const RunPlanOptions& options, GnnPlan& plan);

  /// As it was read, until it is loaded.
  const GnnPlan& plan() const noexcept { return plan_; }
  std::int32_t rank() const noexcept { return transport_ == nullptr ? 0 : transport_->rank(); }
  std::int32_t size() const noexcept { return transport_ == nullptr ? 1 : transport_->size(); }

  /// As load_plan, with nothing but what this rank computes: rows of tensors are those of its
  /// layout.
  LoadedPlan load(const RunPlanOptions& options, PhaseTimes& times);

  /// Lets the devices keep a small share of what the rank holds by the plan for later tasks.
  void limit_buffers(const std::vector<GnnDevice>& devices) const;

  /// Calls `prepare` on every rank, as do_together does.
  void prepare_together(const std::function<void()>& prepare) const;

  /// What crosses before layers. Once the plan is loaded.
  RankExchange& exchange() { return *exchange_; }
  /// The rows that come while a layer is computed; null: there is one rank.
  LateRows* late_rows() { return transport_ == nullptr ? nullptr : exchange_.get(); }

  /// Whether the rows of this rank stay in files. Once the plan is loaded.
  bool streams() const { return plan_.choice.ranks->streams(index_of(rank())); }
  /// What that takes.
  StreamInputs stream_inputs(const RunPlanOptions& options);

  /// Collective, as what follows.
  void write(const std::string& path, const RowsToWrite& output) const;
  /// What crossed between all ranks; the last run began at `start` and took `run_ms`. Then parts
  /// from the others.
  RankReport finish(Clock::time_point start, double run_ms, const RowReads& reads);

  /// Of all ranks, with exchanges if the plan has a link; nothing if the plan does not say.
  std::optional<double> predicted_ms() const;

  std::int64_t node_count() const noexcept { return node_count_; }

 private:
  explicit RankRun(GnnPlan plan) : plan_(std::move(plan)) {}
  Tensor degrees(const GraphRows& in_edges, float of_sums) const;
  std::vector<RankReport::Rank> measured_ranks(const RankReport& own, double run_ms,
                                               const RowReads& reads) const;

  GnnPlan plan_;
  RankLayout layout_;
  std::int64_t node_count_ = 0;
  std::int32_t threads_ = 0;
  std::int64_t digest_ = 0;     // of what all ranks have to have alike
  std::vector<float> factors_;  // of the owned rows in sums; empty: 1
  std::unique_ptr<RankExchange> exchange_;
  // Behind the memory that an exchange may still write to when a run fails: it ends first.
  std::unique_ptr<Transport> transport_;
};

}  // namespace npu::gnn
