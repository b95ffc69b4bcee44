// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// The ops that the backends of a target's devices have registered, one per line: device, op type,
/// kind (as the backend calls it: "aten", "decomposition", "custom", ...), sorted by op type. If
/// `device` is not empty, lists only that device; throws Error kUsage if there is none of that
/// name, kUnsupported if a backend does not load or lists nothing.
/// Devices without a backend are skipped.
std::string format_backend_ops(const Target& target, const std::string& device,
                               const ExecutorOptions& options);

}  // namespace npu
