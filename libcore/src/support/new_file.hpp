// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/descriptor.hpp"
#include "support/live_files.hpp"

namespace npu {

/// A file that appears under its name as a whole, or not at all: written without a name, or under a
/// temporary one in the same folder, then linked and renamed. If the process is ended meanwhile,
/// nothing is left behind provided that its signal handlers call remove_unfinished_files, except by
/// SIGKILL in the moment between these two. All functions throw Error kIo.
class NewFile {
 public:
  struct Options {
    mode_t create_mode = 0666;        ///< of a new file, less the umask
    std::optional<mode_t> mode = {};  ///< of the replaced file, which the new one gets
    bool exists = false;              ///< something has the name already
    std::string temporary = {};       ///< prefix of temporary names; empty: the path and a dot
  };

  NewFile(std::string path, Options options);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes);
  /// Waits until the bytes have reached the disk.
  void sync();
  /// Gives the file its name; with `sync`, after its bytes have reached the disk.
  void publish(bool sync);

 private:
  /// Calls `create` with new temporary names until it returns true.
  template <typename Create>
  void try_names(const Create& create);

  std::string path_;
  Options options_;
  Descriptor file_;
  std::string temporary_;
  std::optional<UnfinishedMark> mark_;
  bool has_name_ = false;  ///< temporary_ is in the folder
};

struct FilePieces {
  std::string path;
  std::vector<std::string_view> pieces;
};
/// As write_file_atomically, for files that belong together: all of them are complete before the
/// first one, and then each in their order, gets its name.
void write_files_atomically(const std::vector<FilePieces>& files);

/// Writes all of `bytes` to a descriptor, which the Error of a failure calls `path`.
void write_fully(int descriptor, std::string_view bytes, const std::string& path);

/// Eight letters and digits for the name of a temporary file.
std::string random_suffix();

/// What writing to a path means.
struct WriteTarget {
  std::string path;  ///< with symbolic links followed
  bool exists = false;
  bool in_place = false;  ///< a device, a pipe or an open file of /proc: not to be replaced
  mode_t mode = 0;        ///< of a regular file that exists
};
/// Follows symbolic links to the file to write or create; the target of a dangling link is created.
/// Throws Error kIo for a directory, and for a link that the kernel would not follow either: one of
/// another user in a world-writable folder such as /tmp.
WriteTarget find_write_target(const std::string& path);

}  // namespace npu
