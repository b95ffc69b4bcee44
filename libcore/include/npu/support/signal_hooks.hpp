// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu {

// What a program's signal handlers ask the library. Both functions are async-signal-safe: they
// neither allocate nor lock nor print. The library installs no handler itself.

/// The name of the file whose mapping (MappedFile) holds `address`, fit for a terminal; null if no
/// mapping does. For SIGBUS, which is how the kernel reports a mapped file that another process has
/// cut short.
const char* mapped_file_at(const void* address) noexcept;

/// Removes the temporary names of files that are being written now. For signals that end the
/// process; what is still being written fails then.
void remove_unfinished_files() noexcept;

}  // namespace npu
