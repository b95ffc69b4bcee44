// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "npu/device/backend.hpp"

namespace npu {

/// Takes what a backend writes, piece by piece, into memory that begins at a page.
class BlobMemory {
 public:
  BlobMemory() = default;
  ~BlobMemory();
  BlobMemory(const BlobMemory&) = delete;
  BlobMemory& operator=(const BlobMemory&) = delete;

  /// For a call; valid as long as this object.
  npu4_writer writer();
  std::uint64_t size() const noexcept { return size_; }
  const std::byte* data() const noexcept { return data_; }
  /// Hands the memory over.
  Blob take();

 private:
  npu4_status append(const void* data, std::uint64_t size, npu4_error* error);
  bool grow(std::uint64_t needed);

  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t capacity_ = 0;
};

}  // namespace npu
