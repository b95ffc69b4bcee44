// SPDX-License-Identifier: Apache-2.0
// A strict front end to two parsers. simdjson reads well-formed documents, in a quarter of the time
// that nlohmann/json needs for 10 MB; text that it refuses is read again by nlohmann/json's SAX
// parser, whose position and wording go into the message. Duplicate keys, numbers that lose digits
// and deep nesting are errors in both. An object of n keys is built in O(n): ordered_json's own
// insertion searches the whole object for every key.
#include "npu/support/json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_set>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/shared_json.hpp"
#include "support/json_dom.hpp"
#include "support/json_fields.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace npu {
namespace {

// Below this many keys a duplicate is found by looking at each; above it, with a hash set.
constexpr std::size_t kLinearSearchLimit = 16;

using Object = Json::object_t;

// Finds duplicate keys of an object; below kLinearSearchLimit keys by linear search.
class KeySet {
 public:
  bool is_duplicate(const Object::Container& members, std::string_view name) {
    if (members.size() < kLinearSearchLimit) {
      return std::any_of(members.begin(), members.end(),
                         [&](const auto& member) { return member.first == name; });
    }
    if (keys_.empty()) {
      for (const auto& member : members) keys_.insert(member.first);
    }
    return !keys_.emplace(name).second;
  }

 private:
  std::unordered_set<std::string> keys_;
};

Object::Container& members_of(Json& object) { return object.get_ref<Object&>(); }

}  // namespace

bool convert_element(const simdjson::dom::element& element, Json& json) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::ARRAY: {
      json = Json::array();
      auto& elements = json.get_ref<Json::array_t&>();
      const simdjson::dom::array array(element);
      elements.reserve(array.size());
      for (const simdjson::dom::element child : array) {
        if (!convert_element(child, elements.emplace_back())) return false;
      }
      return true;
    }
    case element_type::OBJECT: {
      json = Json::object();
      auto& members = members_of(json);
      const simdjson::dom::object object(element);
      members.reserve(object.size());
      KeySet keys;
      for (const simdjson::dom::key_value_pair pair : object) {
        if (keys.is_duplicate(members, pair.key)) return false;
        members.emplace_back(std::string(pair.key), Json());
        if (!convert_element(pair.value, members.back().second)) return false;
      }
      return true;
    }
    case element_type::INT64:
      json = std::int64_t(element);
      // nlohmann/json distinguishes the two, and parses all non-negative integers as unsigned.
      if (json.get<std::int64_t>() >= 0)
        json = static_cast<std::uint64_t>(json.get<std::int64_t>());
      return true;
    case element_type::UINT64:
      json = std::uint64_t(element);
      return true;
    case element_type::DOUBLE:
      json = double(element);
      return true;
    case element_type::STRING:
      json = std::string(std::string_view(element));
      return true;
    case element_type::BOOL:
      json = bool(element);
      return true;
    case element_type::NULL_VALUE:
      return true;
  }
  return false;
}

namespace {

bool parse_fast(std::string_view text, Json& root) {
  if (text.empty()) return false;  // simdjson would copy from a null pointer
  simdjson::dom::parser parser;
  if (parser.allocate(std::max<std::size_t>(text.size(), 1), kMaxJsonDepth) != simdjson::SUCCESS) {
    return false;
  }
  simdjson::dom::element element;
  if (parser.parse(text.data(), text.size()).get(element) != simdjson::SUCCESS) return false;
  return convert_element(element, root);
}

// Numbers that stand for the bare words NaN and Infinity in a text that is parsed, of their length
// and nowhere else in it.
struct StandIns {
  std::string nan;
  std::string infinity;
};

// Builds the document and, where it fails, knows the first byte of the token that is to blame, or
// the byte that cannot go on a token.
class DocumentBuilder {
 public:
  /// `furthest` points at the end of what the parser has read of `text`.
  DocumentBuilder(Json& root, std::string_view text, const char* const& furthest,
                  const StandIns* stand_ins)
      : root_(root), text_(text), furthest_(furthest), stand_ins_(stand_ins) {}

