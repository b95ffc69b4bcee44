// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "npu/support/file_io.hpp"
#include "support/descriptor.hpp"

namespace npu {

struct OpenedFile {
  Descriptor descriptor;
  struct stat status {};
};

/// Opens a file for reading without blocking, and examines what was opened, so that no other file
/// can take its place between the check and the use. Throws Error kIo for what cannot be opened,
/// for a directory, and with FileTrust::kOwn for a file that others could have written.
OpenedFile open_to_read(const std::string& path, FileTrust trust = FileTrust::kAny);
/// The same, without a value if there is no file of this name: asked of the call that opens it,
/// since between two calls another process may put one there or take it away.
std::optional<OpenedFile> find_to_read(const std::string& path, FileTrust trust);

/// Opens the file `name` below `folder` (empty: the working directory) for reading. The name comes
/// from outside: an absolute one, "..", and symbolic links that lead out of the folder throw Error
/// kIo before anything is opened.
OpenedFile open_beneath(const std::string& folder, const std::string& name);

/// A file in `folder` that nobody else sees and that ends with its descriptor; without one, -1: not
/// every file system has such files.
Descriptor open_scratch_file(const std::string& folder);

/// Why the bytes of a file or a folder are not to be trusted: another user owns it or may write to
/// it. Empty if neither holds. Root is always trusted.
std::string distrust_reason(const struct stat& status);

/// Throws Error kIo "file: error: what: the text of errno".
[[noreturn]] void fail_io(const std::string& file, const std::string& what, int code);

}  // namespace npu
