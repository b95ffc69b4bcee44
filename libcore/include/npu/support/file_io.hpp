// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace npu {

/// Reads a whole file. Throws Error kIo for a missing file, a directory or a failed read.
std::string read_file(const std::string& path);

/// Reads a whole stream; `name` stands for it in messages.
std::string read_stream(std::FILE* stream, const std::string& name);

/// Writes `content` to `path` so that a reader sees the old file or the new one, never a part: a
/// temporary name in the same folder, fsync, rename. Devices, pipes and symbolic links are written
/// in place, since renaming would replace them. Throws Error kIo.
void write_file_atomically(const std::string& path, std::string_view content);
/// As above, with the pieces concatenated.
void write_file_atomically(const std::string& path, const std::vector<std::string_view>& pieces);

/// The bytes of a file, mapped read-only for as long as the object lives. A file that another
/// process cuts short while it is mapped is outside the contract (SIGBUS), as for every mapped
/// file.
class MappedFile {
 public:
  /// Throws Error kIo for a missing file, a directory or a failed mapping.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace npu
