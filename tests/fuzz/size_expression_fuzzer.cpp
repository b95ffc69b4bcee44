// SPDX-License-Identifier: Apache-2.0
// Sizes: a text is refused with a message, or its canonical form is read again as itself and has
// the values that a direct evaluation of the text gives, within the bounds that are stated.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "ir/size_expression.hpp"
#include "npu/support/error.hpp"

using npu::fuzz::require;

namespace {

__extension__ using Wide = __int128;
using Value = std::optional<Wide>;  // nothing: larger than what is compared

// Numbers for names: the same in both evaluations.
std::int64_t value_of_name(std::string_view name, std::int64_t sample) {
  std::int64_t value = sample;
  for (const char c : name) value = (value * 31 + c) % 1009;
  return value - sample % 7 * 50;
}

/// Evaluates a text that SizeExpression::parse has accepted.
class Direct {
 public:
  Direct(std::string_view text, std::int64_t sample) : text_(text), sample_(sample) {}

  Value sum() {
    Value value = product();
    for (;;) {
      if (take("+")) {
        value = joined(value, product(), [](Wide a, Wide b) { return a + b; });
      } else if (take("-")) {
        value = joined(value, product(), [](Wide a, Wide b) { return a - b; });
      } else {
        return value;
      }
    }
  }

 private:
  template <typename Operation>
  static Value joined(Value a, Value b, const Operation& operation) {
    constexpr Wide kMost = Wide{1} << 62;
    if (!a || !b) return std::nullopt;
    const Wide value = operation(*a, *b);
    return value > -kMost && value < kMost ? Value(value) : std::nullopt;
  }
  static Wide quotient(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

  bool take(std::string_view token) {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  Value product() {
    Value value = factor();
    for (;;) {
      if (take("*")) {
        value = joined(value, factor(), [](Wide a, Wide b) { return a * b; });
      } else if (take("//")) {
        value = joined(value, factor(), [](Wide a, Wide b) { return quotient(a, b); });
      } else if (take("%")) {
        value = joined(value, factor(), [](Wide a, Wide b) { return a - b * quotient(a, b); });
      } else {
        return value;
      }
    }
  }
  Value factor() {
    bool is_negative = false;
    while (take("-")) is_negative = !is_negative;
    const Value value = primary();
    return is_negative && value ? Value(-*value) : value;
  }
  Value primary() {
    if (take("(")) {
      const Value value = sum();
      take(")");
      return value;
    }
    take("");
    std::size_t length = 0;
    while (length < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[length])) ||
                                     text_[length] == '_' || text_[length] == '.')) {
      ++length;
    }
    const std::string word(text_.substr(0, length));
    text_.remove_prefix(length);
    if (word.front() >= '0' && word.front() <= '9') {
      return joined(std::stoll(word), 0, [](Wide a, Wide b) { return a + b; });
    }
    const bool is_min = word == "min";
    if ((!is_min && word != "max") || !take("(")) return value_of_name(word, sample_);
    Value value = sum();
    while (take(",")) {
      value = joined(value, sum(),
                     [&](Wide a, Wide b) { return is_min ? std::min(a, b) : std::max(a, b); });
    }
    take(")");
    return value;
  }

  std::string_view text_;
  std::int64_t sample_;
};

void check_values(const npu::SizeExpression& size, std::string_view text) {
  for (std::int64_t sample = 1; sample < 40; sample += 13) {
    npu::SizeBindings values;
    npu::SizeRanges ranges;
    npu::SizeSubstitution numbers;
    for (const std::string& name : size.symbols()) {
      const std::int64_t value = value_of_name(name, sample);
      values[name] = value;
      ranges[name] = {value - sample, value + 3 * sample};
      numbers.emplace(name, value);
    }
    std::int64_t value = 0;
    try {
      value = size.evaluate(values);
      require(size.substitute(numbers).constant() == value, "substitution gives the value");
    } catch (const npu::Error&) {
      continue;
    }
    const npu::SizeRange bounds = size.bounds(ranges);
    require(bounds.min <= value && value <= bounds.max, "the value is within the bounds");
    const Value direct = Direct(text, sample).sum();
    require(!direct || *direct == value, "the canonical form has the value of the text");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu::SizeExpression expression;
  try {
    expression = npu::SizeExpression::parse(text);
  } catch (const npu::Error& error) {
    require(!error.message().empty(), "a message says what is wrong");
    return 0;
  }
  const npu::SizeExpression again = npu::SizeExpression::parse(expression.text());
  require(again == expression && again.text() == expression.text(),
          "the canonical text is read as the same expression");
  check_values(expression, text);
  return 0;
}
