// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npu/support/error.hpp"

namespace npu {

/// Fills a part of a buffer with the next bytes of a stream, and waits only if there are none; 0 at
/// its end.
using ByteSource = std::function<std::size_t(std::span<char> buffer)>;

/// A source of a text, which has to outlive it.
ByteSource source_of(std::string_view text);
/// A source of a descriptor, such as stdin; `name` stands for it in messages. Throws Error kIo.
ByteSource source_of_descriptor(int descriptor, const std::string& name);

/// A line of a token file.
struct TokenLine {
  std::int64_t number = 0;             ///< of the line, from 1
  std::vector<std::int64_t> ids = {};  ///< at least one
};

/// Reads requests one after the other: a line of decimal ids with blanks or tabs between. A line is
/// returned as soon as its end is there; no more than one is kept.
class TokenReader {
 public:
  /// Ids are below `vocabulary`; `file` stands for the stream in messages.
  TokenReader(ByteSource source, std::string file, std::int64_t vocabulary);

  /// The next request; nothing at the end. Throws Error kParse with line and column for anything
  /// but ids below the vocabulary's size, a line without one, and a line of more than 2^24.
  std::optional<TokenLine> next();

  const std::string& file() const noexcept { return file_; }

 private:
  /// The next byte; nothing at the end.
  std::optional<char> byte();
  [[noreturn]] void refuse(std::int64_t column, std::string text) const;

  ByteSource source_;
  std::string file_;
  std::int64_t vocabulary_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool is_at_end_ = false;
  std::int64_t line_ = 0;
};

}  // namespace npu
