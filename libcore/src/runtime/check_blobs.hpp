// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/compile/compiler.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Asks the backends of a bundle's partitions, where they have a say in that, whether the blobs are
/// for the devices here, which it opens and adds to `devices`. Throws Error kUnsupported for one
/// that is not; warns of one that would be faster if it was compiled again. `file` is the bundle's
/// name.
void check_bundled_blobs(const std::vector<CompiledPartition>& partitions, const Target& target,
                         const ExecutorOptions& options, const std::string& file,
                         OpenDevices& devices, Diagnostics& diagnostics);

}  // namespace npu
