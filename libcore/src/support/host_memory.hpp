// SPDX-License-Identifier: Apache-2.0
// Large blocks of host memory.
#pragma once

#include <cstddef>
#include <memory>

namespace npu {

/// From this size on, a block is worth huge pages.
inline constexpr std::size_t kLargeBlock = std::size_t{4} << 20;

/// Asks the system to back the untouched pages of a block with huge pages: one page fault per 2 MiB
/// instead of one per 4 KiB. A hint; without effect on blocks below kLargeBlock.
void prefer_huge_pages(void* data, std::size_t bytes) noexcept;

/// Zero-filled memory of at least kLargeBlock bytes, on huge pages if the system has any; null if
/// there is no memory. Pages are allocated when they are first touched.
std::shared_ptr<std::byte> allocate_large(std::size_t bytes);

}  // namespace npu
