// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu::cli {

/// Keeps memory that is freed for the next allocation, in place of giving it back to the system.
/// For programs that run a model many times: each run allocates what the one before it freed, and
/// pages that come from the system are written with zeros first, which takes as long as many
/// kernels. Does nothing where the C library has no such setting.
void keep_freed_memory();

}  // namespace npu::cli
