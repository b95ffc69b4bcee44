// SPDX-License-Identifier: Apache-2.0
// Keeps every buffer that it gave out. One that only the pool refers to is given out again for the
// same dtype and shape; when there is too much, the idle ones that were used longest ago go first.
// O(buffers) a call.
#include "gnn/block/buffer_pool.hpp"

#include <algorithm>
#include <utility>

#include "support/host_memory.hpp"

namespace npu::gnn {
namespace {

// Smaller ones cost next to nothing.
constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 10;

}  // namespace

std::shared_ptr<DeviceBuffer> BufferPool::take(DeviceInstance& instance, DType dtype,
                                               const Shape& shape) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) {
    return each.instance == &instance && each.dtype == dtype && each.shape == shape &&
           each.buffer.use_count() == 1;
  });
  if (found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
    return kept_.back().buffer;
  }
  std::shared_ptr<DeviceBuffer> buffer = instance.allocate(dtype, shape);
  const std::uint64_t bytes = buffer->bytes();
  if (std::byte* memory = buffer->host_memory()) prefer_huge_pages(memory, bytes);
  if (bytes < kLeastBytes) return buffer;
  kept_.push_back({&instance, dtype, shape, bytes, buffer});
  bytes_ += bytes;
  if (bytes_ > most_bytes_) drop_idle();
  return buffer;
}

void BufferPool::keep_at_most(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  most_bytes_ = bytes;
}

void BufferPool::drop_idle() {
  for (auto each = kept_.begin(); each != kept_.end() && bytes_ > most_bytes_;) {
    if (each->buffer.use_count() > 1) {
      ++each;
      continue;
    }
    bytes_ -= each->bytes;
    each = kept_.erase(each);
  }
}

}  // namespace npu::gnn
