// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gnn/run/block_table.hpp"

namespace npu::gnn {

/// A task of the last run.
struct ExecutedTask {
  std::int32_t layer = 1;
  std::int32_t subgraph = 0;
  std::int32_t first = 1;  ///< stages
  std::int32_t last = 1;
  std::int32_t device = 0;  ///< index into the plan's devices
  double start_ms = 0;      ///< since the run began
  double end_ms = 0;
  bool moved = false;
};

/// A loaded plan that can be run, whatever memory its rows lie in.
class PlanRun {
 public:
  virtual ~PlanRun() = default;
  /// One run over all layers.
  virtual void execute() = 0;
  /// Tasks of one run.
  virtual std::size_t task_count() const = 0;
  virtual std::vector<ExecutedTask> executed() const = 0;
  /// When the last run began.
  virtual std::chrono::steady_clock::time_point started() const = 0;
  virtual const BlockTable& blocks() const = 0;
  /// "device 'npu' failed: ...", in order.
  virtual std::vector<std::string> failures() const = 0;
  /// Tasks that were given to another device.
  virtual std::int32_t moved_count() const = 0;
};

}  // namespace npu::gnn
