// SPDX-License-Identifier: Apache-2.0
// npu.fusion as a document has it, read into typed fields and written back.
//
// The section of a long chain is half of its document, so reading moves values out of the JSON and
// leaves their keys behind, to which writing returns them: nothing is copied, and keys keep the
// order in which they were read. O(size of the section).
#include "ir/fusion_section.hpp"

#include <utility>

#include "support/json_fields.hpp"

namespace npu {
namespace {

// In the place of a value that a typed field holds. No parser makes one.
Json taken() { return Json(Json::value_t::discarded); }

void take_field(Json& value, std::optional<std::int64_t>& field) {
  field = json_integer(&value);
  if (field) value = taken();
}

void take_field(Json& value, std::optional<std::string>& field) {
  auto* text = value.get_ptr<std::string*>();
  if (text == nullptr) return;
  field = std::move(*text);
  value = taken();
}

// Names: a list that holds anything else loses it.
void take_field(Json& value, std::optional<std::vector<std::string>>& field) {
  if (!value.is_array()) return;
  std::vector<std::string>& names = field.emplace();
  names.reserve(value.size());
  for (Json& element : value) {
    if (auto* name = element.get_ptr<std::string*>()) names.push_back(std::move(*name));
  }
  value = taken();
}

Json field_json(std::int64_t value) { return value; }
Json field_json(std::string&& text) { return std::move(text); }
Json field_json(std::vector<std::string>&& names) {
  Json list = Json::array();
  auto& elements = list.get_ref<Json::array_t&>();
  elements.reserve(names.size());
  for (std::string& name : names) elements.emplace_back(std::move(name));
  return list;
}

// Calls visit(key, field) for the fields of an entry, in the order in which new ones are written.
template <typename Visit>
void for_each_field(FusionEntry& entry, const Visit& visit) {
  visit("id", entry.id);
  visit("pattern", entry.pattern);
  visit("device", entry.device);
  visit("nodes", entry.nodes);
  visit("inputs", entry.inputs);
  visit("outputs", entry.outputs);
  visit("flops", entry.flops);
  visit("bytes", entry.bytes);
  visit("on_chip_bytes", entry.on_chip_bytes);
}

FusionEntry take_entry(Json&& json) {
  FusionEntry entry;
  entry.json = std::move(json);
  if (!entry.json.is_object()) return entry;
  for_each_field(entry, [&](std::string_view key, auto& field) {
    if (Json* value = find_member(entry.json, key)) take_field(*value, field);
  });
  return entry;
}

Json entry_json(FusionEntry&& entry) {
  if (!entry.json.is_object()) return std::move(entry.json);
  for_each_field(entry, [&](std::string_view key, auto& field) {
    Json* place = find_member(entry.json, key);
    if (field && place != nullptr) {
      *place = field_json(std::move(*field));
    } else if (field) {
      entry.json.get_ref<Json::object_t&>().emplace_back(key, field_json(std::move(*field)));
    } else if (place != nullptr && place->is_discarded()) {
      entry.json.erase(std::string(key));
    }
  });
  return std::move(entry.json);
}

}  // namespace

std::optional<FusionSection> FusionSection::take(Graph& graph) {
  Json* npu = find_member(graph.document(), "npu");
  Json* section = npu == nullptr ? nullptr : find_member(*npu, "fusion");
  Json* groups = section == nullptr ? nullptr : find_member(*section, "groups");
  if (groups == nullptr || !groups->is_array()) return std::nullopt;
  FusionSection result;
  result.groups.reserve(groups->size());
  for (Json& entry : *groups) result.groups.push_back(take_entry(std::move(entry)));
  *groups = taken();
  result.json = std::exchange(*section, Json::object());
  return result;
}

void FusionSection::store(Graph& graph, FusionSection&& section) {
  graph.set_npu_member("fusion", to_json(std::move(section)));
}

Json FusionSection::to_json(FusionSection&& section) {
  Json groups = Json::array();
  auto& list = groups.get_ref<Json::array_t&>();
  list.reserve(section.groups.size());
  for (FusionEntry& entry : section.groups) list.push_back(entry_json(std::move(entry)));
  section.json["groups"] = std::move(groups);
  return std::move(section.json);
}

std::unordered_map<std::int64_t, std::string_view> patterns_by_group(const Graph& graph) {
  std::unordered_map<std::int64_t, std::string_view> patterns;
  const Json* fusion = graph.npu_member("fusion");
  const Json* groups = fusion == nullptr ? nullptr : member_list(*fusion, "groups");
  if (groups == nullptr) return patterns;
  patterns.reserve(groups->size());
  for (const Json& group : *groups) {
    const auto id = member_integer(group, "id");
    const std::string* pattern = member_text(group, "pattern");
    if (id && pattern != nullptr) patterns.emplace(*id, *pattern);
  }
  return patterns;
}

}  // namespace npu
