// SPDX-License-Identifier: Apache-2.0
// Large blocks of memory straight from the system, which returns them zero-filled.
#include "support/host_memory.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace npu {

namespace {
constexpr std::size_t kHugePage = std::size_t{2} << 20;
}

void prefer_huge_pages(void* data, std::size_t bytes) noexcept {
  if (bytes < kLargeBlock) return;
  // Only whole huge pages inside the block; memory around it belongs to others.
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t last = (begin + bytes) / kHugePage * kHugePage;
  if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

std::shared_ptr<std::byte> allocate_large(std::size_t bytes) {
  if (bytes > PTRDIFF_MAX - kHugePage) return nullptr;
  const std::size_t mapped = bytes + kHugePage;  // room to align to a huge page
  void* const memory =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  auto* const data = reinterpret_cast<std::byte*>((begin + kHugePage - 1) / kHugePage * kHugePage);
  prefer_huge_pages(data, bytes);
  return std::shared_ptr<std::byte>(data,
                                    [memory, mapped](std::byte*) { ::munmap(memory, mapped); });
}

}  // namespace npu
