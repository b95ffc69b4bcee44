// SPDX-License-Identifier: Apache-2.0
// Reads the text of a size: integers, symbols, + - * // %, min(...) and max(...), parentheses, with
// Python's precedence, in which a sign binds more tightly than a product. What is read is brought
// into canonical form at once, so the result is bounded by SizeExpression's limits; nesting is
// bounded here, before anything recurses. O(length of the text x kMostLeaves).
#include <charconv>
#include <string>
#include <vector>

#include "ir/size_expression.hpp"
#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

// A canonical text has at most three parentheses, or words, for each of kDeepest atoms.
constexpr int kDeepestText = 4 * SizeExpression::kDeepest;

class SizeParser {
 public:
  explicit SizeParser(std::string_view text) : text_(text) {}

  SizeExpression parse() {
    if (text_.size() > SizeExpression::kMostText) {
      throw Error(ErrorCode::kInvalidGraph,
                  "size '" + short_text(text_) + "' has " + std::to_string(text_.size()) +
                      " bytes, expected at most " + std::to_string(SizeExpression::kMostText));
    }
    SizeExpression expression = sum();
    if (place_ < text_.size()) expect("an operator");
    return expression;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidGraph, "size '" + short_text(text_) + "': " + what);
  }
  [[noreturn]] void expect(const std::string& what) const {
    const std::string found =
        place_ < text_.size() ? "'" + printable_text(text_.substr(place_, 1)) + "'" : "the end";
    fail("expected " + what + " at column " + std::to_string(place_ + 1) + ", found " + found);
  }

  void skip_blanks() {
    while (place_ < text_.size() && text_[place_] == ' ') ++place_;
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(place_).starts_with(token)) return false;
    place_ += token.size();
    return true;
  }

  // What does not fit is told with the text, which the operation itself does not know.
  template <typename Operation>
  SizeExpression compute(const Operation& operation) const {
    try {
      return operation();
    } catch (const Error& error) {
      fail(error.message());
    }
  }

  SizeExpression sum() {
    SizeExpression value = product();
    for (;;) {
      if (take("+")) {
        const SizeExpression other = product();
        value = compute([&] { return value + other; });
      } else if (take("-")) {
        const SizeExpression other = product();
        value = compute([&] { return value - other; });
      } else {
        return value;
      }
    }
  }

  SizeExpression product() {
    SizeExpression value = signed_value();
    for (;;) {
      if (take("*")) {
        if (take("*")) fail("'**' at column " + std::to_string(place_ - 1) + " is no operator");
        const SizeExpression other = signed_value();
        value = compute([&] { return value * other; });
      } else if (take("//")) {
        const std::int64_t by = divisor();
        value = compute([&] { return value.floor_divide(by); });
      } else if (take("%")) {
        const std::int64_t by = divisor();
        value = compute([&] { return value.modulo(by); });
      } else {
        return value;
      }
    }
  }

  std::int64_t divisor() {
    skip_blanks();
    const std::string column = std::to_string(place_ + 1);
    const auto value = signed_value().constant();
    if (!value || *value < 1) fail("expected a positive integer as divisor at column " + column);
    return *value;
  }

  SizeExpression signed_value() {
    bool is_negative = false;
    while (take("-")) is_negative = !is_negative;
    const SizeExpression value = primary();
    return is_negative ? compute([&] { return -value; }) : value;
  }

  bool is_digit_next() const {
    return place_ < text_.size() && text_[place_] >= '0' && text_[place_] <= '9';
  }

  SizeExpression primary() {
    if (take("(")) {
      deeper();
      SizeExpression inner = sum();
      if (!take(")")) expect("')'");
      --depth_;
      return inner;
    }
    skip_blanks();
    if (is_digit_next()) return number();
    const std::size_t begin = place_;
    while (place_ < text_.size() && is_of_name(text_[place_])) ++place_;
    if (place_ == begin) expect("a number, a symbol or '('");
    const std::string_view name = text_.substr(begin, place_ - begin);
    if ((name == "min" || name == "max") && take("(")) return extreme(name == "min");
    if (!is_size_symbol(name)) fail("'" + short_text(name) + "' is no name for a size");
    return SizeExpression::symbol(name);
  }

  static bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  }

  SizeExpression number() {
    std::int64_t value = 0;
    const char* const begin = text_.data() + place_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    const std::string digits(begin, end);
    if (error != std::errc()) fail("'" + short_text(digits) + "' does not fit in 64 bits");
    if (digits.size() > 1 && digits.front() == '0')
      fail("'" + short_text(digits) + "' begins with 0");
    place_ += digits.size();
    if (place_ < text_.size() && is_of_name(text_[place_])) expect("an operator");
    return value;
  }

  SizeExpression extreme(bool is_min) {
    deeper();
    std::vector<SizeExpression> operands{sum()};
    while (take(",")) {
      if (operands.size() >= SizeExpression::kMostLeaves) {
        fail("min and max take at most " + std::to_string(SizeExpression::kMostLeaves) +
             " operands");
      }
      operands.push_back(sum());
    }
    if (!take(")")) expect("',' or ')'");
    --depth_;
    return compute(
        [&] { return is_min ? SizeExpression::min(operands) : SizeExpression::max(operands); });
  }

  void deeper() {
    if (++depth_ > kDeepestText) {
      fail("is nested more than " + std::to_string(kDeepestText) + " deep");
    }
  }

  std::string_view text_;
  std::size_t place_ = 0;
  int depth_ = 0;
};

}  // namespace

SizeExpression SizeExpression::parse(std::string_view text) { return SizeParser(text).parse(); }

}  // namespace npu
