// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/harness/harness.hpp"

namespace npu::conformance {

/// What check says.
struct Answer {
  npu_status status = NPU_OK;
  std::string text;
};
Answer ask(const Harness& harness, npu_device* device, const std::string& sub_ir,
           const std::string& options = "{}");

}  // namespace npu::conformance
