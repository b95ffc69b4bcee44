// SPDX-License-Identifier: Apache-2.0
// Numbers in files, little-endian on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace npu {

inline void append_u64(std::string& text, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) text += static_cast<char>((value >> (8 * i)) & 0xff);
}

/// Reads 8 bytes.
inline std::uint64_t read_u64(const std::byte* bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace npu
