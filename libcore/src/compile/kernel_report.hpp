// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/compile/compiler.hpp"

namespace npu {

/// A table of the kernels that each partition runs: partition, node, kind of step, kernel, its
/// estimate, and for each rejected candidate the reason. Partitions whose backend reports no steps
/// have no rows. O(steps).
std::string format_kernel_report(const CompiledModel& model);

}  // namespace npu
