// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/compile/cache.hpp"
#include "npu/gnn/gnn_report.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// Which backend a device runs on.
struct DeviceBackend {
  std::string device;
  std::string backend;  ///< empty: the one that the target gives it
};

/// What running a plan of npu-plan can be asked for.
struct RunOptions {
  std::string plan;
  std::string features;
  std::string weights;  ///< empty: the file that the model names
  std::string target;   ///< whose backends run the devices; empty: those that the plan goes by
  std::vector<DeviceBackend> devices;  ///< on top of the target; the last one of a device counts
  std::string outputs;                 ///< .npy, or safetensors with the tensor "out"
  std::string expect;                  ///< .npy or safetensors to compare with
  double rtol = 1e-4;
  double atol = 1e-5;
  std::string trace;
  std::int32_t threads = 0;
  std::int32_t bench = 0;  ///< further runs
  bool simulate = false;   ///< replay the plan's times in place of computing
  float padding = 0;       ///< value of rows that are no nodes; NaN shows that none counts
  CacheOptions cache;      ///< of the programs of static devices
  ProgressCallback progress;
};

struct RunResult {
  RunReport report;
  Tensor output;       ///< [nodes, features]
  bool within = true;  ///< the comparison, if any, held
  PhaseTimes times;
};

/// Executes a plan: one worker a device, clusters in order of priority, a barrier between layers. A
/// task whose device fails runs again on another device that can run its stages. Throws Error
/// kUnsupported if none can.
RunResult run_plan(const RunOptions& options, Diagnostics& diagnostics);

}  // namespace npu::gnn
