// SPDX-License-Identifier: Apache-2.0
#include "runtime/generate/token_file.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"

namespace npu {
namespace {

using LineIds = std::vector<std::int64_t>;

std::vector<LineIds> lines_of(std::string_view text, std::int64_t vocabulary = 96) {
  TokenReader reader(source_of(text), "t.ids", vocabulary);
  std::vector<LineIds> lines;
  while (const auto line = reader.next()) lines.push_back(line->ids);
  return lines;
}

std::string token_fault(std::string_view text, std::int64_t vocabulary = 96) {
  try {
    lines_of(text, vocabulary);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    return error.what();
  }
  return "no fault";
}

TEST_CASE("a line of ids is a request", "[tokens]") {
  CHECK(lines_of("").empty());
  CHECK(lines_of("0\n") == std::vector<LineIds>{{0}});
  CHECK(lines_of("1 2 3\n95\n") == std::vector<LineIds>{{1, 2, 3}, {95}});
  CHECK(lines_of("  7\t 8 \n") == std::vector<LineIds>{{7, 8}});
  CHECK(lines_of("1 2") == std::vector<LineIds>{{1, 2}});
  CHECK(lines_of("0000000000000000000000000000007") == std::vector<LineIds>{{7}});
}

TEST_CASE("what is no id is refused with its place", "[tokens]") {
  CHECK(token_fault("1 2\n3 -4\n") ==
        "t.ids:2:3: error: expected ids of decimal digits with blanks between, found '-'");
  CHECK(token_fault("1 96\n") ==
        "t.ids:1:3: error: the id is not below the size of the vocabulary, 96");
  CHECK(token_fault("421") ==
        "t.ids:1:1: error: the id is not below the size of the vocabulary, 96");
  CHECK(token_fault("1 9223372036854775808") ==
        "t.ids:1:3: error: the id is not below the size of the vocabulary, 96");
  CHECK(token_fault(std::string(100'000, '9')) ==
        "t.ids:1:1: error: the id is not below the size of the vocabulary, 96");
  CHECK(token_fault("9223372036854775807", std::numeric_limits<std::int64_t>::max()) ==
        "t.ids:1:1: error: the id is not below the size of the vocabulary, 9223372036854775807");
  CHECK(token_fault("1 2\r\n") ==
        "t.ids:1:4: error: expected ids of decimal digits with blanks between, found byte 0x0d");
  CHECK(token_fault({"1 \0 2", 5}) ==
        "t.ids:1:3: error: expected ids of decimal digits with blanks between, found byte 0x00");
  CHECK(token_fault("1\n\n2\n") == "t.ids:2:1: error: the line has no ids");
  CHECK(token_fault("   \n") == "t.ids:1:1: error: the line has no ids");
  CHECK(token_fault("1,2") ==
        "t.ids:1:2: error: expected ids of decimal digits with blanks between, found ','");
  CHECK(token_fault("1e3") ==
        "t.ids:1:2: error: expected ids of decimal digits with blanks between, found 'e'");
  CHECK(token_fault("\xef\xbb\xbf"
                    "1") ==
        "t.ids:1:1: error: expected ids of decimal digits with blanks between, found byte 0xef");
  CHECK(token_fault("0", 0) ==
        "t.ids:1:1: error: the id is not below the size of the vocabulary, 0");
}

TEST_CASE("the largest ids are read without overflow", "[tokens]") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(lines_of("9223372036854775806", kMost) == std::vector<LineIds>{{kMost - 1}});
  CHECK(lines_of("999999 100000", 1'000'000) == std::vector<LineIds>{{999'999, 100'000}});
  CHECK(token_fault("1000000", 1'000'000).find(":1:1:") != std::string::npos);
}

TEST_CASE("a line is there before the stream has ended", "[tokens]") {
  // A source that fails if it is asked for more than the first line.
  int calls = 0;
  TokenReader reader(
      [&](std::span<char> buffer) {
        REQUIRE(++calls <= 2);
        const std::string part = calls == 1 ? "1 2" : "3\n";
        std::copy(part.begin(), part.end(), buffer.begin());
        return part.size();
      },
      "<stdin>", 96);
  const auto line = reader.next();
  REQUIRE(line);
  CHECK(line->ids == LineIds{1, 23});
  CHECK(line->number == 1);
}

TEST_CASE("lines of any length are read through one buffer", "[tokens]") {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i % 96) + " ";
  const auto lines = lines_of(text + "\n" + text);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].size() == 200'000);
  CHECK(lines[0] == lines[1]);
  CHECK(lines[1].back() == 199'999 % 96);
}

}  // namespace
}  // namespace npu
