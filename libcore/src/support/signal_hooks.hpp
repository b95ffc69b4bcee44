// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu {

// The library's services for a program's signal handlers. Both functions are async-signal-safe:
// they neither allocate nor lock nor print. The library itself installs no handler.

/// The name of the file whose mapping (MappedFile) holds `address`, fit for a terminal; null if no
/// mapping does. For SIGBUS, which is how the kernel reports a mapped file
/// that another process has cut short.
const char* mapped_file_at(const void* address) noexcept;

/// Removes the temporary names of files that are being written. For signals that end the process:
/// writes that are still going on fail afterwards.
void remove_unfinished_files() noexcept;

}  // namespace npu
