// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/device_instance.hpp"
#include "gnn/exchange/late_rows.hpp"
#include "gnn/run/block_table.hpp"
#include "gnn/run/plan_loader.hpp"
#include "gnn/run/plan_run.hpp"
#include "gnn/run/scheduler.hpp"
#include "gnn/run/segment_values.hpp"
#include "gnn/run/task_graph.hpp"

namespace npu::gnn {

struct PlanExecutorOptions {
  float padding = 0;  ///< value of rows that are no nodes; NaN shows that none counts
  /// Told of every task that has ended, with the layer from 1; returns false to stop.
  std::function<bool(std::int32_t layer)> goes_on;
  /// Called before every task, on the thread of its device. What it throws is a failure of the
  /// device: this is how tests make one fail.
  std::function<void(const std::string& device)> before_task;
  /// Called before every layer, from 0, to fill in the rows of its input that no task of this
  /// process computes.
  std::function<void(std::size_t layer, Tensor& input)> before_layer;
  /// Those of them that may come while tasks run; null: none. Outlives the executor.
  LateRows* late = nullptr;
  const BlockStore* units = nullptr;  ///< of compiled programs; null: blocks are compiled
  /// Devices that have failed before, with what went wrong: they are given nothing.
  std::map<std::int32_t, std::string> broken = {};
  BlockTable* blocks = nullptr;  ///< shared with other executors; null: one of its own
  /// Instead of the plan's features; the run, which is the only one, gives their memory back.
  Tensor* features = nullptr;
  /// From 0: only this layer is run, with the features as its input. Nothing: all of them.
  std::optional<std::size_t> layer = {};
};

/// Computes a loaded plan: tasks, blocks and values, in the order of the scheduler. Refers to the
/// plan and the devices.
class PlanExecutor : public PlanRun, private TaskRunner {
 public:
  /// Compiles the blocks of all tasks.
  PlanExecutor(const LoadedPlan& loaded, const std::vector<GnnDevice>& devices,
               const std::string& plan_file, PlanExecutorOptions options);

  /// One run over all layers. Throws what Scheduler::run_layer throws.
  void execute() override;
  std::size_t task_count() const override;
  std::vector<ExecutedTask> executed() const override;
  std::chrono::steady_clock::time_point started() const override { return scheduler_->started(); }
  std::vector<std::string> failures() const override { return scheduler_->failures(); }
  std::int32_t moved_count() const override { return scheduler_->moved_count(); }

  /// Rows of other parts that devices other than `host` have read in the last run, by layer.
  std::vector<std::int64_t> rows_crossed(const std::string& host) const;

  const Tensor& output() const noexcept { return output_; }  ///< of the last run: [rows, features]
  const TaskGraph& graph() const noexcept { return graph_; }
  const Scheduler& scheduler() const noexcept { return *scheduler_; }
  const BlockTable& blocks() const override { return *table_; }

 private:
  void run(std::size_t layer, std::size_t task, std::int32_t device) override;
  void prepare(std::size_t layer, std::size_t task, std::int32_t device) override;
  std::string name_of(std::size_t layer, std::size_t task) const override;
  void release(std::int32_t subgraph) override;
  bool goes_on(std::size_t layer) override;

  std::shared_ptr<DeviceBuffer> resident_features(std::size_t layer, const ShareTask& task,
                                                  std::int32_t device, const GnnBlock& block);
  void mark_late_rows();
  Tensor narrow_features(std::size_t layer);
  void store_rows(const Tensor& value, const ShareTask& task);

  const LoadedPlan& loaded_;
  const std::vector<GnnDevice>& devices_;
  PlanExecutorOptions options_;
  TaskGraph graph_;
  std::optional<BlockTable> own_table_;
  BlockTable* table_;
  std::vector<std::vector<const GnnBlock*>> blocks_;  // by layer and task
  std::vector<std::unique_ptr<std::mutex>> device_mutex_;
  std::vector<std::map<std::pair<const DeviceInstance*, DType>, std::shared_ptr<DeviceBuffer>>>
      resident_features_;                               // by device
  std::vector<std::unique_ptr<SegmentValues>> values_;  // by subgraph
  std::unique_ptr<Scheduler> scheduler_;
  Tensor input_;            // of the layer
  Tensor narrow_input_;     // the same as bfloat16, if a block reads that
  Tensor narrow_features_;  // of the first layer
  std::int32_t threads_ = 0;
  Tensor output_;  // of the layer
};

}  // namespace npu::gnn
