// SPDX-License-Identifier: Apache-2.0
#include "ir/size_expression.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;

namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

std::string canonical(const std::string& text) { return SizeExpression::parse(text).text(); }

std::string fault(const std::string& text) {
  try {
    SizeExpression::parse(text);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidGraph);
    return error.message();
  }
  return "none";
}

std::int64_t value(const std::string& text, const SizeBindings& values) {
  return SizeExpression::parse(text).evaluate(values);
}

std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// A random expression beside what it is worth, computed in another way.
struct Drawn {
  SizeExpression expression;
  std::int64_t value = 0;
};

class Draw {
 public:
  Draw(std::uint64_t seed, SizeBindings values) : engine_(seed), values_(std::move(values)) {}

  Drawn expression(int depth) {
    const int kind = depth == 0 ? below(2) : below(9);
    if (kind == 0) {
      const std::int64_t number = below(41) - 20;
      return {number, number};
    }
    if (kind == 1 || kind == 2) {
      const std::string name(1, static_cast<char>('A' + below(3)));
      return {SizeExpression::symbol(name), values_.at(name)};
    }
    const Drawn a = expression(depth - 1);
    const std::int64_t divisor = below(12) + 1;
    if (kind == 3) return {a.expression.floor_divide(divisor), floor_of(a.value, divisor)};
    if (kind == 4) {
      return {a.expression.modulo(divisor), a.value - divisor * floor_of(a.value, divisor)};
    }
    const Drawn b = expression(depth - 1);
    if (kind == 5) return {a.expression + b.expression, a.value + b.value};
    if (kind == 6) return {a.expression - b.expression, a.value - b.value};
    if (kind == 7) return {a.expression * b.expression, a.value * b.value};
    const std::array both{a.expression, b.expression};
    if (below(2) == 0) return {SizeExpression::min(both), std::min(a.value, b.value)};
    return {SizeExpression::max(both), std::max(a.value, b.value)};
  }

 private:
  int below(int count) { return static_cast<int>(engine_() % static_cast<unsigned>(count)); }

  std::mt19937_64 engine_;
  SizeBindings values_;
};

}  // namespace

TEST_CASE("size: numbers and symbols are read and written") {
  CHECK(SizeExpression().text() == "0");
  CHECK(canonical("12") == "12");
  CHECK(canonical(" - 12 ") == "-12");
  CHECK(canonical("--3") == "3");
  CHECK(canonical("S") == "S");
  CHECK(canonical("past_len.0") == "past_len.0");
  CHECK(canonical("9223372036854775807") == "9223372036854775807");
  CHECK(SizeExpression::parse("7").constant() == 7);
  CHECK(!SizeExpression::parse("S").constant());
  CHECK(SizeExpression::parse("S - S").is_constant());
}

TEST_CASE("size: one form for sums and products that are equal") {
  CHECK(canonical("1 + S") == "S + 1");
  CHECK(canonical("S*2+S") == "3*S");
  CHECK(canonical("T + S") == "S + T");
  CHECK(canonical("-S + 4") == "4 - S");
  CHECK(canonical("-S - 1") == "-S - 1");
  CHECK(canonical("T*S*2") == "2*S*T");
  CHECK(canonical("(S + 1)*(S - 1)") == "S*S - 1");
  CHECK(canonical("2 - (S - T)") == "T - S + 2");
  CHECK(SizeExpression::parse("(H + 1)*W") == SizeExpression::parse("W + H*W"));
  CHECK(!(SizeExpression::parse("S") == SizeExpression::parse("T")));
  CHECK(!(SizeExpression::parse("S") == SizeExpression::parse("S + 1")));
  CHECK(!(SizeExpression::parse("S") == SizeExpression::parse("2*S")));
}

TEST_CASE("size: divisions lose whole multiples and common factors, and join") {
  CHECK(canonical("4*S // 2") == "2*S");
  CHECK(canonical("(4*S + 3) // 2") == "2*S + 1");
  CHECK(canonical("(2*S + 1) // 4") == "S // 2");
  CHECK(canonical("(S - 1) // 2 + 1") == "(S + 1) // 2");
  CHECK(canonical("-S // 2") == "S // 2 - S");
  CHECK(canonical("S // 1") == "S");
  CHECK(canonical("7 // 2") == "3");
  CHECK(canonical("-7 // 2") == "-4");
  // Five convolutions with stride 2 and kernel 3: as if with stride 32.
  std::string text = "H";
  for (int i = 0; i < 5; ++i) text = "((" + text + ") - 1) // 2 + 1";
  CHECK(canonical(text) == "(H + 31) // 32");
  CHECK(canonical("3*((S + 1) // 2)") == "3*((S + 1) // 2)");
  CHECK(canonical("(S // 2)*(T // 2)") == "(S // 2)*(T // 2)");
  CHECK(canonical("T - (S // 2)") == "T - (S // 2)");
}

