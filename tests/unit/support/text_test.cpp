// SPDX-License-Identifier: Apache-2.0
// Text for people, and the format of errors and diagnostics.
#include "npu/support/text.hpp"

#include "catch.hpp"
#include "npu/support/checked.hpp"
#include "npu/support/error.hpp"

using namespace npu;

TEST_CASE("text: bytes and flops have decimal units and three digits") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(512) == "512 B");
  CHECK(bytes_text(999) == "999 B");
  CHECK(bytes_text(999.5) == "1.00 kB");
  CHECK(bytes_text(1000) == "1.00 kB");
  CHECK(bytes_text(1234) == "1.23 kB");
  CHECK(bytes_text(9994) == "9.99 kB");
  CHECK(bytes_text(9996) == "10.0 kB");
  CHECK(bytes_text(12345) == "12.3 kB");
  CHECK(bytes_text(99960) == "100 kB");
  CHECK(bytes_text(123456) == "123 kB");
  CHECK(bytes_text(999600) == "1.00 MB");
  CHECK(bytes_text(4.01e6) == "4.01 MB");
  CHECK(bytes_text(2.5e18) == "2.50 EB");
  CHECK(bytes_text(1e22) == "10000 EB");  // no larger unit
  CHECK(flops_text(1.82e9) == "1.82 GFLOP");
  CHECK(flops_text(0) == "0 FLOP");
}

TEST_CASE("text: a fixed number of decimals") {
  CHECK(fixed_text(1.25, 0) == "1");
  CHECK(fixed_text(2.0, 3) == "2.000");
  CHECK(fixed_text(-0.125, 2) == "-0.12");
  CHECK(fixed_text(1e300, 1).size() == 63);  // cut, not overflowed
}

TEST_CASE("text: tables line up, right where the head says so") {
  CHECK(table_text({}).empty());
  CHECK(table_text({{"name"}}) == "name\n");
  CHECK(table_text({{"name", ">count"}, {"a", "5"}, {"longer", "12345678"}}) ==
        "name       count\n"
        "a              5\n"
        "longer  12345678\n");
  // Rows may be short; spaces at the end of a line are cut.
  CHECK(table_text({{"a", "b", "c"}, {"1"}, {"1", "22", ""}}) == "a  b   c\n1\n1  22\n");
  // A letter of two bytes is one column.
  CHECK(table_text({{"x", "y"}, {"\u00e9", "1"}, {"ab", "2"}}) == "x   y\n\u00e9   1\nab  2\n");
}

TEST_CASE("text: the nearest word, or none") {
  const std::vector<std::string> words{"contiguous", "convex", "mincut"};
  CHECK(nearest_word("convx", words) == "convex");
  CHECK(nearest_word("convex", words) == "convex");
  CHECK(nearest_word("contigous", words) == "contiguous");
  CHECK(nearest_word("something", words).empty());
  CHECK(nearest_word("", words).empty());
  CHECK(nearest_word("convex", {}).empty());
  CHECK(nearest_word("ab", {"cd", "abc"}) == "abc");        // distances 2 and 1
  CHECK(nearest_word("abcd", {"abxy", "abzw"}) == "abxy");  // the first of equals
}

TEST_CASE("errors: file, line, column and pointer as far as they are known") {
  CHECK(std::string(Error(ErrorCode::kIo, "text").what()) == "error: text");
  CHECK(std::string(Error(ErrorCode::kIo, "text", {.file = "f"}).what()) == "f: error: text");
  CHECK(std::string(Error(ErrorCode::kParse, "text", {.file = "f", .line = 3}).what()) ==
        "f:3: error: text");
  CHECK(
      std::string(Error(ErrorCode::kParse, "text", {.file = "f", .line = 3, .column = 7}).what()) ==
      "f:3:7: error: text");
  const Error error(ErrorCode::kInvalidGraph, "text", {.file = "f", .pointer = "/nodes/3"});
  CHECK(std::string(error.what()) == "f: /nodes/3: error: text");
  CHECK(error.message() == "text");
  CHECK(error.code() == ErrorCode::kInvalidGraph);
  CHECK(std::string(Error(ErrorCode::kIo, "text", {.line = 3}).what()) ==
        "error: text");  // of no file
}

TEST_CASE("diagnostics: are kept in order, and only errors count as errors") {
  Diagnostics diagnostics;
  CHECK_FALSE(diagnostics.has_errors());
  diagnostics.warning({.file = "f"}, "w");
  diagnostics.note({}, "n");
  CHECK_FALSE(diagnostics.has_errors());
  diagnostics.error({.pointer = "/p"}, "e");
  CHECK(diagnostics.has_errors());
  CHECK(diagnostics.error_count() == 1);
  REQUIRE(diagnostics.entries().size() == 3);
  CHECK(format_diagnostic(diagnostics.entries()[0]) == "f: warning: w");
  CHECK(format_diagnostic(diagnostics.entries()[1]) == "note: n");
  CHECK(format_diagnostic(diagnostics.entries()[2]) == "/p: error: e");
}

TEST_CASE("checked: products that do not fit are nothing") {
  CHECK(checked_multiply(3, 4) == 12);
  CHECK(checked_multiply(INT64_MAX, 1) == INT64_MAX);
  CHECK_FALSE(checked_multiply(INT64_MAX, 2).has_value());
  CHECK_FALSE(checked_multiply(INT64_MIN, -1).has_value());
  CHECK(checked_element_count({}) == 1);
  CHECK(checked_element_count({2, 3, 4}) == 24);
  CHECK(checked_element_count({0}) == 0);
  CHECK_FALSE(checked_element_count({-1}).has_value());
  CHECK_FALSE(checked_element_count({0, -1}).has_value());
  const std::int64_t big = std::int64_t{1} << 32;
  CHECK_FALSE(checked_element_count({big, big}).has_value());
  CHECK(checked_element_count({big, big / 4}) == std::int64_t{1} << 62);
  CHECK(checked_element_count({big, 0}) == 0);
  CHECK_FALSE(checked_element_count({big, big, 0}).has_value());
}

TEST_CASE("a list of integers has commas between and nothing else") {
  CHECK(npu::integer_list("1,2,-4") == std::vector<std::int64_t>{1, 2, -4});
  CHECK(npu::integer_list("7") == std::vector<std::int64_t>{7});
  for (const char* bad : {"", ",", "1,", ",1", "1;2", "1, 2", "x", "99999999999999999999"}) {
    INFO(bad);
    CHECK(!npu::integer_list(bad));
  }
}

TEST_CASE("text from outside becomes printable UTF-8", "[support][text]") {
  CHECK(printable_text("plain text") == "plain text");
  CHECK(printable_text("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(printable_text("a\nb\x1b[1m\x7f") == "a?b?[1m?");
  CHECK(printable_text("\xff\xc3") == "??");
  CHECK(printable_text("\xc0\xaf") == "??");            // a long form of '/'
  CHECK(printable_text("\xed\xa0\x80") == "???");       // a surrogate
  CHECK(printable_text("\xf4\x90\x80\x80") == "????");  // above U+10FFFF
  CHECK(printable_text("\xe2\x82") == "??");            // cut short
}
