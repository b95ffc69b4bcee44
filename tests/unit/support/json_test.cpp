// SPDX-License-Identifier: Apache-2.0
// Strictness and positions of the JSON reader.
#include "npu/support/json.hpp"

#include <cmath>
#include <random>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace std::string_literals;

namespace {

// "line:column: message", or "good".
std::string refusal(const std::string& text) {
  try {
    parse_json(text, "f.json");
    return "good";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    CHECK(error.location().file == "f.json");
    CHECK(error.location().pointer.empty());
    return std::to_string(error.location().line) + ":" + std::to_string(error.location().column) +
           ": " + error.message();
  }
}

std::string place(const std::string& text) {
  const std::string message = refusal(text);
  const std::size_t end = message.find(": ");
  return end == std::string::npos ? message : message.substr(0, end);
}

// n keys k0 to k<n-1>, and one more.
std::string object_with(int count, const std::string& last) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += "\"k" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  return text + "\"" + last + "\":0}";
}

std::string nested(std::size_t depth, const std::string& inner) {
  return std::string(depth, '[') + inner + std::string(depth, ']');
}

}  // namespace

TEST_CASE("json: every kind of value") {
  const Json json = parse_json(
      R"({"n": null, "t": true, "f": false, "i": -3, "u": 3, "d": 2.5, "s": "x", "a": [1], "o": {}})",
      "f");
  CHECK(json.dump() ==
        R"({"n":null,"t":true,"f":false,"i":-3,"u":3,"d":2.5,"s":"x","a":[1],"o":{}})");
  CHECK(json["i"].is_number_integer());
  CHECK_FALSE(json["i"].is_number_unsigned());
  CHECK(json["u"].is_number_unsigned());
  CHECK(json["d"].is_number_float());
  CHECK(parse_json("null", "f").is_null());
  CHECK(parse_json(" \t\r\n 3 \n", "f") == 3);
  CHECK(parse_json("\"\"", "f") == "");
  CHECK(parse_json("[]", "f").empty());
}

TEST_CASE("json: keys keep the order in which they were read") {
  CHECK(parse_json(R"({"z":1,"a":2,"m":{"y":1,"b":2}})", "f").dump() ==
        R"({"z":1,"a":2,"m":{"y":1,"b":2}})");
}

TEST_CASE("json: integers of 64 bits are exact, signed and unsigned") {
  const Json json = parse_json(
      "[9223372036854775807, 9223372036854775808, 18446744073709551615, -9223372036854775808, 0, "
      "9007199254740993]",
      "f");
  CHECK(json[0].get<std::uint64_t>() == 9223372036854775807U);
  CHECK(json[1].get<std::uint64_t>() == 9223372036854775808U);
  CHECK(json[2].get<std::uint64_t>() == 18446744073709551615U);
  CHECK(json[3].get<std::int64_t>() == INT64_MIN);
  CHECK(json.dump() ==
        "[9223372036854775807,9223372036854775808,18446744073709551615,-9223372036854775808,0,"
        "9007199254740993]");
}

TEST_CASE("json: integers that do not fit are refused where they stand") {
  CHECK(refusal("[18446744073709551616]") ==
        "1:2: the integer 18446744073709551616 does not fit in 64 bits");
  CHECK(refusal("[-9223372036854775809]") ==
        "1:2: the integer -9223372036854775809 does not fit in 64 bits");
  CHECK(refusal("123456789012345678901234567890") ==
        "1:1: the integer 123456789012345678901234567890 does not fit in 64 bits");
  CHECK(refusal("{\"a\":\n  99999999999999999999}") ==
        "2:3: the integer 99999999999999999999 does not fit in 64 bits");
}

TEST_CASE("json: floats keep their value and their sign") {
  const Json json =
      parse_json("[-0.0, 1.0, 1e-05, 0.1, 5e-324, 1.7976931348623157e308, 1E5, -0e1]", "f");
  CHECK(json.dump() == "[-0.0,1.0,1e-05,0.1,5e-324,1.7976931348623157e+308,100000.0,-0.0]");
  CHECK(std::signbit(json[0].get<double>()));
  for (const Json& value : json) CHECK(value.is_number_float());
}

TEST_CASE("json: numbers that no float holds are refused with advice") {
  const std::string advice =
      "a number is too large for a 64-bit float; write it as the string \"inf\" or \"-inf\"";
  CHECK(refusal("[1e999]") == "1:2: " + advice);
  CHECK(refusal("[0, -1e999, 1]") == "1:5: " + advice);
  CHECK(refusal("1e5000") == "1:1: " + advice);
}

