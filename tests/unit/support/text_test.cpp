// SPDX-License-Identifier: Apache-2.0
// Text for people, and the format of errors and diagnostics.
#include "support/text.hpp"

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "support/checked.hpp"

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
  CHECK(printable_text("\xc0\xaf") == "??");                            // a long form of '/'
  CHECK(printable_text("\xed\xa0\x80") == "???");                       // a surrogate
  CHECK(printable_text("\xf4\x90\x80\x80") == "????");                  // above U+10FFFF
  CHECK(printable_text("\xe2\x82") == "??");                            // cut short
  CHECK(printable_text("\xc2\x9b[31m \xc2\xa0") == "?[31m \xc2\xa0");   // C1, and what follows it
  CHECK(printable_text("\xe2\x80\xae gnp.\xe2\x81\xa6") == "? gnp.?");  // U+202E, U+2066
  CHECK(printable_text("\xe2\x80\xa8\xe2\x80\xa9") == "??");            // U+2028, U+2029
  CHECK(printable_text("\xe2\x80\xa7\xe2\x80\xaf") == "\xe2\x80\xa7\xe2\x80\xaf");  // around them
  CHECK(printable_text("\xef\xbf\xbe\xef\xbf\xbd") == "?\xef\xbf\xbd");  // U+FFFE, U+FFFD
}

TEST_CASE("a long name loses its middle, between characters", "[support][text]") {
  CHECK(short_text(std::string(200, 'a')) == std::string(200, 'a'));
  const std::string name = std::string(300, 'a') + "end";
  // 200 less 40 at the end less the dots, and the 40 at the end.
  CHECK(short_text(name) == std::string(157, 'a') + "..." + std::string(37, 'a') + "end");
  std::string umlauts;
  for (int i = 0; i < 5'000'000; ++i) umlauts += "\xc3\xa4";
  const std::string shown = short_text(umlauts);
  CHECK(shown.size() <= 200);
  CHECK(shown.find('?') == std::string::npos);
  CHECK(short_text("a" + umlauts).find('?') == std::string::npos);
  CHECK(short_text(std::string(1000, '\x80')).size() <= 200);
}

TEST_CASE("what goes to a terminal keeps its lines and nothing else", "[support][text]") {
  CHECK(terminal_text("").empty());
  CHECK(terminal_text("one\n\ntwo  words\n") == "one\n\ntwo  words\n");
  CHECK(terminal_text("\x1b]0;title\a\r\n") == "?]0;title??\n");
  const std::string word(100'000, 'w');
  const std::string line = terminal_text("a '" + word + "' b\nnext");
  CHECK(line.size() < 220);
  CHECK(line.starts_with("a 'www"));
  CHECK(line.ends_with("w' b\nnext"));
  std::string words;
  for (int i = 0; i < 10'000; ++i) words += "word ";
  CHECK(terminal_text(words).size() == 4000);
}

TEST_CASE("the option that was meant", "[support][text]") {
  const std::vector<std::string> options{"target", "threads", "trace",
                                         "output", "dot",     "dot-level"};
  CHECK(nearest_option("tgt", options) == "target");
  CHECK(nearest_option("targets", options) == "target");
  CHECK(nearest_option("tarteg", options) == "target");
  CHECK(nearest_option("outptu", options) == "output");
  CHECK(nearest_option("ouput", options) == "output");
  CHECK(nearest_option("out", options) == "output");
  CHECK(nearest_option("thr", options) == "threads");
  CHECK(nearest_option("dto", options).empty());
  CHECK(nearest_option("bench", options).empty());
  CHECK(nearest_option("", options).empty());
  CHECK(nearest_option(std::string(100'000, 'x'), options).empty());
}
