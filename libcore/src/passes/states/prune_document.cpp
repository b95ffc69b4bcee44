// SPDX-License-Identifier: Apache-2.0
// Removes what a rewritten document has no use for, from its outputs backwards.
#include "passes/states/prune_document.hpp"

#include <set>
#include <string>

#include "support/json_fields.hpp"

namespace npu::states {
namespace {

/// Keeps the elements of a list that `is_kept` holds for.
template <typename IsKept>
void filter(Json* list, const IsKept& is_kept) {
  if (list == nullptr) return;
  Json kept = Json::array();
  for (Json& each : *list) {
    if (is_kept(each)) kept.push_back(std::move(each));
  }
  *list = std::move(kept);
}

/// Keeps the members of an object whose keys `is_kept` holds for.
template <typename IsKept>
void filter_members(Json* object, const IsKept& is_kept) {
  if (object == nullptr) return;
  Json kept = Json::object();
  for (auto& [key, value] : object->get_ref<Json::object_t&>()) {
    if (is_kept(key)) set_member(kept, key, std::move(value));
  }
  *object = std::move(kept);
}

}  // namespace

void prune_document(Json& document) {
  std::set<std::string> needed;
  for (const Json& mention : *member_list(document, "graph_outputs")) {
    needed.insert(*member_text(mention, "name"));
  }
  Json& nodes = *find_member(document, "nodes");
  std::set<std::size_t> kept;
  for (std::size_t n = nodes.size(); n-- > 0;) {
    bool is_needed = false;
    for (const Json& mention : *member_list(nodes[n], "outputs")) {
      is_needed = is_needed || needed.contains(*member_text(mention, "name"));
    }
    if (!is_needed) continue;
    kept.insert(n);
    for (const Json& mention : *member_list(nodes[n], "inputs")) {
      needed.insert(*member_text(mention, "name"));
    }
  }
  std::size_t place = 0;
  filter(&nodes, [&](const Json&) { return kept.contains(place++); });
  // Nodes may call a weight by another name than the one that its data has.
  std::set<std::string> keys = needed;
  if (Json* names = find_member(document, "weight_name_mapping")) {
    filter_members(names, [&](const std::string& name) { return needed.contains(name); });
    for (const auto& [name, key] : names->get_ref<Json::object_t&>()) {
      if (const std::string* text = json_text(&key)) keys.insert(*text);
    }
  }
  const auto is_named = [&](const Json& entry) {
    const std::string* name = member_text(entry, "name");
    return name == nullptr || keys.contains(*name);
  };
  filter(find_member(document, "weights"), is_named);
  filter_members(find_member(document, "constants"),
                 [&](const std::string& name) { return keys.contains(name); });
  if (Json* npu = find_member(document, "npu")) {
    if (Json* map = find_member(*npu, "weights_map"))
      filter(find_member(*map, "tensors"), is_named);
  }
}

void forget_places(Json& document) {
  Json* npu = find_member(document, "npu");
  Json* symbols = npu == nullptr ? nullptr : find_member(*npu, "symbols");
  if (symbols == nullptr) return;
  for (auto& [name, symbol] : symbols->get_ref<Json::object_t&>()) symbol.erase("of");
}

}  // namespace npu::states
