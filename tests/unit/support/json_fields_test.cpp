// SPDX-License-Identifier: Apache-2.0
#include "support/json_fields.hpp"

#include <functional>
#include <limits>

#include "catch.hpp"
#include "npu/support/json.hpp"

using namespace npu;

namespace {

const FieldStyle kBare;  // "expected a string, found integer"
const FieldStyle kNamed{.names_key = true,
                        .takes_empty_text = false,
                        .found = FieldStyle::Found::kValue,
                        .missing = {},
                        .missing_at_key = false};

// "POINTER: message" of what `read` throws.
std::string fault_of(const Json& json, const FieldStyle& style,
                     const std::function<void(const JsonFields&)>& read) {
  const std::string file = "doc.json";
  try {
    read(JsonFields(json, file, "/top", style));
  } catch (const Error& error) {
    CHECK(error.location().file == "doc.json");
    return error.location().pointer + ": " + error.message();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("Members of the right type are read") {
  const Json json = {{"text", "abc"}, {"flag", true},   {"count", 7},
                     {"us", 2.5},     {"list", {1, 2}}, {"object", Json::object()},
                     {"empty", ""}};
  const std::string file;
  const JsonFields fields(json, file, "", kBare);
  CHECK(fields.text("text") == "abc");
  CHECK(fields.text("empty").empty());
  CHECK(fields.text_or("none", "other") == "other");
  CHECK(fields.flag("flag"));
  CHECK(fields.unsigned_integer("count") == 7);
  CHECK(fields.integer("count", 7, 7) == 7);
  CHECK(fields.number("us", 3) == 2.5);
  CHECK(fields.number("count", 10) == 7);
  CHECK(fields.number_or("none", 3, 1.25) == 1.25);
  CHECK(fields.list("list").size() == 2);
  CHECK(fields.object("object").empty());
  CHECK(fields.find("none") == nullptr);
}

TEST_CASE("A fault is located at the member and says what was found") {
  const auto text = [](const JsonFields& fields) { fields.text("a"); };
  const auto number = [](const JsonFields& fields) { fields.number("a", 10); };
  const auto integer = [](const JsonFields& fields) { fields.integer("a", 0, 5); };
  CHECK(fault_of({{"a", 1}}, kBare, text) == "/top/a: expected a string, found integer");
  CHECK(fault_of({{"b", 1}}, kBare, text) == "/top/a: is missing");
  CHECK(fault_of({{"a", 1}}, kNamed, text) == "/top/a: expected a string 'a', found 1");
  CHECK(fault_of({{"a", ""}}, kNamed, text) == "/top/a: expected a string 'a', found \"\"");
  CHECK(fault_of({{"b", 1}}, kNamed, text) == "/top: expected a string 'a', found nothing");
  CHECK(fault_of({{"a", -1}}, kNamed, number) ==
        "/top/a: expected a number 'a' of at least 0, found -1");
  CHECK(fault_of({{"a", 11}}, kNamed, number) ==
        "/top/a: expected a number 'a' of at least 0, found 11");
  CHECK(fault_of({{"a", {1}}}, kNamed, integer) ==
        "/top/a: expected an integer 'a' in 0..5, found array");
  CHECK(fault_of({{"a", 6}}, kNamed, integer) ==
        "/top/a: expected an integer 'a' in 0..5, found 6");
  CHECK(fault_of({{"a", 1}}, kBare, [](const JsonFields& fields) { fields.flag("a"); }) ==
        "/top/a: expected true or false, found integer");
  CHECK(fault_of(Json::array(), kBare, text) == "/top: expected an object, found array");
}

TEST_CASE("A missing key may be said in a document's own words") {
  const FieldStyle style{.missing = "the key '{}' is missing", .missing_at_key = false};
  CHECK(fault_of({{"b", 1}}, style, [](const JsonFields& fields) { fields.number("a", 1); }) ==
        "/top: the key 'a' is missing");
}

TEST_CASE("Elements of a list are read in order, each at its place") {
  const Json json = {{"items", {{{"a", "x"}}, {{"a", 2}}, 3}}};
  std::string seen;
  const auto read = [&](const JsonFields& top) {
    top.for_each("items", [&](const JsonFields& item) { seen += item.text("a"); });
  };
  CHECK(fault_of(json, kBare, read) == "/top/items/1/a: expected a string, found integer");
  CHECK(seen == "x");
}

TEST_CASE("Values of unknown type are read without exceptions") {
  CHECK(json_text(nullptr) == nullptr);
  const Json big = std::numeric_limits<std::uint64_t>::max();
  CHECK_FALSE(json_integer(&big));
  CHECK(json_unsigned(&big) == std::numeric_limits<std::uint64_t>::max());
  const Json negative = -1;
  CHECK_FALSE(json_unsigned(&negative));
  CHECK(json_integer(&negative) == -1);
  const Json positive = 5;  // signed in memory, as a program writes it
  CHECK(json_unsigned(&positive) == 5U);
  const Json fraction = 1.0;
  CHECK_FALSE(json_integer(&fraction));
  CHECK(json_double(&positive) == 5.0);
  CHECK_FALSE(json_flag(&positive));
  CHECK(json_list(&positive) == nullptr);
  CHECK(member_text(big, "a") == nullptr);
  const Json object = {{"a", "text"}, {"b", {1}}};
  CHECK(*member_text(object, "a") == "text");
  CHECK(member_list(object, "a") == nullptr);
  CHECK(member_list(object, "b")->size() == 1);
  CHECK_FALSE(member_integer(object, "a"));
}

TEST_CASE("Found values are shown as far as they are short") {
  const Json text = "abc";
  const Json list = {1, 2};
  const Json number = 3.5;
  CHECK(value_or_type(&text) == "\"abc\"");
  CHECK(value_or_type(&list) == "array");
  CHECK(value_or_type(nullptr) == "nothing");
  CHECK(number_or_type(&text) == "string");
  CHECK(number_or_type(&number) == "3.5");
}

TEST_CASE("All unknown keys are faults, with a hint where one is near") {
  const Json json = {{"name", 1}, {"stride", 1}, {"x/y", 1}};
  Diagnostics diagnostics;
  const std::string file = "doc.json";
  FieldFaults faults(file, diagnostics);
  faults.check_keys(json, "/a", {"name", "strides"});
  REQUIRE(diagnostics.entries().size() == 2);
  CHECK(diagnostics.entries()[0].location.pointer == "/a/stride");
  CHECK(diagnostics.entries()[0].text == "unknown key 'stride'; did you mean 'strides'?");
  CHECK(diagnostics.entries()[1].location.pointer == "/a/x~1y");
  CHECK(diagnostics.entries()[1].text == "unknown key 'x/y'");
  CHECK_FALSE(faults.check_object(3, "/b"));
  CHECK(diagnostics.entries()[2].text == "expected an object, found integer");
}
