// SPDX-License-Identifier: Apache-2.0
// npu.fusion as a document has it, read into typed fields and written back (typed_entry.hpp).
// O(size of the section).
#include "ir/fusion_section.hpp"

#include <utility>

#include "ir/typed_entry.hpp"
#include "support/json_fields.hpp"

namespace npu {

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

std::optional<FusionSection> FusionSection::take(Graph& graph) {
  Json* npu = find_member(graph.document(), "npu");
  Json* section = npu == nullptr ? nullptr : find_member(*npu, "fusion");
  Json* groups = section == nullptr ? nullptr : find_member(*section, "groups");
  if (groups == nullptr || !groups->is_array()) return std::nullopt;
  FusionSection result;
  result.groups.reserve(groups->size());
  for (Json& entry : *groups) result.groups.push_back(take_entry<FusionEntry>(std::move(entry)));
  *groups = taken_json();
  result.json = std::exchange(*section, Json::object());
  return result;
}

void FusionSection::store(Graph& graph, FusionSection&& section) {
  Json groups = Json::array();
  auto& list = groups.get_ref<Json::array_t&>();
  list.reserve(section.groups.size());
  for (FusionEntry& entry : section.groups) list.push_back(entry_json(std::move(entry)));
  set_member(section.json, "groups", std::move(groups));
  graph.set_npu_member("fusion", std::move(section.json));
}

Json FusionSection::group_json(FusionEntry&& entry) { return entry_json(std::move(entry)); }

std::unordered_map<std::int64_t, std::string_view> texts_by_group(const Graph& graph,
                                                                  std::string_view field) {
  std::unordered_map<std::int64_t, std::string_view> texts;
  const Json* fusion = graph.npu_member("fusion");
  const Json* groups = fusion == nullptr ? nullptr : member_list(*fusion, "groups");
  if (groups == nullptr) return texts;
  texts.reserve(groups->size());
  for (const Json& group : *groups) {
    const auto id = member_integer(group, "id");
    const std::string* text = member_text(group, field);
    if (id && text != nullptr) texts.emplace(*id, *text);
  }
  return texts;
}

}  // namespace npu