  // Called by the parser; the names are those of nlohmann's SAX interface.
  bool null() { return add(Json(nullptr)); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(Json::number_integer_t value) { return add(Json(value)); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(Json(value)); }
  bool number_float(Json::number_float_t value, const Json::string_t& text) {
    if (text.find_first_of(".eE") == Json::string_t::npos) {
      // The lexer has read the byte after a number, unless the text ends there.
      std::size_t begin = bytes_read() - text.size();
      if (text_.substr(begin, text.size()) != text) --begin;
      return fail("the integer " + text + " does not fit in 64 bits", begin);
    }
    if (stand_ins_ != nullptr) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (text == stand_ins_->nan) return add(Json(std::numeric_limits<double>::quiet_NaN()));
      if (text == stand_ins_->infinity) return add(Json(kInfinity));
      if (text.front() == '-' && text.substr(1) == stand_ins_->infinity) {
        return add(Json(-kInfinity));
      }
    }
    return add(Json(value));
  }
  bool string(Json::string_t& value) { return add(Json(std::move(value))); }
  bool binary(Json::binary_t&) { return fail("binary values are not JSON", 0); }

  bool start_object(std::size_t) { return open(Json(Json::value_t::object)); }
  bool key(Json::string_t& name) {
    Level& level = levels_.back();
    auto& members = members_of(*level.value);
    if (level.keys.is_duplicate(members, name)) {
      return fail("duplicate key '" + name + "'", string_begin(bytes_read() - 1));
    }
    members.emplace_back(std::move(name), Json());
    slot_ = &members.back().second;
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Json(Json::value_t::array)); }
  bool end_array() { return close(); }

  template <typename Exception>
  bool parse_error(std::size_t position, const std::string& token, const Exception& exception) {
    parser_message_ = exception.what();
    // `position` counts the bytes up to the end of the token; `token` is exact for numbers and
    // strings.
    std::size_t length = 1;
    const auto says = [&](std::string_view words) {
      return parser_message_.find(words) != std::string::npos;
    };
    if (says("unexpected number literal") || says("unexpected string literal") ||
        says("out_of_range.406")) {
      length = token.size();
    } else if (says("unexpected true literal") || says("unexpected null literal")) {
      length = 4;
    } else if (says("unexpected false literal")) {
      length = 5;
    }
    offset_ = position < length ? 0 : position - length;
    return false;
  }

  const std::string& own_message() const noexcept { return own_message_; }
  const std::string& parser_message() const noexcept { return parser_message_; }
  std::size_t offset() const noexcept { return offset_; }

 private:
  struct Level {
    Json* value;
    KeySet keys;
  };

