// SPDX-License-Identifier: Apache-2.0
// npu.layout: what was decided and why, as a document says it. O(nodes + conversions).
#include "passes/align/align_section.hpp"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <set>

#include "support/json_fields.hpp"

namespace npu {
namespace align {
namespace {

double rounded_us(double value) { return std::round(value * 1000) / 1000; }

Json costs_json(const AlignCosts& costs, const std::string& prefix) {
  return {{prefix + "conversions", costs.conversions},
          {prefix + "to_align", costs.to_align},
          {prefix + "to_nalign", costs.to_nalign},
          {prefix + "conversion_bytes", costs.bytes},
          {prefix + "conversion_us", rounded_us(costs.predicted_us)},
          {prefix + "padded_bytes", costs.padded_bytes}};
}

Json metrics_json(const AlignLayout& layout) {
  Json metrics = costs_json(layout.costs, "");
  metrics.update(costs_json(layout.greedy, "greedy_"));
  std::int64_t aligned = 0;
  std::int64_t unaligned = 0;
  std::int64_t free_ops = 0;
  for (const AlignNode& node : layout.nodes) {
    ++(node.mode == AlignMode::kAlign ? aligned : unaligned);
    free_ops += node.allowed == AlignMode::kBoth ? 1 : 0;
  }
  std::int64_t existed = 0;
  for (const AlignConversion& conversion : layout.conversions)
    existed += conversion.existed ? 1 : 0;
  metrics["existing_conversions"] = existed;
  metrics["removed_conversions"] = layout.removed.size();
  metrics["nodes_align"] = aligned;
  metrics["nodes_nalign"] = unaligned;
  metrics["nodes_both"] = free_ops;
  metrics["split_groups"] = layout.splits.size();
  return metrics;
}

std::string text_or_nothing(const Json& json, std::string_view key) {
  const std::string* text = member_text(json, key);
  return text == nullptr ? std::string() : *text;
}

}  // namespace

std::string reason_text(const AlignConversion& conversion) {
  if (conversion.existed) return "stands in the document";
  const auto side = [](const std::string& name, const std::string& rule) {
    if (name.empty()) return rule;
    return fmt::format("'{}' ({})", name, rule);
  };
  return fmt::format("{} is {}, {} is {}", side(conversion.from, conversion.from_rule),
                     conversion.to_nalign ? "ALIGN" : "NALIGN",
                     side(conversion.to, conversion.to_rule),
                     conversion.to_nalign ? "NALIGN" : "ALIGN");
}

AlignLayout layout_of(const AlignResult& result, const Problem& problem) {
  AlignLayout layout{.options = result.options,
                     .devices = {},
                     .nodes = result.nodes,
                     .conversions = result.conversions,
                     .removed = result.removed,
                     .splits = result.splits,
                     .costs = result.costs,
                     .greedy = result.greedy,
                     .certificate = result.certificate};
  std::set<std::string> seen;
  for (const Region& region : problem.regions) {
    if (!seen.insert(region.device).second) continue;
    layout.devices.push_back({region.device, std::string(aligned_layout_name(region.rules.layout)),
                              region.rules.channel_multiple});
  }
  return layout;
}

namespace {

Json devices_json(const std::vector<AlignedDevice>& devices) {
  Json list = Json::array();
  for (const AlignedDevice& device : devices) {
    list.push_back({{"device", device.device},
                    {"layout", device.layout},
                    {"channel_multiple", device.channel_multiple}});
  }
  return list;
}

/// As many as the graph has nodes.
Json nodes_json(const std::vector<AlignNode>& nodes) {
  Json list = Json::array();
  auto& elements = list.get_ref<Json::array_t&>();
  elements.reserve(nodes.size());
  for (const AlignNode& node : nodes) {
    auto& members = elements.emplace_back(Json::object()).get_ref<Json::object_t&>();
    members.reserve(4);
    members.emplace_back("name", node.name);
    members.emplace_back("mode", align_mode_name(node.mode));
    members.emplace_back("allowed", align_mode_name(node.allowed));
    members.emplace_back("rule", node.rule);
  }
  return list;
}

Json conversions_json(const std::vector<AlignConversion>& conversions) {
  Json list = Json::array();
  for (const AlignConversion& conversion : conversions) {
    Json entry = {
        {"node", conversion.node},       {"tensor", conversion.tensor},
        {"aligned", conversion.aligned}, {"direction", conversion.to_nalign},
        {"bytes", conversion.bytes},     {"predicted_us", rounded_us(conversion.predicted_us)},
        {"device", conversion.device}};
    if (conversion.partition >= 0) entry["partition"] = conversion.partition;
    entry["users"] = conversion.users;
    entry["from"] = {{"name", conversion.from}, {"rule", conversion.from_rule}};
    entry["to"] = {{"name", conversion.to}, {"rule", conversion.to_rule}};
    entry["reason"] = reason_text(conversion);
    if (conversion.existed) entry["existed"] = true;
    list.push_back(std::move(entry));
  }
  return list;
}

Json removed_json(const std::vector<AlignRemoval>& removed) {
  Json list = Json::array();
  for (const AlignRemoval& removal : removed) {
    list.push_back(
        {{"tensor", removal.tensor}, {"direction", removal.to_nalign}, {"cause", removal.cause}});
  }
  return list;
}

Json splits_json(const std::vector<AlignSplit>& splits) {
  Json list = Json::array();
  for (const AlignSplit& split : splits) {
    list.push_back({{"groups", split.groups},
                    {"align", split.aligned},
                    {"align_rule", split.aligned_rule},
                    {"nalign", split.unaligned},
                    {"nalign_rule", split.unaligned_rule}});
  }
  return list;
}

}  // namespace

Json AlignLayout::to_json() const {
  Json json = {{"algorithm", options.algorithm}, {"weight", options.weight}};
  if (!options.target.empty()) set_member(json, "target", options.target);
  set_member(json, "devices", devices_json(devices));
  set_member(json, "nodes", nodes_json(nodes));
  set_member(json, "conversions", conversions_json(conversions));
  set_member(json, "removed", removed_json(removed));
  if (!splits.empty()) set_member(json, "split_groups", splits_json(splits));
  set_member(json, "metrics", metrics_json(*this));
  if (certificate) {
    set_member(
        json, "certificate",
        {{"cut", certificate->cut}, {"flow", certificate->flow}, {"scale", certificate->scale}});
  }
  return json;
}

AlignLayout AlignLayout::from_json(const Json* json) {
  AlignLayout layout;
  if (json == nullptr) return layout;
  layout.options.target = text_or_nothing(*json, "target");
  if (const Json* list = member_list(*json, "conversions")) {
    for (const Json& entry : *list) {
      AlignConversion conversion;
      conversion.node = text_or_nothing(entry, "node");
      conversion.tensor = text_or_nothing(entry, "tensor");
      conversion.existed = member_flag(entry, "existed").value_or(false);
      if (!conversion.node.empty()) layout.conversions.push_back(std::move(conversion));
    }
  }
  if (const Json* list = member_list(*json, "split_groups")) {
    for (const Json& entry : *list) {
      const Json* groups = member_list(entry, "groups");
      if (groups == nullptr) continue;
      AlignSplit split{.group = 0,
                       .groups = {},
                       .aligned = text_or_nothing(entry, "align"),
                       .aligned_rule = text_or_nothing(entry, "align_rule"),
                       .unaligned = text_or_nothing(entry, "nalign"),
                       .unaligned_rule = text_or_nothing(entry, "nalign_rule")};
      for (const Json& id : *groups) {
        if (const auto group = json_integer(&id)) split.groups.push_back(*group);
      }
      if (split.groups.empty()) continue;
      split.group = split.groups.front();
      layout.splits.push_back(std::move(split));
    }
  }
  return layout;
}

}  // namespace align

std::map<std::string, double> align_metrics(const AlignResult& result) {
  std::map<std::string, double> metrics;
  const Json json = align::metrics_json(align::layout_of(result, {}));
  for (const auto& [key, value] : json.items()) metrics[key] = value.get<double>();
  return metrics;
}

}  // namespace npu