TEST_CASE("size: remainders are from 0 to divisor - 1") {
  CHECK(canonical("-7 % 2") == "1");
  CHECK(canonical("8*S % 4") == "0");
  CHECK(canonical("(9*S + 6) % 4") == "(S + 2) % 4");
  CHECK(canonical("2*S % 4") == "2*(S % 2)");
  CHECK(canonical("S % 1") == "0");
  CHECK(canonical("S % 8 + 1") == "S % 8 + 1");
  CHECK(value("S % 8", {{"S", -3}}) == 5);
}

TEST_CASE("size: min and max drop what never counts") {
  CHECK(canonical("min(S, S + 1)") == "S");
  CHECK(canonical("max(S, S + 1, T)") == "max(S + 1, T)");
  CHECK(canonical("min(7, min(S, 5))") == "min(5, S)");
  CHECK(canonical("min(S)") == "S");
  CHECK(canonical("min(T, S)*2 // 3") == "(2*min(S, T)) // 3");
  CHECK(canonical("min(S, T) // 2") == "min(S, T) // 2");
  CHECK(value("max(0, S - 4)", {{"S", 1}}) == 0);
}

TEST_CASE("size: signs bind more tightly than products, as in Python") {
  CHECK(value("-7 // 2", {}) == -4);
  CHECK(value("7 - 2*3 // 4 % 3", {}) == 6);
  CHECK(value("2 * -S", {{"S", 3}}) == -6);
}

TEST_CASE("size: texts that are none are refused with their column") {
  CHECK(fault("") == "size '': expected a number, a symbol or '(' at column 1, found the end");
  CHECK(fault("S +") ==
        "size 'S +': expected a number, a symbol or '(' at column 4, found the end");
  CHECK(fault("S T") == "size 'S T': expected an operator at column 3, found 'T'");
  CHECK(fault("2S") == "size '2S': expected an operator at column 2, found 'S'");
  CHECK(fault("(S") == "size '(S': expected ')' at column 3, found the end");
  CHECK(fault("min(S;T)") == "size 'min(S;T)': expected ',' or ')' at column 6, found ';'");
  CHECK(fault("S // 0") == "size 'S // 0': expected a positive integer as divisor at column 6");
  CHECK(fault("S % -2") == "size 'S % -2': expected a positive integer as divisor at column 5");
  CHECK(fault("S // T") == "size 'S // T': expected a positive integer as divisor at column 6");
  CHECK(fault("S / 2") == "size 'S / 2': expected an operator at column 3, found '/'");
  CHECK(fault("S ** 2") == "size 'S ** 2': '**' at column 3 is no operator");
  CHECK(fault("007") == "size '007': '007' begins with 0");
  CHECK(fault("inf") == "size 'inf': 'inf' is no name for a size");
  CHECK(fault(".5") == "size '.5': '.5' is no name for a size");
  CHECK(fault("\x1b[m") == "size '?[m': expected a number, a symbol or '(' at column 1, found '?'");
}

TEST_CASE("size: what does not fit is refused, not wrapped") {
  CHECK(fault("9223372036854775808") ==
        "size '9223372036854775808': '9223372036854775808' does not fit in 64 bits");
  CHECK(fault("9223372036854775807 + 1") ==
        "size '9223372036854775807 + 1': a number does not fit in 63 bits");
  // The least int64 has no magnitude.
  CHECK(fault("-9223372036854775807 - 1") ==
        "size '-9223372036854775807 - 1': a number does not fit in 63 bits");
  CHECK(fault("4294967296*4294967296*S") ==
        "size '4294967296*4294967296*S': a number does not fit in 63 bits");
  CHECK_THROWS_AS(SizeExpression(std::numeric_limits<std::int64_t>::min()), Error);
  CHECK(value("2*S", {{"S", kLargest / 2}}) == kLargest - 1);
  CHECK_THROWS_AS(value("2*S", {{"S", kLargest / 2 + 1}}), Error);
  CHECK_THROWS_AS(value("S + 1", {{"S", kLargest}}), Error);
  CHECK_THROWS_AS(value("S", {}), Error);
}

