// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace npu {

// What the reader and the writer of npub(5) have in common.

// The first byte is not UTF-8, and the line ends do not survive a transfer in text mode.
inline constexpr std::array<char, 8> kBundleMagic{'\x89', 'N', 'P', 'U', 'B', '\r', '\n', '\x1a'};
inline constexpr std::size_t kBundleHeaderBytes = 64;
inline constexpr std::size_t kWeightAlignment = 64;
inline constexpr std::string_view kDocumentSection = "document";
inline constexpr std::string_view kWeightsSection = "weights";

constexpr std::uint64_t bundle_aligned(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace npu
