// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gnn/run/plan_loader.hpp"
#include "gnn/run/rank_layout.hpp"
#include "npu/gnn/gnn_report.hpp"
#include "npu/gnn/gnn_runner.hpp"
#include "transport/transport.hpp"

namespace npu::gnn {

/// This process as one rank of a plan.
class RankRun {
 public:
  /// Checks that as many processes were started as the plan has ranks, and joins them; null for a
  /// plan without ranks in a single process. If there are others than the plan's, throws Error
  /// kFailed in the first process and FailedElsewhere in the rest.
  /// Takes the plan over unless it returns null.
  static std::unique_ptr<RankRun> open(const RunOptions& options, Plan& plan);

  std::int32_t rank() const noexcept { return transport_ == nullptr ? 0 : transport_->rank(); }
  std::int32_t size() const noexcept { return transport_ == nullptr ? 1 : transport_->size(); }

  /// As load_plan, with nothing but what this rank computes: rows of tensors are those of its
  /// layout.
  LoadedPlan load(const RunOptions& options, PhaseTimes& times);

  /// Calls `prepare` on every rank, as do_together does.
  void prepare_together(const std::function<void()>& prepare) const;

  /// Exchanges what the next layer reads of its input `x`, and puts it behind the owned rows.
  void before_layer(Tensor& x);

  /// Collective, as what follows.
  void write(const std::string& path, const Tensor& output) const;
  /// What crossed between all ranks. Then parts from the others.
  RankReport finish();

  std::int64_t node_count() const noexcept { return node_count_; }

 private:
  explicit RankRun(Plan plan) : plan_(std::move(plan)) {}
  void check_parts(const std::string& file) const;
  Tensor degrees(const GraphRows& in_edges) const;

  Plan plan_;
  std::unique_ptr<Transport> transport_;
  RankLayout layout_;
  std::int64_t node_count_ = 0;
  std::int32_t threads_ = 0;
  std::vector<float> out_;
  std::vector<float> in_;
  std::int64_t exchanges_ = 0;
  std::int64_t bytes_sent_ = 0;
  double exchange_ms_ = 0;
};

}  // namespace npu::gnn
