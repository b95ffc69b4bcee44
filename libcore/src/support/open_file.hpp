// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <string>

#include "npu/support/file_io.hpp"
#include "support/descriptor.hpp"

namespace npu {

struct OpenedFile {
  Descriptor descriptor;
  struct stat status {};
};

/// Opens a file to read, without waiting for anything, and looks at what was opened: there is no
/// moment between the look and the use in which another file could take its place. Throws Error kIo
/// for what cannot be opened, for a directory, and with FileTrust::kOwn for what others could have
/// written.
OpenedFile open_to_read(const std::string& path, FileTrust trust = FileTrust::kAny);

/// Why bytes of a file or a folder are not to be trusted: another user owns it, or may write to it.
/// Empty if neither is so. Root is trusted by all.
std::string distrust_reason(const struct stat& status);

/// Throws Error kIo "file: error: what: the text of errno".
[[noreturn]] void fail_io(const std::string& file, const std::string& what, int code);

}  // namespace npu
