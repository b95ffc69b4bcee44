// SPDX-License-Identifier: Apache-2.0
#include "ir/narrow_sizes.hpp"

#include <string>

#include "catch.hpp"
#include "ir/size_symbols.hpp"
#include "npu/support/error.hpp"

namespace npu {
namespace {

Json document_with(const std::string& symbols) {
  return parse_json(R"({"npu": {"version": 1, "symbols": )" + symbols + "}}", "t.json");
}

/// The range of S after `ranges`, or why not.
std::string narrowed(const std::string& symbols, const std::vector<std::string>& ranges) {
  try {
    std::vector<StatedRange> list;
    for (const std::string& range : ranges) list.push_back(parse_stated_range(range));
    const Json document = narrow_sizes(document_with(symbols), list, "t.json");
    Diagnostics faults;
    const SizeSymbols found =
        SizeSymbols::read(*find_member(*find_member(document, "npu"), "symbols"), "t", faults);
    CHECK_FALSE(faults.has_errors());
    return SizeSymbols::range_text(*found.find("S"));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message();
  }
}

}  // namespace

TEST_CASE("a range and no value is told by its dots") {
  CHECK(is_stated_range("S=1..8"));
  CHECK(is_stated_range("a..b=1..8:2"));
  CHECK_FALSE(is_stated_range("a..b=3"));
  CHECK_FALSE(is_stated_range("S=8"));
  CHECK_FALSE(is_stated_range("S"));
}

TEST_CASE("a stated range makes that of a size smaller, never larger") {
  const std::string open = R"({"S": {"min": 1}})";
  CHECK(narrowed(open, {"S=4..64"}) == "4..64");
  CHECK(narrowed(open, {"S=4..64:8"}) == "4..64, a multiple of 8");
  CHECK(narrowed(R"({"S": {"min": 16, "max": 32, "multiple_of": 4}})", {"S=1..500:6"}) ==
        "16..32, a multiple of 12");
  CHECK(narrowed(R"({"S": {"min": "2*T", "max": "64 - T"}, "T": {"min": 1, "max": 8}})",
                 {"S=4..50"}) == "max(2*T, 4)..min(50, 64 - T)");
  // What depends on it keeps its own range.
  CHECK(narrowed(R"({"S": {"min": 1, "max": 64}, "T": {"min": 0, "max": "64 - S"}})",
                 {"S=1..32", "T=0..16"}) == "1..32");
}

TEST_CASE("ranges without a value and names that are none are refused") {
  const std::string some = R"({"S": {"min": 16, "max": 32, "multiple_of": 4}})";
  CHECK(narrowed(some, {"S=33..40"}) ==
        "--bind S=33..40: t.json takes 16..32, a multiple of 4 of it");
  CHECK(narrowed(some, {"S=17..19"}) ==
        "--bind S=17..19: t.json takes 16..32, a multiple of 4 of it");
  CHECK(narrowed(some, {"S=16..24:9223372036854775807"}) ==
        "--bind S=16..24:9223372036854775807: no value from 16 to 24 is a multiple of "
        "9223372036854775807");
  CHECK(narrowed(some, {"S=16..9223372036854775807:9223372036854775807"}) ==
        "--bind S=16..9223372036854775807:9223372036854775807: no value of it is a multiple of 4, "
        "too");
  CHECK(narrowed(some, {"T=1..2"}) == "--bind T=1..2: t.json has no such size; its sizes are S");
  CHECK(narrowed(some, {"S=16..32", "S=16..20"}) ==
        "--bind S=16..20: the size has a range already");
  for (const char* text : {"=1..2", "S=..", "S=1..", "S=..4", "S=-1..4", "S=1...4",
                           "S=1..4:", "S=1..4:0", "S=1..4:2:2", "S=1..99999999999999999999"}) {
    INFO(text);
    CHECK(narrowed(some, {text}).find("expected NAME=MIN..MAX") != std::string::npos);
  }
}

}  // namespace npu
