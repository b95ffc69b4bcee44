// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "device/backend.hpp"

namespace npu::test {

/// Whether there is an OpenCL device, and time for the dozens of kernels that its driver compiles:
/// NPU_TEST_MANY_KERNELS is 1, which scripts/check/opencl.sh --tests sets. Backends are found
/// already.
inline bool may_use_opencl() {
  const char* many = std::getenv("NPU_TEST_MANY_KERNELS");
  if (many == nullptr || std::string_view(many) != "1") return false;
  if (Backend::find_file("opencl").empty()) return false;
  const auto& devices = Backend::load("opencl")->devices();
  return std::any_of(devices.begin(), devices.end(),
                     [](const DeviceFacts& facts) { return facts.usable; });
}

}  // namespace npu::test
