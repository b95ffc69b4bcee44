// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "npu/compile/cache.hpp"
#include "npu/device/backend.hpp"
#include "npu/tensor/safetensors.hpp"

namespace npu::gnn {

/// Programs of static devices.
struct ProgramCounts {
  std::int32_t compiled = 0;
  std::int32_t cache_hits = 0;
};

/// Where a block runs.
struct GnnDevice {
  std::string name;
  std::string backend;
  std::string resource;
  bool is_static = false;  ///< gets padded shapes
  std::int32_t threads = 0;
  std::shared_ptr<DeviceInstance> instance;
  std::string options = "{}";       ///< with which `instance` was opened
  CompileCache* cache = nullptr;    ///< of programs of static devices; null: compile always
  ProgramCounts* counts = nullptr;  ///< added to, if not null; one thread at a time
};

/// A compiled sub-IR, from the device's cache if it has one.
std::unique_ptr<DeviceProgram> load_gnn_program(const GnnDevice& device, const std::string& sub_ir,
                                                std::vector<NamedTensor> weights,
                                                ProgramSignature signature);

}  // namespace npu::gnn
