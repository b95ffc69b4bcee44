// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "support/descriptor.hpp"
#include "support/live_files.hpp"

namespace npu {

/// A file that appears under its name as a whole, or not at all: written without a name, or under a
/// temporary one in the same folder, then linked and renamed. Whatever ends the process on the way,
/// but for SIGKILL in the moment between these two, leaves nothing behind if its signal handlers
/// call remove_unfinished_files. All functions throw Error kIo.
class NewFile {
 public:
  struct Options {
    mode_t create_mode = 0666;        ///< of a new file, less the umask
    std::optional<mode_t> mode = {};  ///< of the file that is replaced, to be kept
    bool exists = false;              ///< something has the name already
    std::string temporary = {};       ///< begin of temporary names; empty: the path and a dot
  };

  NewFile(std::string path, Options options);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view bytes);
  /// Gives the file its name; with `sync`, once its bytes are on the disk.
  void publish(bool sync);

 private:
  /// Calls `create` with ever other temporary names until it is true.
  template <typename Create>
  void try_names(const Create& create);

  std::string path_;
  Options options_;
  Descriptor file_;
  std::string temporary_;
  std::optional<UnfinishedMark> mark_;
  bool has_name_ = false;  ///< temporary_ is in the folder
};

/// Writes all of `bytes` to a descriptor; `path` stands for it in the Error that a failure throws.
void write_fully(int descriptor, std::string_view bytes, const std::string& path);

/// What a path means to somebody who writes to it.
struct WriteTarget {
  std::string path;  ///< behind the symbolic links
  bool exists = false;
  bool in_place = false;  ///< a device, a pipe or an open file of /proc: not to be replaced
  mode_t mode = 0;        ///< of a regular file that exists
};
/// Follows symbolic links to the file that is to be written, or made: a dangling link is made to
/// lead somewhere. Throws Error kIo for a directory, and for a link that the kernel would not
/// follow, either: one of another user in a folder such as /tmp, where everybody can put one.
WriteTarget find_write_target(const std::string& path);

}  // namespace npu
