// SPDX-License-Identifier: Apache-2.0
// An allocator for libtorch: small blocks are those of its own, large ones come from the system and
// are kept for the next tensor that fills at least two thirds of them: parts of a graph, one after
// the other, hardly ever have the same size. What is used and kept together never exceeds the most
// that was ever used at once.
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

#include "npu/support/host_memory.hpp"

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

  /// False if the block is none of these.
  bool give_back(void* memory) {
    if (reinterpret_cast<std::uintptr_t>(memory) % kUnit != 0) return false;  // as all of them are
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

// Never destroyed: libtorch frees tensors of its own when the process ends.
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
    // Its error says how much was asked for.
    if (memory == nullptr) memory = c10::GetDefaultCPUAllocator()->raw_allocate(bytes);
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
};

}  // namespace

void keep_large_blocks() {
#if !defined(__SANITIZE_ADDRESS__)  // which watches the ends of what malloc gives
  static std::once_flag once;
  std::call_once(once, [] {
    static Allocator allocator;
    c10::SetCPUAllocator(&allocator, 1);
  });
#endif
}

}  // namespace npu::aten
