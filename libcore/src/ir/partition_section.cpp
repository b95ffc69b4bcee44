// SPDX-License-Identifier: Apache-2.0
// npu.partition as a document has it, read into typed fields and written back (typed_entry.hpp).
// O(size of the section).
#include "ir/partition_section.hpp"

#include <cmath>
#include <utility>

#include "ir/typed_entry.hpp"
#include "support/checked.hpp"
#include "support/json_fields.hpp"

namespace npu {

namespace {

Json* find_metric(Json& section, std::string_view name) {
  Json* metrics = find_member(section, "metrics");
  return metrics == nullptr ? nullptr : find_member(*metrics, name);
}

}  // namespace

// Calls visit(key, field) for the fields of an entry, in the order in which new ones are written.
template <typename Visit>
void for_each_field(PartitionEntry& entry, const Visit& visit) {
  visit("nodes", entry.nodes);
  visit("inputs", entry.inputs);
  visit("outputs", entry.outputs);
  visit("flops", entry.flops);
  visit("bytes", entry.bytes);
}

std::optional<PartitionSection> PartitionSection::take(Graph& graph) {
  Json* npu = find_member(graph.document(), "npu");
  Json* section = npu == nullptr ? nullptr : find_member(*npu, "partition");
  if (section == nullptr) return std::nullopt;
  PartitionSection result;
  if (Json* list = find_member(*section, "partitions"); list != nullptr && list->is_array()) {
    result.partitions.reserve(list->size());
    for (Json& entry : *list) {
      result.partitions.push_back(take_entry<PartitionEntry>(std::move(entry)));
    }
    *list = taken_json();
  }
  result.json = std::exchange(*section, Json::object());
  return result;
}

void PartitionSection::store(Graph& graph, PartitionSection&& section) {
  Json* list = find_member(section.json, "partitions");
  if (list != nullptr && list->is_discarded()) {
    *list = Json::array();
    auto& elements = list->get_ref<Json::array_t&>();
    elements.reserve(section.partitions.size());
    for (PartitionEntry& entry : section.partitions) {
      elements.push_back(entry_json(std::move(entry)));
    }
  }
  graph.set_npu_member("partition", std::move(section.json));
}

void PartitionSection::add_to_metric(std::string_view name, std::int64_t count) {
  Json* value = find_metric(json, name);
  const auto number = json_integer(value);
  if (number) *value = saturating_add(*number, count);
}

void PartitionSection::add_ns_to_metric(std::string_view name, double nanoseconds) {
  Json* value = find_metric(json, name);
  if (value == nullptr || !value->is_number() || nanoseconds == 0) return;
  *value = std::round(value->get<double>() * 1000 + nanoseconds) / 1000;
}

}  // namespace npu
