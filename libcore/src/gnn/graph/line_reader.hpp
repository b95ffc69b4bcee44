// SPDX-License-Identifier: Apache-2.0
// Lines and numbers of text formats, with places for messages.
#pragma once

#include <charconv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "npu/support/error.hpp"

namespace npu::gnn {

class LineReader {
 public:
  LineReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// Moves to the next line; false at the end of the text.
  bool next() {
    if (position_ >= text_.size()) return false;
    std::size_t end = text_.find('\n', position_);
    if (end == std::string_view::npos) end = text_.size();
    line_ = text_.substr(position_, end - position_);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    position_ = end + 1;
    ++number_;
    cursor_ = 0;
    return true;
  }
  std::string_view line() const noexcept { return line_; }
  std::int64_t number() const noexcept { return number_; }

  bool at_end_of_line() {
    while (cursor_ < line_.size() && is_separator(line_[cursor_])) ++cursor_;
    return cursor_ >= line_.size();
  }
  bool is_blank() {
    const std::size_t kept = cursor_;
    const bool blank = at_end_of_line();
    cursor_ = kept;
    return blank;
  }
  /// The next word of the line; empty at its end.
  std::string_view word() {
    if (at_end_of_line()) return {};
    const std::size_t begin = cursor_;
    while (cursor_ < line_.size() && !is_separator(line_[cursor_])) ++cursor_;
    return line_.substr(begin, cursor_ - begin);
  }
  /// The next word as an integer; `what` says what was expected.
  std::int64_t integer(std::string_view what) {
    if (at_end_of_line()) fail("expected " + std::string(what) + ", found the end of the line");
    std::int64_t value = 0;
    const char* const begin = line_.data() + cursor_;
    const char* const limit = line_.data() + line_.size();
    const auto [end, error] = std::from_chars(begin, limit, value);
    if (error != std::errc() || (end != limit && !is_separator(*end))) {
      fail("expected " + std::string(what) + ", found '" + excerpt() + "'");
    }
    cursor_ = static_cast<std::size_t>(end - line_.data());
    return value;
  }
  double number_value(std::string_view what) {
    if (at_end_of_line()) fail("expected " + std::string(what) + ", found the end of the line");
    double value = 0;
    const char* begin = line_.data() + cursor_;
    const char* const limit = line_.data() + line_.size();
    if (*begin == '+') ++begin;
    const auto [end, error] = std::from_chars(begin, limit, value);
    if (error != std::errc() || (end != limit && !is_separator(*end)) || !std::isfinite(value)) {
      fail("expected " + std::string(what) + ", found '" + excerpt() + "'");
    }
    cursor_ = static_cast<std::size_t>(end - line_.data());
    return value;
  }

  [[noreturn]] void fail(const std::string& text) const {
    fail_at(number_, static_cast<int>(std::min<std::size_t>(cursor_, INT_MAX - 1)) + 1, text);
  }
  [[noreturn]] void fail_file(const std::string& text) const { fail_at(0, 0, text); }

  /// For edge lists: commas are separators as well.
  void separate_by_commas() { commas_ = true; }

 private:
  [[noreturn]] void fail_at(std::int64_t line, int column, const std::string& text) const {
    throw Error(ErrorCode::kParse, text,
                {.file = file_,
                 .line = static_cast<int>(std::min<std::int64_t>(line, INT_MAX)),
                 .column = column});
  }
  bool is_separator(char c) const { return c == ' ' || c == '\t' || (commas_ && c == ','); }
  std::string excerpt() const {
    std::size_t end = cursor_;
    while (end < line_.size() && !is_separator(line_[end]) && end < cursor_ + 40) ++end;
    std::string text;
    for (const char c : line_.substr(cursor_, end - cursor_)) {
      text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
    return text;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t position_ = 0;
  std::string_view line_;
  std::int64_t number_ = 0;
  std::size_t cursor_ = 0;
  bool commas_ = false;
};

}  // namespace npu::gnn
