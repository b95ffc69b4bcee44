// SPDX-License-Identifier: Apache-2.0
// Memory of a blob whose size is known only when the last piece is written. The kernel moves pages
// instead of copying them when it grows, and pages that nothing was written to cost nothing.
#include "device/blob_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "device/device_call.hpp"

namespace npu {
namespace {

constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
constexpr std::uint64_t kMost = std::uint64_t{1} << 46;

npu4_status no_memory(npu4_error* error, std::uint64_t bytes) {
  if (error != nullptr && NPU4_HAS(error, text)) {
    error->status = NPU4_MEMORY;
    error->known = NPU4_KNOWN_REQUESTED;
    error->requested_bytes = bytes;
    std::memcpy(error->text, "out of memory for the blob", sizeof "out of memory for the blob");
  }
  return NPU4_MEMORY;
}

}  // namespace

BlobMemory::~BlobMemory() {
  if (data_ != nullptr) ::munmap(data_, capacity_);
}

npu4_writer BlobMemory::writer() {
  npu4_writer writer = sized<npu4_writer>();
  writer.context = this;
  writer.write = [](void* context, const void* data, std::uint64_t size, npu4_error* error) {
    return static_cast<BlobMemory*>(context)->append(data, size, error);
  };
  return writer;
}

bool BlobMemory::grow(std::uint64_t needed) {
  if (needed <= capacity_) return true;
  if (needed > kMost) return false;
  const std::uint64_t wanted = std::max({kLeast, capacity_ * 2, (needed + 4095) / 4096 * 4096});
  void* grown = data_ == nullptr ? ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                 : ::mremap(data_, capacity_, wanted, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(grown);
  capacity_ = wanted;
  return true;
}

npu4_status BlobMemory::append(const void* data, std::uint64_t size, npu4_error* error) {
  if (size == 0) return NPU4_OK;
  if (size > kMost || data == nullptr || !grow(size_ + size)) return no_memory(error, size);
  std::memcpy(data_ + size_, data, size);
  size_ += size;
  return NPU4_OK;
}

Blob BlobMemory::take() {
  std::byte* data = data_;
  const std::uint64_t capacity = capacity_;
  const std::uint64_t size = size_;
  data_ = nullptr;
  size_ = capacity_ = 0;
  if (data == nullptr) return {};
  return {
      {data,
       [capacity](const std::byte* memory) { ::munmap(const_cast<std::byte*>(memory), capacity); }},
      size};
}

}  // namespace npu