  Json* place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *levels_.back().value;
    if (parent.is_array()) {
      auto& elements = parent.get_ref<Json::array_t&>();
      elements.push_back(std::move(value));
      return &elements.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (levels_.size() >= kMaxJsonDepth) {
      return fail("nesting deeper than " + std::to_string(kMaxJsonDepth) + " levels",
                  bytes_read() - 1);
    }
    levels_.push_back({place(std::move(value)), {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }
  std::size_t bytes_read() const { return static_cast<std::size_t>(furthest_ - text_.data()); }
  /// The opening quote of the string whose closing quote is at `end`.
  std::size_t string_begin(std::size_t end) const {
    for (std::size_t i = end; i-- > 0;) {
      if (text_[i] != '"') continue;
      std::size_t escapes = 0;
      while (escapes < i && text_[i - escapes - 1] == '\\') ++escapes;
      if (escapes % 2 == 0) return i;
    }
    return end;
  }
  bool fail(std::string message, std::size_t offset) {
    own_message_ = std::move(message);
    offset_ = offset;
    return false;
  }

  Json& root_;
  std::string_view text_;
  const char* const& furthest_;
  const StandIns* stand_ins_;
  std::vector<Level> levels_;
  Json* slot_ = nullptr;
  std::string own_message_;
  std::string parser_message_;
  std::size_t offset_ = 0;
};

// Iterates over the text and records how far the lexer has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* position, const char** furthest)
      : position_(position), furthest_(furthest) {}
  reference operator*() const { return *position_; }
  CountingIterator& operator++() {
    *furthest_ = ++position_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return position_ == other.position_; }
  bool operator!=(const CountingIterator& other) const { return position_ != other.position_; }

 private:
  const char* position_;
  const char** furthest_;
};

InputLocation locate(std::string_view text, std::size_t offset, const std::string& file) {
  InputLocation location{.file = file, .line = 1, .column = 1};
  for (std::size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++location.line;
      location.column = 1;
    } else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {  // one column per code point
      ++location.column;
    }
  }
  return location;
}

// nlohmann's text without its prefix: "[json.exception.parse_error.101] parse error at line 1,
// column 2: syntax error while parsing object key - unexpected ..." gives what follows " - ".
std::string plain_parser_message(const std::string& message) {
  std::string text = message;
  const std::size_t context = text.find("while parsing ");
  const std::size_t detail = text.find(" - ", context == std::string::npos ? 0 : context);
  if (context != std::string::npos && detail != std::string::npos) {
    const std::string place = text.substr(context, detail - context);
    text = text.substr(detail + 3) + " " + place;
  } else if (const std::size_t colon = text.rfind(": "); colon != std::string::npos) {
    text = text.substr(colon + 2);
  }
  return text;
}

// A bare NaN or Infinity, which Python's json module writes, deserves its own advice.
bool is_non_finite(std::string_view text, std::size_t offset) {
  const std::string_view rest = text.substr(std::min(offset, text.size()));
  return rest.starts_with("NaN") || rest.starts_with("Infinity");
}

// Where the words NaN and Infinity stand as values, with the minus of the latter left to it.
std::vector<std::size_t> bare_words(std::string_view text) {
  constexpr std::string_view kBefore = " \t\r\n,:[";
  constexpr std::string_view kBehind = " \t\r\n,]}";
  const auto is_before = [&](std::size_t place) {
    return place == 0 || kBefore.find(text[place - 1]) != std::string_view::npos;
  };
  std::vector<std::size_t> words;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        in_string = false;
      continue;
    }
    in_string = text[i] == '"';
    const std::string_view rest = text.substr(i);
    const bool is_nan = rest.starts_with("NaN");
    if (!is_nan && !rest.starts_with("Infinity")) continue;
    const std::size_t end = i + (is_nan ? 3 : 8);
    const bool is_negative = !is_nan && i > 0 && text[i - 1] == '-';
    const bool ends = end == text.size() || kBehind.find(text[end]) != std::string_view::npos;
    if (ends && is_before(is_negative ? i - 1 : i)) words.push_back(i);
    i = end - 1;
  }
  return words;
}

// Nothing if the text has all candidates already.
std::optional<StandIns> stand_ins_for(std::string_view text) {
  StandIns result;
  for (int i = 99; i >= 10 && result.nan.empty(); --i) {
    const std::string candidate{static_cast<char>('0' + i / 10), 'e',
                                static_cast<char>('0' + i % 10)};
    if (text.find(candidate) == std::string_view::npos) result.nan = candidate;
  }
  for (int i = 1; i < 100 && result.infinity.empty(); ++i) {
    const std::string candidate = "9.8765" + std::to_string(i / 10) + std::to_string(i % 10);
    if (text.find(candidate) == std::string_view::npos) result.infinity = candidate;
  }
  if (result.nan.empty() || result.infinity.empty()) return std::nullopt;
  return result;
}

Json parse_slowly(std::string_view text, const std::string& file, const StandIns* stand_ins) {
  Json root;
  const char* furthest = text.data();
  DocumentBuilder builder(root, text, furthest, stand_ins);
  const CountingIterator begin(text.data(), &furthest);
  const CountingIterator end(text.data() + text.size(), &furthest);
  if (Json::sax_parse(begin, end, &builder)) {
    // nlohmann/json takes a NUL byte for the end of the input.
    const std::size_t nul = text.find('\0');
    if (nul == std::string_view::npos) return root;
    throw Error(ErrorCode::kParse, "unexpected NUL byte after the document",
                locate(text, nul, file));
  }
  const std::size_t offset = builder.offset();
  std::string message = builder.own_message();
  if (message.empty()) {
    message = plain_parser_message(builder.parser_message());
    if (builder.parser_message().find("out_of_range.406") != std::string::npos) {
      message =
          "a number is too large for a 64-bit float; write it as the string \"inf\" or \"-inf\"";
    } else if (is_non_finite(text, offset)) {
      message =
          "NaN and Infinity are not JSON; write them as the strings \"nan\", \"inf\" or \"-inf\"";
    }
  }
  throw Error(ErrorCode::kParse, message, locate(text, offset, file));
}