TEST_CASE("size: nesting and length are bounded, and what is written is read again") {
  CHECK(fault(std::string(100, '(') + "S" + std::string(100, ')'))
            .ends_with("is nested more than 64 deep"));
  CHECK(fault(std::string(100000, '-') + "S").ends_with("expected at most 65536"));
  CHECK(value(std::string(60000, '-') + "S", {{"S", 3}}) == 3);
  std::string deep = "S";
  for (int i = 0; i < SizeExpression::kDeepest; ++i) deep = "min(" + deep + " // 3 + 1, T)";
  CHECK(fault(deep).ends_with("are nested more than 16 deep"));
  SizeExpression sum;
  for (std::size_t i = 0; i < SizeExpression::kMostLeaves; ++i) {
    sum = sum + SizeExpression::symbol("s" + std::to_string(i));
  }
  CHECK(SizeExpression::parse(sum.text()) == sum);
  CHECK_THROWS_AS(sum + SizeExpression::symbol("t"), Error);
  CHECK_THROWS_AS(sum * sum, Error);
  SizeExpression deepest = SizeExpression::symbol("S");
  for (int i = 0; i < SizeExpression::kDeepest / 2; ++i) {
    deepest = (deepest * deepest.floor_divide(1)).modulo(1000) - 7;
    if (i > 1) break;
  }
  CHECK(SizeExpression::parse(deepest.text()) == deepest);
}

TEST_CASE("size: names that mean something else are no symbols") {
  CHECK(is_size_symbol("S"));
  CHECK(is_size_symbol("_s.1"));
  CHECK(is_size_symbol("minimum"));
  CHECK(is_size_symbol(std::string(SizeExpression::kMostName, 'x')));
  CHECK(!is_size_symbol(std::string(SizeExpression::kMostName + 1, 'x')));
  for (const char* name : {"", "1a", ".a", "a-b", "a b", "min", "MAX", "Inf", "Infinity", "NaN",
                           "None", "true", "False", "*", "a\xc3\xa4"}) {
    INFO(name);
    CHECK(!is_size_symbol(name));
  }
}

TEST_CASE("size: symbols are put in, listed and solved for") {
  const SizeExpression size = SizeExpression::parse("(S + T) // 2 + 3*P");
  CHECK(size.symbols() == std::set<std::string>{"P", "S", "T"});
  CHECK(size.substitute({{"T", SizeExpression::parse("S")}}).text() == "3*P + S");
  CHECK(size.substitute({{"S", 1}, {"T", 4}, {"P", 2}}).constant() == 8);
  CHECK(size.substitute({}) == size);
  CHECK(size.linear_factor("P") == 3);
  CHECK(size.linear_factor("S") == 0);
  CHECK(size.linear_factor("Q") == 0);
  CHECK(SizeExpression::parse("P*S + P").linear_factor("P") == 0);
}

TEST_CASE("size: bounds hold, and infinite ends stay infinite") {
  const SizeRanges ranges{{"S", {1, 512}}, {"T", {0, kLargest}}, {"U", {-3, 2}}};
  const auto bounds = [&](const std::string& text) {
    return SizeExpression::parse(text).bounds(ranges);
  };
  CHECK(bounds("2*S + 1") == SizeRange{3, 1025});
  CHECK(bounds("5 - S") == SizeRange{-507, 4});
  CHECK(bounds("(S + 1) // 2") == SizeRange{1, 256});
  CHECK(bounds("U // 2") == SizeRange{-2, 1});
  CHECK(bounds("S % 1000") == SizeRange{1, 512});
  CHECK(bounds("S % 8") == SizeRange{0, 7});
  CHECK(bounds("min(S, 7)") == SizeRange{1, 7});
  CHECK(bounds("max(S, 7)") == SizeRange{7, 512});
  CHECK(bounds("U*S") == SizeRange{-1536, 1024});
  CHECK(bounds("T + 1") == SizeRange{1, kLargest});
  CHECK(bounds("T - 5").max == kLargest);
  CHECK(bounds("-T") == SizeRange{std::numeric_limits<std::int64_t>::min(), 0});
  CHECK(bounds("T*T") == SizeRange{0, kLargest});
  CHECK(bounds("unknown") == SizeRange{});
  CHECK(bounds("0*unknown") == SizeRange{0, 0});
}

TEST_CASE("size: random expressions keep their values in every form") {
  const SizeBindings values{{"A", 5}, {"B", 12}, {"C", -3}};
  const SizeRanges ranges{{"A", {4, 6}}, {"B", {0, 20}}, {"C", {-3, -3}}};
  int drawn_count = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Drawn drawn;
    try {
      drawn = Draw(seed, values).expression(4);
    } catch (const Error&) {
      continue;  // too many mentions of symbols
    }
    ++drawn_count;
    const SizeExpression& size = drawn.expression;
    INFO("seed " << seed << ": " << size.text());
    CHECK(size.evaluate(values) == drawn.value);
    const SizeExpression again = SizeExpression::parse(size.text());
    CHECK(again == size);
    CHECK(again.text() == size.text());
    const SizeRange bounds = size.bounds(ranges);
    CHECK(bounds.min <= drawn.value);
    CHECK(drawn.value <= bounds.max);
    CHECK(size.substitute({{"A", 5}, {"B", 12}}).evaluate({{"C", -3}}) == drawn.value);
  }
  CHECK(drawn_count > 3000);
}
