// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/compile/compiler.hpp"

namespace npu {

/// A table of the kernels that each partition runs: partition, node, what kind of step it is,
/// kernel, its estimate, and for each other candidate why it was not taken. Partitions whose
/// backend reports no steps have no rows. O(steps).
std::string format_kernel_report(const CompiledModel& model);

}  // namespace npu
