// SPDX-License-Identifier: Apache-2.0
// Parses the signature language of ATen's native_functions.yaml.
//
// Input:  "(Tensor input, Tensor? bias=None, int[2] stride=1, *, ScalarType? dtype=None) ->
// Tensor". Output: a Schema. One pass over the text, O(length). Alias annotations such as (a!) and
// (a -> *) are skipped: ops of the IR are functional. Result types are counted, not kept; a
// Tensor[] counts as one result.
#include "ops/schema.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cstdlib>
#include <utility>

#include "npu/support/error.hpp"

namespace npu {
namespace {

class SchemaParser {
 public:
  SchemaParser(std::string_view op_type, std::string_view text) : op_type_(op_type), text_(text) {}

  Schema parse() {
    Schema schema;
    schema.name = op_type_;
    const std::size_t open = text_.find('(');
    if (open == std::string_view::npos) fail("expected '('");
    position_ = open + 1;
    bool keyword_only = false;
    while (!accept(')')) {
      if (accept('*')) {
        keyword_only = true;
      } else {
        SchemaArgument argument = parse_argument();
        argument.keyword_only = keyword_only;
        schema.arguments.push_back(std::move(argument));
      }
      if (!accept(',') && peek() != ')') fail("expected ',' or ')'");
    }
    schema.result_count = parse_results();
    return schema;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::kParse, fmt::format("schema of {}: {} at character {} of '{}'", op_type_,
                                               what, position_ + 1, text_));
  }

  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  char peek() {
    skip_spaces();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++position_;
    return true;
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  }
  std::string_view word() {
    skip_spaces();
    const std::size_t begin = position_;
    while (position_ < text_.size() && is_word(text_[position_])) ++position_;
    if (position_ == begin) fail("expected a name");
    return text_.substr(begin, position_ - begin);
  }
  void skip_parentheses() {
    int depth = 0;
    do {
      const char c = peek();
      if (c == '\0') fail("expected ')'");
      if (c == '(') ++depth;
      if (c == ')') --depth;
      ++position_;
    } while (depth != 0);
  }

  // The part of a type before [], ? and annotations.
  static ArgumentType base_type(std::string_view name) {
    static constexpr std::pair<std::string_view, ArgumentType> kTypes[] = {
        {"Tensor", ArgumentType::kTensor},       {"int", ArgumentType::kInt},
        {"SymInt", ArgumentType::kInt},          {"float", ArgumentType::kFloat},
        {"bool", ArgumentType::kBool},           {"Scalar", ArgumentType::kScalar},
        {"number", ArgumentType::kScalar},       {"str", ArgumentType::kString},
        {"ScalarType", ArgumentType::kDType},    {"Layout", ArgumentType::kLayout},
        {"Device", ArgumentType::kDevice},       {"MemoryFormat", ArgumentType::kMemoryFormat},
        {"Generator", ArgumentType::kGenerator},
    };
    for (const auto& [text, type] : kTypes) {
      if (text == name) return type;
    }
    return ArgumentType::kOther;
  }
  static ArgumentType list_of(ArgumentType element, bool optional_element) {
    switch (element) {
      case ArgumentType::kTensor:
        return optional_element ? ArgumentType::kOptionalTensorList : ArgumentType::kTensorList;
      case ArgumentType::kInt:
        return ArgumentType::kIntList;
      case ArgumentType::kFloat:
        return ArgumentType::kFloatList;
      case ArgumentType::kBool:
        return ArgumentType::kBoolList;
      case ArgumentType::kScalar:
        return ArgumentType::kScalarList;
      case ArgumentType::kString:
        return ArgumentType::kStringList;
      default:
        return ArgumentType::kOther;
    }
  }