// The number that a string stands for.
std::optional<double> non_finite_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text == "inf" || text == "Infinity") {
    return (negative ? -1 : 1) * std::numeric_limits<double>::infinity();
  }
  if (!negative && (text == "nan" || text == "NaN")) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::nullopt;
}

bool is_non_finite_float(const Json& json) {
  return json.is_number_float() && !std::isfinite(json.get<double>());
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  Json root;
  if (parse_fast(text, root)) return root;
  return parse_slowly(text, file, nullptr);
}

Json parse_python_json(std::string_view text, const std::string& file, bool* has_bare) {
  Json root;
  if (parse_fast(text, root)) return root;
  const std::vector<std::size_t> words = bare_words(text);
  const auto stand_ins = words.empty() ? std::nullopt : stand_ins_for(text);
  if (!stand_ins) return parse_slowly(text, file, nullptr);
  if (has_bare != nullptr) *has_bare = true;
  std::string replaced(text);
  for (const std::size_t place : words) {
    const std::string& word = text[place] == 'N' ? stand_ins->nan : stand_ins->infinity;
    replaced.replace(place, word.size(), word);
  }
  return parse_slowly(replaced, file, &*stand_ins);
}

bool has_non_finite(const Json& json) {
  if (json.is_structured()) return std::any_of(json.begin(), json.end(), has_non_finite);
  return is_non_finite_float(json);
}

void set_non_finite_form(Json& json, NonFiniteForm form) {
  if (json.is_structured()) {
    for (Json& element : json) set_non_finite_form(element, form);
  } else if (form == NonFiniteForm::kText && is_non_finite_float(json)) {
    const double value = json.get<double>();
    json = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  } else if (form == NonFiniteForm::kBare && json.is_string()) {
    if (const auto number = non_finite_number(json.get_ref<const std::string&>())) json = *number;
  }
}

const Json* find_member(const Json& json, std::string_view key) noexcept {
  if (!json.is_object()) return nullptr;
  for (const auto& member : json.get_ref<const Object&>()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Json* find_member(Json& json, std::string_view key) noexcept {
  return const_cast<Json*>(find_member(static_cast<const Json&>(json), key));
}

void set_member(Json& object, std::string_view key, Json value) {
  if (Json* known = find_member(object, key)) {
    *known = std::move(value);
    return;
  }
  append_member(object, key, std::move(value));
}

void append_member(Json& object, std::string_view key, Json value) {
  auto& members = object.get_ref<Object&>();
  if (members.size() == members.capacity()) {
    Object larger;
    larger.reserve(std::max<std::size_t>(4, 2 * members.size()));
    for (auto& [name, member] : members) larger.emplace_back(name, std::move(member));
    members = std::move(larger);
  }
  members.emplace_back(std::string(key), std::move(value));
}

std::string_view json_type_name(const Json& json) noexcept {
  switch (json.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "object";
    case Json::value_t::array:
      return "array";
    case Json::value_t::string:
      return "string";
    case Json::value_t::boolean:
      return "boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "integer";
    case Json::value_t::number_float:
      return "float";
    default:
      return "unknown value";
  }
}

const Json& SharedJson::nothing() noexcept {
  static const Json kEmpty = Json::object();
  return kEmpty;
}

std::string pointer_token(std::string_view token) {
  std::string escaped;
  for (const char c : token) {
    if (c == '~') {
      escaped += "~0";
    } else if (c == '/') {
      escaped += "~1";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace npu