TEST_CASE("json: NaN and Infinity are refused with advice, but only where they stand") {
  const std::string advice =
      "NaN and Infinity are not JSON; write them as the strings \"nan\", \"inf\" or \"-inf\"";
  CHECK(refusal("NaN") == "1:1: " + advice);
  CHECK(refusal("[1,\n NaN]") == "2:2: " + advice);
  CHECK(refusal("[Infinity]") == "1:2: " + advice);
  CHECK(refusal("[-Infinity]") == "1:3: " + advice);
  CHECK(refusal("[\"NaN\", \"Infinity\"]") == "good");
  // Another fault close by.
  CHECK(refusal("{\"a\": \"NaN\",}") ==
        "1:13: unexpected '}'; expected string literal while parsing object key");
}

TEST_CASE("json: numbers that are none") {
  for (const char* text :
       {"01", "1.", ".5", "+1", "-", "1e", "1e+", "0x10", "--1", "1_000", "nan", "inf", "- 1"}) {
    CAPTURE(text);
    CHECK(refusal(text) != "good");
    CHECK(refusal("[" + std::string(text) + "]") != "good");
  }
}

TEST_CASE("json: duplicate keys in small objects") {
  CHECK(refusal(R"({"a":1,"a":2})") == "1:8: duplicate key 'a'");
  CHECK(refusal(R"({"a":1,"b":2,"a":1})") == "1:14: duplicate key 'a'");
  CHECK(refusal("{\"o\": {\"b\": 1,\n       \"b\": 2}}") == "2:8: duplicate key 'b'");
  CHECK(refusal(R"([{"":1,"":2}])") == "1:8: duplicate key ''");
  // An escape is the same key as the letter.
  CHECK(refusal(R"({"a":1,"\u0061":2})") == "1:8: duplicate key 'a'");
  CHECK(refusal(R"({"\"":1,"\"":2})") == "1:9: duplicate key '\"'");
  CHECK(refusal(R"({"\\":1,"\\":2})") == "1:9: duplicate key '\\'");
  // The same key elsewhere is none.
  CHECK(refusal(R"({"a":{"a":[{"a":1},{"a":1}]}})") == "good");
}

TEST_CASE("json: duplicate keys around and above the limit of linear search") {
  for (int count : {14, 15, 16, 17, 18, 100, 5000}) {
    CAPTURE(count);
    CHECK(refusal(object_with(count, "other")) == "good");
    for (int which : {0, count / 2, count - 1}) {
      const std::string key = "k" + std::to_string(which);
      CHECK(refusal(object_with(count, key)).ends_with(": duplicate key '" + key + "'"));
    }
    // After a long object ends, its keys are free again.
    CHECK(refusal("[" + object_with(count, "x") + "," + object_with(count, "x") + "]") == "good");
    CHECK(refusal(R"({"x":)" + object_with(count, "x") + R"(,"k1":1})") == "good");
  }
}

TEST_CASE("json: nesting of 200 levels is read, of 201 refused") {
  CHECK(parse_json(nested(200, ""), "f").dump() == nested(200, ""));
  CHECK(refusal(nested(201, "")) == "1:201: nesting deeper than 200 levels");
  CHECK(refusal(nested(199, "{\"a\":1}")) == "good");
  CHECK(refusal(nested(199, "{\"a\":[]}")) ==
        "1:205: nesting deeper than 200 levels");  // 199 + 1 + 5
  CHECK(refusal(std::string(100000, '[')) == "1:201: nesting deeper than 200 levels");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK(place(objects) == "1:1001");  // 200 times 5 bytes before
}

TEST_CASE("json: both parsers give the same document") {
  // At the largest depth or behind a fault the second parser does the work; what it makes of a
  // value must not depend on that. nlohmann/json alone is the reference.
  const std::string value =
      R"({"z":[0,-0,1,-1,9223372036854775807,9223372036854775808,18446744073709551615,-9223372036854775808],)"
      R"("d":[1.0,-0.0,1e-05,0.1,5e-324,1e308,3.141592653589793,2.2250738585072014e-308],)"
      R"("s":["","\u0000","\u00e9","\ud83d\ude00","\"\\\/\b\f\n\r\t","plain"],)"
      R"("k":{"b":null,"a":true,"c":false},"e":[[],{},[[]],{"":{}}]})";
  for (const std::size_t depth : {0U, 1U, 150U, 195U, 196U}) {
    CAPTURE(depth);
    const std::string text = nested(depth, value);
    const Json json = parse_json(text, "f");
    CHECK(json.dump() == Json::parse(text).dump());
  }
}