  void parse_type(SchemaArgument& argument) {
    if (peek() == '(') {
      skip_parentheses();  // a tuple type
      argument.type = ArgumentType::kOther;
    } else {
      argument.type = base_type(word());
      // Also the key and value types of Dict(str, int).
      if (peek() == '(') skip_parentheses();
    }
    for (;;) {
      if (accept('?')) {
        argument.optional = true;
      } else if (accept('[')) {
        argument.type = list_of(argument.type, argument.optional);
        argument.optional = false;
        argument.list_size = 0;
        if (peek() != ']') {
          const std::string_view digits = word();
          const auto [end, error] =
              std::from_chars(digits.data(), digits.data() + digits.size(), argument.list_size);
          if (error != std::errc{} || end != digits.data() + digits.size() ||
              argument.list_size <= 0) {
            fail("expected a list size");
          }
        }
        if (!accept(']')) fail("expected ']'");
      } else if (peek() == '(') {
        skip_parentheses();
      } else {
        return;
      }
    }
  }

  Json parse_default(ArgumentType type) {
    if (accept('[')) {
      Json list = Json::array();
      while (!accept(']')) {
        list.push_back(parse_default(type));
        if (!accept(',') && peek() != ']') fail("expected ',' or ']'");
      }
      return list;
    }
    if (peek() == '\'' || peek() == '"') {
      const char quote = text_[position_++];
      std::string content;
      while (position_ < text_.size() && text_[position_] != quote) {
        if (text_[position_] == '\\' && position_ + 1 < text_.size()) ++position_;
        content += text_[position_++];
      }
      if (position_ == text_.size()) fail("expected a closing quote");
      ++position_;
      return Json(std::move(content));
    }
    skip_spaces();
    const std::size_t begin = position_;
    while (position_ < text_.size() &&
           (is_word(text_[position_]) || text_[position_] == '-' || text_[position_] == '+')) {
      ++position_;
    }
    const std::string token(text_.substr(begin, position_ - begin));
    if (token.empty()) fail("expected a default value");
    if (token == "None") return Json();
    if (token == "True") return Json(true);
    if (token == "False") return Json(false);
    // Reductions are ints in calls: at::Reduction::Reduction.
    if (token == "Mean") return Json(1);
    if (token == "Sum") return Json(2);
    if (type == ArgumentType::kDType) {
      if (token == "float") return Json("float32");
      if (token == "long") return Json("int64");
    }
    std::int64_t integer = 0;
    const auto parsed = std::from_chars(token.data(), token.data() + token.size(), integer);
    if (parsed.ec == std::errc{} && parsed.ptr == token.data() + token.size()) {
      // libtorch prints the default of a MemoryFormat or Layout as the enumerator's number, which
      // no document contains.
      if (type == ArgumentType::kMemoryFormat && integer == 0) return Json("contiguous_format");
      if (type == ArgumentType::kLayout && integer == 0) return Json("strided");
      return Json(integer);
    }
    char* end = nullptr;
    const double number = std::strtod(token.c_str(), &end);
    if (end == token.c_str() + token.size() && token.find_first_of("0123456789") != token.npos) {
      return Json(number);
    }
    return Json(token);  // contiguous_format, strided, cpu, inf
  }

  SchemaArgument parse_argument() {
    SchemaArgument argument;
    parse_type(argument);
    argument.name = word();
    if (accept('=')) argument.default_value = parse_default(argument.type);
    return argument;
  }

  std::int32_t parse_results() {
    if (!accept('-') || !accept('>')) fail("expected '->'");
    std::int32_t count = 0;
    if (accept('(')) {
      while (!accept(')')) {
        SchemaArgument result;
        parse_type(result);
        if (is_word(peek())) word();
        ++count;
        if (!accept(',') && peek() != ')') fail("expected ',' or ')'");
      }
    } else {
      SchemaArgument result;
      parse_type(result);
      if (is_word(peek())) word();
      count = 1;
    }
    if (peek() != '\0') fail("unexpected text");
    return count;
  }

  std::string_view op_type_;
  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

Schema parse_schema(std::string_view op_type, std::string_view text) {
  return SchemaParser(op_type, text).parse();
}

}  // namespace npu
