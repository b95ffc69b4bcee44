// SPDX-License-Identifier: Apache-2.0
// An allocator for libtorch: small blocks come from its default allocator, large ones from the
// system. A freed large block is kept for the next tensor that fills at least two thirds of it,
// since consecutive parts of a graph hardly ever have the same size. Memory in use and kept
// together never exceeds the peak that was in use at once.
#include "large_blocks.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "support/host_memory.hpp"

namespace npu::aten {
namespace {

constexpr std::size_t kUnit = std::size_t{2} << 20;

class LargeBlocks {
 public:
  /// Null if there is no memory.
  void* take(std::size_t bytes) {
    if (bytes > SIZE_MAX - kUnit) return nullptr;
    std::size_t rounded = (bytes + kUnit - 1) / kUnit * kUnit;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<std::byte> block;
    if (const auto found = kept_.lower_bound(rounded);
        found != kept_.end() && found->first - rounded <= rounded / 2) {
      rounded = found->first;
      block = std::move(found->second);
      kept_.erase(found);
      kept_bytes_ -= rounded;
    } else {
      most_used_ = std::max(most_used_, used_bytes_ + rounded);
      while (!kept_.empty() && used_bytes_ + rounded + kept_bytes_ > most_used_) forget_one();
      block = allocate_large(rounded);
      while (block == nullptr && !kept_.empty()) {
        forget_one();
        block = allocate_large(rounded);
      }
      if (block == nullptr) return nullptr;
    }
    used_bytes_ += rounded;
    void* const memory = block.get();
    used_[memory] = {std::move(block), rounded};
    return memory;
  }

  /// False if the block is not one of these.
  bool give_back(void* memory) {
    if (reinterpret_cast<std::uintptr_t>(memory) % kUnit != 0) return false;  // each of ours is
    const std::lock_guard lock(mutex_);
    const auto found = used_.find(memory);
    if (found == used_.end()) return false;
    auto [block, bytes] = std::move(found->second);
    used_.erase(found);
    used_bytes_ -= bytes;
    kept_bytes_ += bytes;
    kept_.emplace(bytes, std::move(block));
    return true;
  }

 private:
  void forget_one() {
    kept_bytes_ -= kept_.begin()->first;
    kept_.erase(kept_.begin());
  }

  std::mutex mutex_;
  std::unordered_map<void*, std::pair<std::shared_ptr<std::byte>, std::size_t>> used_;
  std::multimap<std::size_t, std::shared_ptr<std::byte>> kept_;
  std::size_t used_bytes_ = 0;
  std::size_t kept_bytes_ = 0;
  std::size_t most_used_ = 0;
};

// Never destroyed: libtorch frees some of its tensors when the process ends.
LargeBlocks& large_blocks() {
  static auto* const blocks = new LargeBlocks;
  return *blocks;
}

void release(void* memory) {
  if (memory != nullptr && !large_blocks().give_back(memory)) {
    c10::GetDefaultCPUAllocator()->raw_deallocate(memory);
  }
}

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) const override {
    void* memory = bytes >= kLargeBlock ? large_blocks().take(bytes) : nullptr;
    // The default allocator's error states the size of the request.
    if (memory == nullptr) memory = c10::GetDefaultCPUAllocator()->raw_allocate(bytes);
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
};

}  // namespace

void keep_large_blocks() {
#if !defined(__SANITIZE_ADDRESS__)  // which only guards the ends of malloc's blocks
  static std::once_flag once;
  std::call_once(once, [] {
    static Allocator allocator;
    c10::SetCPUAllocator(&allocator, 1);
  });
#endif
}

}  // namespace npu::aten
