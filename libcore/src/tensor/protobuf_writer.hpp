// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace npu {

/// Appends the fields of one message in protobuf's wire format, which WireReader reads.
class WireWriter {
 public:
  /// A varint, negative numbers as their 64 bits.
  void integer(std::uint32_t field, std::int64_t value);
  /// A fixed number of four bytes.
  void float32(std::uint32_t field, float value);
  /// A string or a message.
  void bytes(std::uint32_t field, std::string_view content);
  /// What stands in front of `size` bytes that the caller writes behind this message.
  void head_of_bytes(std::uint32_t field, std::uint64_t size);

  const std::string& message() const noexcept { return message_; }
  std::string take() { return std::exchange(message_, {}); }

 private:
  void varint(std::uint64_t value);

  std::string message_;
};

}  // namespace npu
