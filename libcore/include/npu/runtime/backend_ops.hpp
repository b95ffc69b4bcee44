// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// What the backends of a target's devices have registered, one op a line: device, op type, kind
/// (what the backend calls it: "aten", "decomposition", "custom", ...), sorted by op type.
/// `device` alone if it is not empty; throws Error kUsage if there is none of that name,
/// kUnsupported if a backend does not load or lists nothing. Devices without a backend are left
/// out.
std::string format_backend_ops(const Target& target, const std::string& device,
                               const ExecutorOptions& options);

}  // namespace npu
