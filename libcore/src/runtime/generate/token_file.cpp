// SPDX-License-Identifier: Apache-2.0
// Token files: a request is a line of decimal ids. The text may come from anywhere, so whatever is
// no id is refused with its line and column, before any number is used as an index.
//
// Bytes are looked at once, in a buffer of fixed size; a line costs 8 bytes an id. A carriage
// return is refused rather than skipped: a file with such line ends has passed through a program
// that may have changed more.
#include "runtime/generate/token_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace npu {
namespace {

constexpr std::size_t kSourceBytes = std::size_t{1} << 16;
constexpr std::size_t kMostIds = std::size_t{1} << 24;

std::string byte_text(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  if (value > ' ' && value < 0x7f) return "'" + std::string(1, byte) + "'";
  static constexpr std::string_view kDigits = "0123456789abcdef";
  return std::string("byte 0x") + kDigits[value / 16] + kDigits[value % 16];
}

int located(std::int64_t place) {
  return static_cast<int>(std::min<std::int64_t>(place, std::numeric_limits<int>::max()));
}

}  // namespace

ByteSource source_of(std::string_view text) {
  return [text](std::span<char> buffer) mutable {
    const std::size_t size = std::min(buffer.size(), text.size());
    std::copy_n(text.begin(), size, buffer.begin());
    text.remove_prefix(size);
    return size;
  };
}

ByteSource source_of_descriptor(int descriptor, const std::string& name) {
  return [descriptor, name](std::span<char> buffer) {
    for (;;) {
      const ssize_t size = ::read(descriptor, buffer.data(), buffer.size());
      if (size >= 0) return static_cast<std::size_t>(size);
      if (errno != EINTR) {
        throw Error(ErrorCode::kIo, std::string("cannot read: ") + std::strerror(errno),
                    {.file = name});
      }
    }
  };
}

TokenReader::TokenReader(ByteSource source, std::string file, std::int64_t vocabulary)
    : source_(std::move(source)),
      file_(std::move(file)),
      vocabulary_(vocabulary),
      buffer_(kSourceBytes) {}

std::optional<char> TokenReader::byte() {
  if (begin_ == end_) {
    if (is_at_end_) return std::nullopt;
    begin_ = 0;
    end_ = source_(buffer_);
    is_at_end_ = end_ == 0;
    if (is_at_end_) return std::nullopt;
  }
  return buffer_[begin_++];
}

void TokenReader::refuse(std::int64_t column, std::string text) const {
  throw Error(ErrorCode::kParse, std::move(text),
              {.file = file_, .line = located(line_), .column = located(column)});
}

std::optional<TokenLine> TokenReader::next() {
  std::optional<char> c = byte();
  if (!c) return std::nullopt;
  TokenLine line;
  line.number = ++line_;
  const auto vocabulary = static_cast<std::uint64_t>(std::max<std::int64_t>(vocabulary_, 0));
  std::int64_t column = 1;
  for (; c && *c != '\n'; c = byte(), ++column) {
    if (*c == ' ' || *c == '\t') continue;
    const std::int64_t start = column;
    std::uint64_t id = 0;  // 10 times what is below the vocabulary's size fits in
    for (; c && *c >= '0' && *c <= '9'; c = byte(), ++column) {
      // Behind the vocabulary's end no further digit brings it back.
      id = id > vocabulary / 10 ? vocabulary : 10 * id + static_cast<std::uint64_t>(*c - '0');
    }
    const bool is_ended = !c || *c == '\n' || *c == ' ' || *c == '\t';
    if (!is_ended) {
      refuse(column, "expected ids of decimal digits with blanks between, found " + byte_text(*c));
    }
    if (id >= vocabulary) {
      refuse(start,
             "the id is not below the size of the vocabulary, " + std::to_string(vocabulary_));
    }
    if (line.ids.size() == kMostIds) {
      refuse(start, "the line has more than " + std::to_string(kMostIds) + " ids");
    }
    line.ids.push_back(static_cast<std::int64_t>(id));
    if (!c || *c == '\n') break;
  }
  if (line.ids.empty()) refuse(1, "the line has no ids");
  return line;
}

}  // namespace npu
