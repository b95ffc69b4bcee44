// SPDX-License-Identifier: Apache-2.0
// Memory of a blob whose size is known only when the last piece is written. The kernel moves pages
// instead of copying them when it grows, and pages that nothing was written to cost nothing. Where
// there is a folder for it, a large blob goes to a file: a compile then needs no memory for it,
// which may be as large as all weights.
#include "device/blob_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "device/device_call.hpp"
#include "npu/support/error.hpp"
#include "support/new_file.hpp"
#include "support/open_file.hpp"

namespace npu {
namespace {

constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
constexpr std::uint64_t kMost = std::uint64_t{1} << 46;

npu_status no_memory(npu_error* error, std::uint64_t bytes,
                     const std::string& text = "out of memory for the blob") {
  if (error != nullptr && NPU_HAS(error, text)) {
    error->status = NPU_MEMORY;
    error->known = NPU_KNOWN_REQUESTED;
    error->requested_bytes = bytes;
    const std::size_t length = std::min(text.size(), sizeof error->text - 1);
    std::memcpy(error->text, text.data(), length);
    error->text[length] = '\0';
  }
  return NPU_MEMORY;
}

}  // namespace

BlobMemory::~BlobMemory() { free_memory(); }

void BlobMemory::free_memory() {
  if (data_ != nullptr) ::munmap(data_, capacity_);
  data_ = nullptr;
  capacity_ = 0;
}

npu_writer BlobMemory::writer() {
  npu_writer writer = sized<npu_writer>();
  writer.context = this;
  writer.write = [](void* context, const void* data, std::uint64_t size, npu_error* error) {
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

npu_status BlobMemory::append(const void* data, std::uint64_t size, npu_error* error) {
  if (size == 0) return NPU_OK;
  if (file_.get() >= 0) return append_to_file(data, size, error);
  if (data != nullptr && size <= kMost && size_ + size > most_in_memory_ && move_to_file()) {
    return append_to_file(data, size, error);
  }
  if (size > kMost || data == nullptr || !grow(size_ + size)) return no_memory(error, size);
  std::memcpy(data_ + size_, data, size);
  size_ += size;
  return NPU_OK;
}

bool BlobMemory::move_to_file() {
  if (folder_.empty()) return false;
  Descriptor file = open_scratch_file(folder_);
  bool is_written = file.get() >= 0;
  try {
    if (is_written) {
      write_fully(file.get(), {reinterpret_cast<const char*>(data_), size_}, folder_);
    }
  } catch (const Error&) {
    is_written = false;
  }
  if (!is_written) {
    folder_.clear();  // no such files, or no room there: the memory stays, and nobody asks again
    return false;
  }
  file_ = std::move(file);
  free_memory();
  return true;
}

npu_status BlobMemory::append_to_file(const void* data, std::uint64_t size, npu_error* error) {
  if (data == nullptr || size > kMost) return no_memory(error, size);
  try {
    write_fully(file_.get(), {static_cast<const char*>(data), size}, folder_);
  } catch (const Error& failed) {
    return no_memory(error, size, std::string("no room for the blob: ") + failed.what());
  }
  size_ += size;
  return NPU_OK;
}

Blob BlobMemory::take() {
  if (file_.get() >= 0) {
    const std::uint64_t size = std::exchange(size_, 0);
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_.get(), 0);
    file_ = Descriptor();
    if (mapped == MAP_FAILED) return {};
    return {{static_cast<const std::byte*>(mapped),
             [size](const std::byte* memory) { ::munmap(const_cast<std::byte*>(memory), size); }},
            size};
  }
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
