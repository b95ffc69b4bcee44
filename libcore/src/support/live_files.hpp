// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace npu {

/// Says for as long as it lives that a range of memory is a mapped file.
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

/// Says for as long as it lives that a path is a temporary name, to be removed if the process ends.
class UnfinishedMark {
 public:
  /// A path longer than PATH_MAX names no file, and is not kept.
  explicit UnfinishedMark(const std::string& path);
  ~UnfinishedMark();
  UnfinishedMark(const UnfinishedMark&) = delete;
  UnfinishedMark& operator=(const UnfinishedMark&) = delete;

  struct Slot;

 private:
  Slot* slot_ = nullptr;
};

}  // namespace npu
