// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "support/live_files.hpp"

namespace npu {

/// A folder that appears under its name with all of its files, or not at all: it is filled under a
/// temporary name beside it and renamed. What is not published is removed with the object, and by
/// the program's signal handlers. Files, not folders, may be in it. All functions throw Error kIo.
class NewFolder {
 public:
  /// Nothing but an empty folder may have the name.
  explicit NewFolder(std::string path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where to write the file `name` of it.
  std::string operator/(const std::string& name) const { return temporary_ + "/" + name; }
  /// Gives the folder its name, after its list of files has reached the disk.
  void publish();

 private:
  std::string path_;
  std::string temporary_;  ///< empty: published
  std::optional<UnfinishedMark> mark_;
};

}  // namespace npu
