// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace npu {

/// How the value of a field stands in a message.
enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// Walks over the fields of one message in protobuf's wire format. Nothing is copied; every length
/// is checked before it is used. Throws Error kParse, with the message's byte, for what is cut
/// short and for groups, which nobody writes any more.
class WireReader {
 public:
  /// `file` is the whole input, of which `message` is a part: places in errors refer to it.
  explicit WireReader(std::string_view message, std::string_view file)
      : message_(message), file_(file) {}
  explicit WireReader(std::string_view file) : WireReader(file, file) {}

  /// What has not been read yet.
  std::string_view rest() const noexcept { return message_.substr(at_); }
  /// Reads the next field; false at the end of the message.
  bool next();

  std::uint32_t field() const noexcept { return field_; }
  bool is_bytes() const noexcept { return type_ == 2; }
  bool is_number() const noexcept { return type_ != 2; }

  /// The value of a field that holds bytes: a string, a message or packed numbers.
  std::string_view bytes() const;
  /// A sub-message, to be walked in turn.
  WireReader message() const { return WireReader(bytes(), file_); }
  /// The value of a varint or of a fixed number, as its bits.
  std::uint64_t number() const;
  /// A varint as a signed number.
  std::int64_t integer() const { return static_cast<std::int64_t>(number()); }
  /// A fixed number of four bytes.
  float float32() const;

  /// Appends what a repeated field of integers holds, packed or not.
  void append_integers(std::vector<std::int64_t>& values, std::size_t most) const;
  void append_floats(std::vector<float>& values, std::size_t most) const;

  /// Throws the error "byte N: text".
  [[noreturn]] void fail(std::string_view text) const;
  std::string_view file() const noexcept { return file_; }

 private:
  std::uint64_t varint();

  std::string_view message_;
  std::string_view file_;
  std::size_t at_ = 0;
  std::uint32_t field_ = 0;
  std::uint32_t type_ = 0;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
};

}  // namespace npu
