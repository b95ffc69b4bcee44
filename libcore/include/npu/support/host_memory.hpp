// SPDX-License-Identifier: Apache-2.0
// Large blocks of host memory.
#pragma once

#include <cstddef>
#include <memory>

namespace npu {

/// From this size on, a block is worth pages of its own.
inline constexpr std::size_t kLargeBlock = std::size_t{4} << 20;

/// Asks the system for huge pages where the block is not touched yet: one fault for 2 MiB instead
/// of one for 4 KiB. A hint; without effect on blocks below kLargeBlock.
void prefer_huge_pages(void* data, std::size_t bytes) noexcept;

/// Zero-filled memory of at least kLargeBlock bytes, on huge pages where there are any; null if
/// there is none. Its pages are made when they are first touched.
std::shared_ptr<std::byte> allocate_large(std::size_t bytes);

}  // namespace npu
