// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu::cli {

/// Keeps freed memory for the next allocation instead of returning it to the system. For programs
/// that run a model many times: each run allocates what the previous one freed, and the system
/// zeroes new pages, which takes as long as many kernels. Does nothing if
/// the C library has no such setting.
void keep_freed_memory();

}  // namespace npu::cli
