// SPDX-License-Identifier: Apache-2.0
// Typed access to members of JSON documents, with the place and the found value in every message.
//
// Two ways to read: JsonFields throws at the first fault (bundles, tables, plans), FieldFaults
// collects all of them (targets, patterns, partitions). Nothing here is a template, so that files
// which read documents instantiate nothing of nlohmann/json. O(keys of the object) for each access.
#include "support/json_fields.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "npu/support/json.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

std::string dumped(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

const std::string* json_text(const Json* value) noexcept {
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

std::optional<double> json_double(const Json* value) noexcept {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::optional<std::int64_t> json_integer(const Json* value) noexcept {
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > kMax) return std::nullopt;
  return value->get<std::int64_t>();
}

std::optional<std::uint64_t> json_unsigned(const Json* value) noexcept {
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  // Parsed integers are unsigned; those that a program has set need not be.
  if (!value->is_number_unsigned() && value->get<std::int64_t>() < 0) return std::nullopt;
  return value->get<std::uint64_t>();
}

std::optional<bool> json_flag(const Json* value) noexcept {
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

const Json* json_list(const Json* value) noexcept {
  return value != nullptr && value->is_array() ? value : nullptr;
}

const Json* json_object(const Json* value) noexcept {
  return value != nullptr && value->is_object() ? value : nullptr;
}

const std::string* member_text(const Json& object, std::string_view key) noexcept {
  return json_text(find_member(object, key));
}

std::optional<double> member_double(const Json& object, std::string_view key) noexcept {
  return json_double(find_member(object, key));
}

std::optional<std::int64_t> member_integer(const Json& object, std::string_view key) noexcept {
  return json_integer(find_member(object, key));
}

std::optional<bool> member_flag(const Json& object, std::string_view key) noexcept {
  return json_flag(find_member(object, key));
}

const Json* member_list(const Json& object, std::string_view key) noexcept {
  return json_list(find_member(object, key));
}

const Json* member_object(const Json& object, std::string_view key) noexcept {
  return json_object(find_member(object, key));
}

std::string number_or_type(const Json* value) {
  if (value == nullptr) return "nothing";
  return value->is_number() ? value->dump() : std::string(json_type_name(*value));
}

std::string value_or_type(const Json* value) {
  if (value == nullptr) return "nothing";
  return value->is_structured() ? std::string(json_type_name(*value)) : dumped(*value);
}

std::string spelling_hint(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_word(name, candidates);
  return nearest.empty() ? std::string() : "; did you mean '" + nearest + "'?";
}

std::string unknown_key_text(std::string_view key, const std::vector<std::string>& known) {
  return "unknown key '" + std::string(key) + "'" + spelling_hint(key, known);
}

std::string pointer_below(std::string_view pointer, std::string_view key) {
  return std::string(pointer) + "/" + pointer_token(key);
}

std::string pointer_below(std::string_view pointer, std::size_t index) {
  return std::string(pointer) + "/" + std::to_string(index);
}

JsonFields::JsonFields(const Json& json, const std::string& file, std::string pointer,
                       const FieldStyle& style)
    : json_(&json), file_(&file), pointer_(std::move(pointer)), style_(&style) {
  if (!json.is_object()) {
    refuse({}, "expected an object, found " + std::string(json_type_name(json)));
  }
}

const Json* JsonFields::find(std::string_view key) const noexcept {
  return find_member(*json_, key);
}

void JsonFields::refuse(std::string_view key, std::string text) const {
  throw Error(style_->code, std::move(text),
              {.file = *file_, .pointer = key.empty() ? pointer_ : pointer_below(pointer_, key)});
}

void JsonFields::fail(std::string_view key, std::string_view expected, std::string_view range,
                      const Json* found) const {
  std::string text = "expected " + std::string(expected);
  if (style_->names_key) text += " '" + std::string(key) + "'";
  text += range;
  if (style_->found == FieldStyle::Found::kType) {
    text += ", found " + (found == nullptr ? "nothing" : std::string(json_type_name(*found)));
  } else if (style_->found == FieldStyle::Found::kValue) {
    text += ", found " + value_or_type(found);
  }
  const bool is_text = expected == "a string";
  const bool at_key = found == nullptr ? style_->missing_at_key : !is_text || style_->text_at_key;
  refuse(at_key ? key : std::string_view(), std::move(text));
}

const Json& JsonFields::member(std::string_view key, std::string_view expected,
                               std::string_view range) const {
  if (const Json* value = find(key)) return *value;
  if (style_->missing.empty()) fail(key, expected, range, nullptr);
  std::string text(style_->missing);
  if (const std::size_t place = text.find("{}"); place != std::string::npos) {
    text.replace(place, 2, key);
  }
  refuse(style_->missing_at_key ? key : std::string_view(), std::move(text));
}

std::string JsonFields::text(std::string_view key) const {
  const Json& value = member(key, "a string", {});
  const std::string* text = json_text(&value);
  if (text == nullptr || (text->empty() && !style_->takes_empty_text)) {
    fail(key, "a string", {}, &value);
  }
  return *text;
}

std::string JsonFields::text_or(std::string_view key, std::string otherwise) const {
  return has(key) ? text(key) : std::move(otherwise);
}

bool JsonFields::flag(std::string_view key) const {
  const Json& value = member(key, "true or false", {});
  const auto flag = json_flag(&value);
  if (!flag) fail(key, "true or false", {}, &value);
  return *flag;
}

std::uint64_t JsonFields::unsigned_integer(std::string_view key) const {
  const Json& value = member(key, "a non-negative integer", {});
  const auto number = json_unsigned(&value);
  if (!number) fail(key, "a non-negative integer", {}, &value);
  return *number;
}

std::int64_t JsonFields::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  const std::string range = " in " + std::to_string(min) + ".." + std::to_string(max);
  const Json& value = member(key, "an integer", range);
  const auto number = json_integer(&value);
  if (!number || *number < min || *number > max) fail(key, "an integer", range, &value);
  return *number;
}

double JsonFields::number(std::string_view key, double max) const {
  const Json& value = member(key, "a number", " of at least 0");
  const auto number = json_double(&value);
  if (!number || !(*number >= 0) || !(*number <= max)) {
    fail(key, "a number", " of at least 0", &value);
  }
  return *number;
}

double JsonFields::number_or(std::string_view key, double max, double otherwise) const {
  return has(key) ? number(key, max) : otherwise;
}

const Json& JsonFields::list(std::string_view key) const {
  const Json& value = member(key, "an array", {});
  if (!value.is_array()) fail(key, "an array", {}, &value);
  return value;
}

const Json& JsonFields::object(std::string_view key) const {
  const Json& value = member(key, "an object", {});
  if (!value.is_object()) fail(key, "an object", {}, &value);
  return value;
}

void JsonFields::for_each(std::string_view key,
                          const std::function<void(const JsonFields&)>& read) const {
  const Json& elements = list(key);
  const std::string pointer = pointer_below(pointer_, key);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    read(JsonFields(elements[i], *file_, pointer_below(pointer, i), *style_));
  }
}

void FieldFaults::add(const std::string& pointer, std::string text) {
  diagnostics_.error({.file = file_, .pointer = pointer}, std::move(text));
}

bool FieldFaults::check_object(const Json& json, const std::string& pointer) {
  if (json.is_object()) return true;
  add(pointer, "expected an object, found " + std::string(json_type_name(json)));
  return false;
}

void FieldFaults::check_keys(const Json& object, const std::string& pointer,
                             std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, std::string_view(key)) != known.end()) continue;
    add(pointer_below(pointer, key), unknown_key_text(key, {known.begin(), known.end()}));
  }
}

}  // namespace npu
