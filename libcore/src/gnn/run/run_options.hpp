// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "npu/compile/cache.hpp"
#include "npu/support/progress.hpp"

namespace npu::gnn {

/// Which backend a device runs on.
struct DeviceBackend {
  std::string device;
  std::string backend;  ///< empty: the one that the target gives it
};

/// What running a plan of npu-plan can be asked for.
struct RunPlanOptions {
  std::string plan;
  std::string features;
  std::string precision;               ///< "f32" or "bf16"; empty: that of the plan
  std::string weights;                 ///< empty: the file that the model names
  std::string units;                   ///< folder of compile_blocks; empty: blocks are compiled
  std::string target;                  ///< whose backends run the devices; empty: those of the plan
  std::vector<DeviceBackend> devices;  ///< override the target's; a device's last entry wins
  std::string outputs;                 ///< .npy, or safetensors with the tensor "out"
  std::string expect;                  ///< .npy or safetensors to compare with
  /// Empty: 1e-4 and 1e-5 for float32, 2e-2 and 2e-2 for bfloat16.
  std::optional<double> rtol;
  std::optional<double> atol;
  std::string trace;
  std::int32_t threads = 0;
  std::int32_t bench = 0;  ///< runs after the first one
  bool simulate = false;   ///< replay the plan's times instead of computing
  float padding = 0;       ///< value of padding rows; NaN shows that no result depends on them
  CacheOptions cache;      ///< of the programs of static devices
  ProgressCallback progress;
  /// Told, for a plan with several ranks, which one this process is.
  std::function<void(std::int32_t rank, std::int32_t size)> joined;
  /// Told when that is over, whether it went well or not.
  std::function<void()> left;
};

}  // namespace npu::gnn
