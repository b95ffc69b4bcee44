// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format, as ONNX needs it: varints, floats of four bytes, and ranges of bytes with
// their length. O(bytes).
#include "tensor/protobuf_writer.hpp"

#include <bit>

#include "tensor/protobuf_wire.hpp"

namespace npu {
void WireWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) message_ += static_cast<char>(value | 0x80);
  message_ += static_cast<char>(value);
}

void WireWriter::integer(std::uint32_t field, std::int64_t value) {
  varint(field << 3 | kVarint);
  varint(static_cast<std::uint64_t>(value));
}

void WireWriter::float32(std::uint32_t field, float value) {
  varint(field << 3 | kFixed32);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) message_ += static_cast<char>(bits >> shift);
}

void WireWriter::bytes(std::uint32_t field, std::string_view content) {
  head_of_bytes(field, content.size());
  message_ += content;
}

void WireWriter::head_of_bytes(std::uint32_t field, std::uint64_t size) {
  varint(field << 3 | kBytes);
  varint(size);
}

}  // namespace npu
