// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu::cli {

/// Keeps memory that was freed for the next allocation, in place of giving it back to the system,
/// which would clear the pages of every result anew. For programs that run the same work again and
/// again. Does nothing where the C library has no such setting.
void keep_freed_memory();

}  // namespace npu::cli
