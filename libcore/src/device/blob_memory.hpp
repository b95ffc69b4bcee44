// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "npu/device/blob.hpp"
#include "support/descriptor.hpp"

namespace npu {

/// Takes what a backend writes, piece by piece, into memory that begins at a page.
class BlobMemory {
 public:
  /// Below that a file costs more time than the memory is worth.
  static constexpr std::uint64_t kMostInMemory = std::uint64_t{256} << 20;

  BlobMemory() = default;
  /// A blob of more than `most_in_memory` bytes is kept in a file without a name in this folder and
  /// mapped by take(), unless the folder is empty or its file system has no such files.
  explicit BlobMemory(std::string folder, std::uint64_t most_in_memory = kMostInMemory)
      : folder_(std::move(folder)), most_in_memory_(most_in_memory) {}
  ~BlobMemory();
  BlobMemory(const BlobMemory&) = delete;
  BlobMemory& operator=(const BlobMemory&) = delete;

  /// For a call; valid as long as this object.
  npu_writer writer();
  std::uint64_t size() const noexcept { return size_; }
  /// Null once a file holds the bytes.
  const std::byte* data() const noexcept { return data_; }
  /// Hands the memory over. Nothing if its file cannot be mapped.
  Blob take();

 private:
  npu_status append(const void* data, std::uint64_t size, npu_error* error);
  bool grow(std::uint64_t needed);
  npu_status append_to_file(const void* data, std::uint64_t size, npu_error* error);
  bool move_to_file();
  void free_memory();

  std::string folder_;
  std::uint64_t most_in_memory_ = kMostInMemory;
  Descriptor file_;
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t capacity_ = 0;
};

}  // namespace npu
