// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format: a sequence of (field number, type, value). Zero-copy, since the parser of
// libprotobuf would hold a model's weights a second time. O(bytes of the fields that are read).
#include "tensor/protobuf_wire.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "npu/support/error.hpp"

namespace npu {
namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace

void WireReader::fail(std::string_view text) const {
  const auto place = static_cast<std::size_t>(message_.data() - file_.data()) + at_;
  throw Error(ErrorCode::kParse, "byte " + std::to_string(place) + ": " + std::string(text));
}

std::uint64_t WireReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ >= message_.size()) fail("a number is cut short");
    const auto byte = static_cast<unsigned char>(message_[at_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail("a number has more than ten bytes");
}

bool WireReader::next() {
  if (at_ >= message_.size()) return false;
  const std::uint64_t tag = varint();
  field_ = static_cast<std::uint32_t>(tag >> 3);
  type_ = static_cast<std::uint32_t>(tag & 7);
  if (tag >> 32 != 0 || field_ == 0) fail("expected the tag of a field");
  std::uint64_t length = 0;
  if (type_ == kVarint) {
    number_ = varint();
    return true;
  }
  if (type_ == kBytes) {
    length = varint();
  } else if (type_ == kFixed64) {
    length = 8;
  } else if (type_ == kFixed32) {
    length = 4;
  } else {
    fail("a field of type " + std::to_string(type_) + ", which this format does not have");
  }
  if (length > message_.size() - at_) {
    fail("field " + std::to_string(field_) + " claims " + std::to_string(length) +
         " bytes, of which " + std::to_string(message_.size() - at_) + " are there");
  }
  bytes_ = message_.substr(at_, static_cast<std::size_t>(length));
  at_ += static_cast<std::size_t>(length);
  if (type_ != kBytes) number_ = little_endian(bytes_);
  return true;
}

std::string_view WireReader::bytes() const {
  if (!is_bytes()) fail("field " + std::to_string(field_) + " holds a number, expected bytes");
  return bytes_;
}

std::uint64_t WireReader::number() const {
  if (is_bytes()) fail("field " + std::to_string(field_) + " holds bytes, expected a number");
  return number_;
}

float WireReader::float32() const {
  if (type_ != kFixed32) fail("field " + std::to_string(field_) + " holds no float");
  return std::bit_cast<float>(static_cast<std::uint32_t>(number_));
}

void WireReader::append_integers(std::vector<std::int64_t>& values, std::size_t most) const {
  if (!is_bytes()) {
    values.push_back(integer());
  } else {
    WireReader packed(bytes_, file_);
    while (packed.at_ < packed.message_.size()) {
      if (values.size() > most) break;
      values.push_back(static_cast<std::int64_t>(packed.varint()));
    }
  }
  if (values.size() > most) fail("a list has more than " + std::to_string(most) + " numbers");
}

void WireReader::append_floats(std::vector<float>& values, std::size_t most) const {
  if (!is_bytes()) {
    values.push_back(float32());
  } else {
    if (bytes_.size() % 4 != 0) fail("a list of floats is cut short");
    if (bytes_.size() / 4 > most) fail("a list of floats is too long");
    for (std::size_t i = 0; i < bytes_.size(); i += 4) {
      values.push_back(
          std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(bytes_.substr(i, 4)))));
    }
  }
  if (values.size() > most) fail("a list has more than " + std::to_string(most) + " numbers");
}

}  // namespace npu
