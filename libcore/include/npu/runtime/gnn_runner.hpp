// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "npu/compile/cache.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/support/progress.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// What running a plan of npu-plan can be asked for.
struct GnnRunOptions {
  std::string plan;
  std::string features;
  std::string weights;  ///< empty: the file that the model names
  std::string target = "host";
  std::vector<std::string> devices;  ///< NAME=BACKEND, on top of the target
  std::string outputs;               ///< .npy, or safetensors with the tensor "out"
  std::string expect;                ///< .npy or safetensors to compare with
  double rtol = 1e-4;
  double atol = 1e-5;
  std::string trace;
  std::int32_t threads = 0;
  std::int32_t bench = 0;  ///< further runs
  bool simulate = false;   ///< replay the plan's times in place of computing
  float padding = 0;       ///< value of rows that are no nodes; NaN shows that none counts
  CacheOptions cache;      ///< of the programs of static devices
  ProgressCallback progress;
  /// For tests: a device fails when it has finished this many tasks.
  std::map<std::string, std::int32_t> fail_after;
};

struct GnnRunResult {
  Json report;         ///< npu-run(1) lists its keys
  Tensor output;       ///< [nodes, features]
  bool within = true;  ///< the comparison, if any, held
  PhaseTimes times;
};

/// Whether a document is a plan of npu-plan.
bool is_gnn_plan(const Json& document);

/// Executes a plan: one worker a device, clusters in order of priority, a barrier between layers. A
/// task whose device fails runs again on another device that can run its stages. Throws Error
/// kUnsupported if none can.
GnnRunResult run_gnn_plan(const GnnRunOptions& options, Diagnostics& diagnostics);

}  // namespace npu
