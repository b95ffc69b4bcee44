// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/target/target.hpp"

namespace npu {

/// The target with the ops of shared objects (npu/custom_op.hpp) added to every device that runs
/// every aten op ("*"), with every dtype and rank, in `json` as well. Throws Error kIo
/// for a library that cannot be used, kUsage if the target has no such device.
Target with_custom_ops(const Target& target, const std::vector<std::string>& libraries);

}  // namespace npu