TEST_CASE("json: random documents are read as by the reference parser") {
  std::mt19937 random(41);
  const auto make = [&](const auto& self, int depth) -> Json {
    switch (random() % (depth > 3 ? 6 : 8)) {
      case 0:
        return nullptr;
      case 1:
        return random() % 2 == 0;
      case 2:
        return static_cast<std::int64_t>(random() >> 1) * static_cast<std::int64_t>(random() >> 1) *
               (random() % 2 == 0 ? 1 : -1);
      case 3:
        return static_cast<std::uint64_t>(random()) << (random() % 33);
      case 4:
        return std::ldexp(static_cast<double>(random()) - 2147483648.0,
                          static_cast<int>(random() % 2000) - 1000);
      case 5: {
        std::string text;
        for (std::size_t i = random() % 8; i > 0; --i) text += static_cast<char>(random() % 128);
        return text;
      }
      case 6: {
        Json array = Json::array();
        for (std::size_t i = random() % 5; i > 0; --i) array.push_back(self(self, depth + 1));
        return array;
      }
      default: {
        Json object = Json::object();
        for (std::size_t i = random() % 25; i > 0; --i)
          object["k" + std::to_string(random() % 100)] = self(self, depth + 1);
        return object;
      }
    }
  };
  for (int round = 0; round < 300; ++round) {
    const std::string text = make(make, 0).dump();
    CAPTURE(text);
    CHECK(parse_json(text, "f").dump() == text);
  }
}

TEST_CASE("json: bytes after the document are refused where they begin") {
  CHECK(place("{} x") == "1:4");
  CHECK(place("[1] [2]") == "1:5");
  CHECK(place("[1,2]]") == "1:6");
  CHECK(place("1\n2") == "2:1");
  CHECK(place("{}\n{}") == "2:1");
  CHECK(refusal("[1]\0"s) == "1:4: unexpected NUL byte after the document");
  CHECK(refusal("[1]\n\0[2]"s) == "2:1: unexpected NUL byte after the document");
  CHECK(refusal("[1]\n \t\r\n") == "good");
}

TEST_CASE("json: an input that ends early is refused at its end") {
  CHECK(refusal("").starts_with("1:1: unexpected end of input"));
  CHECK(refusal(" ").starts_with("1:2: unexpected end of input"));
  CHECK(refusal("\n\n").starts_with("3:1: unexpected end of input"));
  CHECK(refusal("[1, 2").starts_with("1:6: unexpected end of input"));
  CHECK(refusal("{\"a\"").starts_with("1:5: unexpected end of input"));
  CHECK(place("[\"abc") == "1:6");
  CHECK(place("\0"s) == "1:1");
  // Every beginning of a document is refused, and the whole is not.
  const std::string text = R"({"a": [1, -2.5e3, true, null, "x\u00e9\n"], "b": {"c": {}}})";
  CHECK(refusal(text) == "good");
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK(refusal(text.substr(0, size)) != "good");
  }
}

TEST_CASE("json: line and column of what is wrong") {
  CHECK(refusal("[1 2]") == "1:4: unexpected number literal; expected ']' while parsing array");
  CHECK(refusal("[1 -23.5e1]") ==
        "1:4: unexpected number literal; expected ']' while parsing array");
  CHECK(refusal("{\"a\": 1,}") ==
        "1:9: unexpected '}'; expected string literal while parsing object key");
  CHECK(refusal("{\"a\": 1\n\"bcd\": 2}") ==
        "2:1: unexpected string literal; expected '}' while parsing object");
  CHECK(refusal("{\"a\" true}") ==
        "1:6: unexpected true literal; expected ':' while parsing object separator");
  CHECK(refusal("{\"a\" false}") ==
        "1:6: unexpected false literal; expected ':' while parsing object separator");
  CHECK(refusal("{\"a\" null}") ==
        "1:6: unexpected null literal; expected ':' while parsing object separator");
  CHECK(place("{1:2}") == "1:2");
  CHECK(place("[\n1,\n  tru]") == "3:6");
  CHECK(place("// c\n1") == "1:1");
  CHECK(place("'a'") == "1:1");
  CHECK(place("[1,\n2,\n\n,3]") == "4:1");
  // Columns count characters, not bytes.
  CHECK(place("[\"\u00e4\u00f6\u4e2d\", x]") == "1:9");
}

