// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace npu {

class MappingMark;
struct OpenedFile;

/// Whose bytes a file may hold.
enum class FileTrust {
  kAny,
  kOwn,  ///< this user's or root's: no symbolic link, and nobody else may write to it
};

/// Whether `path` leads to a regular file: what can be mapped and read more than once.
bool is_regular_file(const std::string& path);

/// Reads a whole file, pipe or terminal. Throws Error kIo for a missing
/// file, a directory or a failed read.
std::string read_file(const std::string& path);

/// Reads a whole stream; `name` stands for it in messages.
std::string read_stream(std::FILE* stream, const std::string& name);

/// Writes `content` to `path` so that a reader sees the old file or the new one, never a part, and
/// nothing is left if the process is ended on the way: see remove_unfinished_files. A symbolic link
/// stays, and the file that it leads to is replaced, or made. Devices and pipes are written in
/// place, since they cannot be replaced. Throws Error kIo.
void write_file_atomically(const std::string& path, std::string_view content);
/// As above, with the pieces concatenated.
void write_file_atomically(const std::string& path, const std::vector<std::string_view>& pieces);

/// Takes one piece of a text after another.
using TextSink = std::function<void(std::string_view)>;
/// As above, with the pieces that `write` passes to its sink; nothing is left if it throws.
void write_file_atomically(const std::string& path,
                           const std::function<void(const TextSink&)>& write);

/// The bytes of a file, mapped read-only for as long as the object lives. If another process cuts
/// the file short meanwhile, reading raises SIGBUS, as for every mapped file; mapped_file_at tells
/// a handler which file that was.
class MappedFile {
 public:
  /// Throws Error kIo for a missing file, a directory, one that `trust` rules out or a failed
  /// mapping. Never waits, not even for a pipe, which cannot be mapped.
  explicit MappedFile(const std::string& path, FileTrust trust = FileTrust::kAny);
  /// The file `name` below `folder` (empty: the working directory). Absolute names, "..", and
  /// symbolic links that lead out of the folder throw Error kIo, whatever they lead to.
  MappedFile(const std::string& folder, const std::string& name);
  /// Null if there is no file of this name; otherwise as the first constructor.
  static std::shared_ptr<const MappedFile> find(const std::string& path, FileTrust trust);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return path_; }

 private:
  MappedFile(const std::string& path, const OpenedFile& file);
  void map(const OpenedFile& file);

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::unique_ptr<MappingMark> mark_;
};

}  // namespace npu
