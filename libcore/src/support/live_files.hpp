// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace npu {

/// Registers a range of memory as a mapped file for as long as it lives.
class MappingMark {
 public:
  MappingMark(const void* address, std::size_t size, const std::string& path);
  ~MappingMark();
  MappingMark(const MappingMark&) = delete;
  MappingMark& operator=(const MappingMark&) = delete;

  struct Slot;

 private:
  Slot* slot_;
};

/// Lets the kernel take the memory of all mapped files back; what is read again comes from the
/// files. For after a step that has read large ones whole, where memory is scarce.
void release_mapped_files();

/// Registers, for as long as it lives, a temporary name to be removed if the process ends.
class UnfinishedMark {
 public:
  enum class Kind : std::uint8_t { kFile, kFolder };  ///< a folder goes with the files in it
  /// A path longer than PATH_MAX cannot name a file and is ignored.
  explicit UnfinishedMark(const std::string& path, Kind kind = Kind::kFile);
  ~UnfinishedMark();
  UnfinishedMark(const UnfinishedMark&) = delete;
  UnfinishedMark& operator=(const UnfinishedMark&) = delete;

  struct Slot;

 private:
  Slot* slot_ = nullptr;
};

}  // namespace npu
