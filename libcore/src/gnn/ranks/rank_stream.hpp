// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gnn/exchange/rank_exchange.hpp"
#include "gnn/exchange/rank_layout.hpp"
#include "gnn/exchange/row_file.hpp"
#include "gnn/run/plan_executor.hpp"
#include "gnn/run/plan_run.hpp"

namespace npu::gnn {

/// What a rank that streams needs besides its plan. All of it outlives the run.
struct StreamInputs {
  const RankLayout* layout = nullptr;
  RankExchange* exchange = nullptr;
  std::string plan_file;
  std::string features;  ///< .npy
  std::string folder;    ///< of the files between layers
  std::int64_t node_count = 0;
};

/// Runs the parts of a rank one after another, with the rows of its nodes in files: before a part
/// it reads the rows that the part needs, source part by source part, and after it writes the
/// part's rows. The bits are those of a run in memory. Refers to what it is given.
class RankStream : public PlanRun {
 public:
  /// `loaded` has the parts of the rank, and no features.
  RankStream(const LoadedPlan& loaded, const std::vector<GnnDevice>& devices,
             const StreamInputs& inputs, PlanExecutorOptions options);

  void execute() override;
  std::size_t task_count() const override;
  std::vector<ExecutedTask> executed() const override { return executed_; }
  std::chrono::steady_clock::time_point started() const override { return started_; }
  const BlockTable& blocks() const override { return table_; }
  std::vector<std::string> failures() const override { return failures_; }
  std::int32_t moved_count() const override { return moved_count_; }

  /// Rows of the last layer's output of the last run.
  RowFile& output() { return *rows_; }
  /// What the last run has read, of all layers.
  const RowReads& reads() const noexcept { return reads_; }

 private:
  RowFile open_features() const;
  void run_part(std::size_t layer, std::int32_t part);
  LoadedPlan load_part(std::size_t layer, std::int32_t part);
  void note(const PlanExecutor& executor, std::size_t layer);

  const LoadedPlan& loaded_;
  const std::vector<GnnDevice>& devices_;
  StreamInputs inputs_;
  PlanExecutorOptions options_;
  BlockTable table_;
  std::vector<std::int32_t> parts_;  // of the rank, those that read no late row first
  std::optional<RowFile> rows_;      // of the layer's input
  std::optional<RowFile> next_;      // of its output
  std::vector<ExecutedTask> executed_;
  std::vector<std::string> failures_;
  std::int32_t moved_count_ = 0;
  RowReads reads_;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace npu::gnn
