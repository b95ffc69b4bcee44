// SPDX-License-Identifier: Apache-2.0
#pragma once

// Objects of a document's lists as structs with typed fields, of which there may be as many as the
// graph has nodes: reading moves values out of the JSON and leaves their keys behind, to which
// writing returns them. So nothing is copied, and keys keep the order in which they were read.
//
// An entry is a struct with optional fields and a member `Json json`, and has a function
// for_each_field(entry, visit) that calls visit(key, field) in the order in which new ones are
// written.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/support/json.hpp"
#include "support/json_fields.hpp"

namespace npu {

/// In the place of a value that a typed field holds. No parser makes one.
inline Json taken_json() { return Json(Json::value_t::discarded); }

inline void take_field(Json& value, std::optional<std::int64_t>& field) {
  field = json_integer(&value);
  if (field) value = taken_json();
}

inline void take_field(Json& value, std::optional<std::string>& field) {
  auto* text = value.get_ptr<std::string*>();
  if (text == nullptr) return;
  field = std::move(*text);
  value = taken_json();
}

/// Names: a list that holds anything else loses it.
inline void take_field(Json& value, std::optional<std::vector<std::string>>& field) {
  if (!value.is_array()) return;
  std::vector<std::string>& names = field.emplace();
  names.reserve(value.size());
  for (Json& element : value) {
    if (auto* name = element.get_ptr<std::string*>()) names.push_back(std::move(*name));
  }
  value = taken_json();
}

inline Json field_json(std::int64_t value) { return value; }
inline Json field_json(std::string&& text) { return std::move(text); }
inline Json field_json(std::vector<std::string>&& names) {
  Json list = Json::array();
  auto& elements = list.get_ref<Json::array_t&>();
  elements.reserve(names.size());
  for (std::string& name : names) elements.emplace_back(std::move(name));
  return list;
}

/// A value of another type than its field stays in the entry's `json`.
template <typename Entry>
Entry take_entry(Json&& json) {
  Entry entry;
  entry.json = std::move(json);
  if (!entry.json.is_object()) return entry;
  for_each_field(entry, [&](std::string_view key, auto& field) {
    if (Json* value = find_member(entry.json, key)) take_field(*value, field);
  });
  return entry;
}

template <typename Entry>
Json entry_json(Entry&& entry) {
  if (!entry.json.is_object()) return std::move(entry.json);
  auto& members = entry.json.template get_ref<Json::object_t&>();
  if (members.empty()) {
    std::size_t count = 0;
    for_each_field(entry, [&](std::string_view, auto& field) { count += field ? 1 : 0; });
    members.reserve(count);
  }
  for_each_field(entry, [&](std::string_view key, auto& field) {
    Json* place = find_member(entry.json, key);
    if (field && place != nullptr) {
      *place = field_json(std::move(*field));
    } else if (field) {
      append_member(entry.json, key, field_json(std::move(*field)));
    } else if (place != nullptr && place->is_discarded()) {
      entry.json.erase(std::string(key));
    }
  });
  return std::move(entry.json);
}

}  // namespace npu