TEST_CASE("json: strings that are not UTF-8 or not JSON are refused") {
  CHECK(place("[\"\xff\"]") == "1:3");
  for (const std::string bad :
       {"\x80", "\xc3", "\xc3(", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc0\xaf", "\xe2\x82"}) {
    CHECK(refusal("[\"" + bad + "\"]") != "good");
    CHECK(refusal("{\"" + bad + "\": 1}") != "good");
  }
  for (const char* bad :
       {"\\x", "\\u12", "\\ud800", "\\udc00\\ud800", "\\ud800x", "a\nb", "a\tb"}) {
    CAPTURE(bad);
    CHECK(refusal("\"" + std::string(bad) + "\"") != "good");
  }
  CHECK(refusal("\"a\0b\""s) != "good");
  CHECK(parse_json("\"\\ud83d\\ude00\xc3\xa9\"", "f") == "\xf0\x9f\x98\x80\xc3\xa9");
  CHECK(parse_json(R"("\u0000")", "f") == "\0"s);
}

TEST_CASE("json: members are found by name") {
  Json json = parse_json(R"({"a": {"b": null}})", "f");
  REQUIRE(find_member(json, "a") != nullptr);
  CHECK(find_member(json["a"], "b")->is_null());
  CHECK(find_member(json, "b") == nullptr);
  CHECK(find_member(Json::array(), "a") == nullptr);
  CHECK(find_member(Json(3), "a") == nullptr);
  *find_member(json, "a") = 7;
  CHECK(json["a"] == 7);
}

TEST_CASE("json: names of types for messages") {
  CHECK(json_type_name(nullptr) == "null");
  CHECK(json_type_name(Json::object()) == "object");
  CHECK(json_type_name(Json::array()) == "array");
  CHECK(json_type_name("x") == "string");
  CHECK(json_type_name(true) == "boolean");
  CHECK(json_type_name(-1) == "integer");
  CHECK(json_type_name(1U) == "integer");
  CHECK(json_type_name(1.0) == "float");
}

TEST_CASE("json: tokens of pointers are escaped") {
  CHECK(pointer_token("plain") == "plain");
  CHECK(pointer_token("a/b~c") == "a~1b~0c");
  CHECK(pointer_token("~1") == "~01");
  CHECK(pointer_token("") == "");
}

TEST_CASE("json: the bare words of Python's json module are numbers where a reader takes them") {
  bool has_bare = false;
  const std::string text =
      R"({"a": [NaN, Infinity,-Infinity ], "NaN": "Infinity \" NaN", "b": 9e9, "c": 9.876501})";
  const Json json = parse_python_json(text, "f", &has_bare);
  CHECK(has_bare);
  CHECK(std::isnan(json["a"][0].get<double>()));
  CHECK(json["a"][1].get<double>() == std::numeric_limits<double>::infinity());
  CHECK(json["a"][2].get<double>() == -std::numeric_limits<double>::infinity());
  CHECK(json["NaN"] == "Infinity \" NaN");
  CHECK(json["b"] == 9e9);  // no stand-in is taken for what the text has
  CHECK(json["c"] == 9.876501);
  has_bare = false;
  CHECK(parse_python_json("[1, \"NaN\"]", "f", &has_bare) == Json::array({1, "NaN"}));
  CHECK_FALSE(has_bare);
  CHECK(place("[NaN]") == "1:2");
  for (const char* bad :
       {"[1NaN]", "[-NaN]", "[NaN1]", "[Inf]", "[+Infinity]", "NaNNaN", "[NaN}"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_python_json(bad, "f"), Error);
  }
}

TEST_CASE("json: numbers that are not finite change their form") {
  Json json = parse_python_json(R"([NaN, {"a": -Infinity}, "inf", "info", 1])", "f");
  CHECK(has_non_finite(json));
  set_non_finite_form(json, NonFiniteForm::kText);
  CHECK(json == Json::array({"nan", {{"a", "-inf"}}, "inf", "info", 1}));
  CHECK_FALSE(has_non_finite(json));
  set_non_finite_form(json, NonFiniteForm::kBare);
  CHECK(json[1]["a"].get<double>() == -std::numeric_limits<double>::infinity());
  CHECK(json[2].get<double>() == std::numeric_limits<double>::infinity());
  CHECK(json[3] == "info");
}

TEST_CASE("json: setting a member copies no other") {
  Json json = Json::object();
  set_member(json, "list", Json::array({1, 2, 3}));
  const auto* elements = json.find("list")->get_ref<const Json::array_t&>().data();
  for (int i = 0; i < 40; ++i) set_member(json, "k" + std::to_string(i), i);
  CHECK(json.find("list")->get_ref<const Json::array_t&>().data() == elements);
  set_member(json, "k3", "other");
  CHECK(json.size() == 41);
  CHECK(json["k3"] == "other");
  CHECK(json.dump().starts_with(R"({"list":[1,2,3],"k0":0,"k1":1,"k2":2,"k3":"other",)"));
}
