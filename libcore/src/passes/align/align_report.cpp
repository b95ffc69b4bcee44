// SPDX-License-Identifier: Apache-2.0
// Says what was decided and why: npu.layout, metrics, tables and the drawing.
//
// A conversion is forced by two decisions that meet there. Each is the nearest op or boundary with
// a fixed layout that the tensor's form on that side is connected to; one breadth-first search from
// all of them at once finds them for every conversion. O(units + uses).
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "npu/support/text.hpp"
#include "passes/align/align_problem.hpp"

namespace npu {
namespace {

double rounded_us(double value) { return std::round(value * 1000) / 1000; }

std::string count_text(std::int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string_view direction_text(bool to_nalign) {
  return to_nalign ? "ALIGN to NALIGN" : "NALIGN to ALIGN";
}

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

Json costs_json(const AlignCosts& costs, const std::string& prefix) {
  return {{prefix + "conversions", costs.conversions},
          {prefix + "to_align", costs.to_align},
          {prefix + "to_nalign", costs.to_nalign},
          {prefix + "conversion_bytes", costs.bytes},
          {prefix + "conversion_us", rounded_us(costs.predicted_us)},
          {prefix + "padded_bytes", costs.padded_bytes}};
}

Json metrics_json(const AlignResult& result) {
  Json metrics = costs_json(result.costs, "");
  metrics.update(costs_json(result.greedy, "greedy_"));
  std::int64_t aligned = 0;
  std::int64_t unaligned = 0;
  std::int64_t free_ops = 0;
  for (const AlignNode& node : result.nodes) {
    ++(node.mode == AlignMode::kAlign ? aligned : unaligned);
    free_ops += node.allowed == AlignMode::kBoth ? 1 : 0;
  }
  std::int64_t existed = 0;
  for (const AlignConversion& conversion : result.conversions)
    existed += conversion.existed ? 1 : 0;
  metrics["existing_conversions"] = existed;
  metrics["removed_conversions"] = result.removed.size();
  metrics["nodes_align"] = aligned;
  metrics["nodes_nalign"] = unaligned;
  metrics["nodes_both"] = free_ops;
  metrics["split_groups"] = result.splits.size();
  return metrics;
}

}  // namespace

std::map<std::string, double> align_metrics(const AlignResult& result) {
  std::map<std::string, double> metrics;
  const Json json = metrics_json(result);
  for (const auto& [key, value] : json.items()) metrics[key] = value.get<double>();
  return metrics;
}

std::string format_align_report(const AlignResult& result) {
  std::vector<std::vector<std::string>> rows{{"algorithm", ">conversions", ">to ALIGN",
                                              ">to NALIGN", ">bytes", ">predicted us", ">padding"}};
  const auto add = [&](const std::string& name, const AlignCosts& costs) {
    rows.push_back({name, std::to_string(costs.conversions), std::to_string(costs.to_align),
                    std::to_string(costs.to_nalign), bytes_text(static_cast<double>(costs.bytes)),
                    fixed_text(costs.predicted_us, 1),
                    bytes_text(static_cast<double>(costs.padded_bytes))});
  };
  if (result.options.algorithm != "greedy") {
    add(result.options.algorithm + " (" + result.options.weight + ")", result.costs);
  }
  add("greedy", result.greedy);
  std::string text = table_text(rows) + "\n";
  // Ops by rule.
  std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> by_rule;
  for (const AlignNode& node : result.nodes) {
    ++by_rule[{std::string(align_mode_name(node.allowed)), std::string(node.rule),
               std::string(align_mode_name(node.mode))}];
  }
  std::vector<std::vector<std::string>> ops{{"allowed", "rule", "mode", ">ops"}};
  for (const auto& [key, count] : by_rule) {
    ops.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::to_string(count)});
  }
  text += table_text(ops);
  for (const AlignSplit& split : result.splits) {
    text +=
        fmt::format("\nfusion group {} is split into {}: '{}' ({}) is ALIGN, '{}' ({}) NALIGN\n",
                    split.group, split.groups.size(), split.aligned, split.aligned_rule,
                    split.unaligned, split.unaligned_rule);
  }
  return text;
}

std::string format_align_explanation(const AlignResult& result) {
  std::string text;
  if (!result.conversions.empty()) {
    std::vector<std::vector<std::string>> rows{
        {"tensor", "direction", ">bytes", ">us", "for", "because"}};
    for (const AlignConversion& conversion : result.conversions) {
      std::string users = conversion.users.empty() ? "-" : "'" + conversion.users.front() + "'";
      if (!conversion.users.empty() && conversion.users.front() == "graph output") {
        users = "graph output";
      }
      if (conversion.users.size() > 1) users += fmt::format(" +{}", conversion.users.size() - 1);
      rows.push_back({conversion.tensor, std::string(direction_text(conversion.to_nalign)),
                      bytes_text(static_cast<double>(conversion.bytes)),
                      fixed_text(conversion.predicted_us, 1), users, reason_text(conversion)});
    }
    text += table_text(rows) + "\n";
    std::map<std::pair<std::string, std::string>, std::tuple<std::int64_t, double, double>> causes;
    for (const AlignConversion& conversion : result.conversions) {
      auto& [count, bytes, us] = causes[{conversion.from_rule, conversion.to_rule}];
      ++count;
      bytes += static_cast<double>(conversion.bytes);
      us += conversion.predicted_us;
    }
    rows = {{"from", "to", ">conversions", ">bytes", ">us"}};
    for (const auto& [cause, total] : causes) {
      const auto& [count, bytes, us] = total;
      rows.push_back(
          {cause.first, cause.second, std::to_string(count), bytes_text(bytes), fixed_text(us, 1)});
    }
    text += table_text(rows) + "\n";
  }
  if (!result.removed.empty()) {
    std::map<std::string, std::int64_t> causes;
    for (const AlignRemoval& removal : result.removed) ++causes[removal.cause];
    std::vector<std::vector<std::string>> rows{{"not needed", ">conversions"}};
    for (const auto& [cause, count] : causes) rows.push_back({cause, std::to_string(count)});
    text += table_text(rows) + "\n";
  }
  text += count_text(result.costs.conversions, "conversion") + " (" + result.options.algorithm +
          "); greedy: " + std::to_string(result.greedy.conversions) + "\n";
  if (result.certificate) {
    const AlignCertificate& certificate = *result.certificate;
    text +=
        fmt::format("certificate: cut {} = flow {}, in units of 1/{} {}; {} vertices, {} arcs\n",
                    certificate.cut, certificate.flow, certificate.scale,
                    result.options.weight == "count"   ? "conversion"
                    : result.options.weight == "bytes" ? "byte"
                                                       : "ns",
                    certificate.vertices, certificate.arcs);
  }
  return text;
}

namespace align {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// Breadth-first search over units and the two forms of each value.
class OriginSearch {
 public:
  OriginSearch(const Graph& graph, const Problem& problem, const std::vector<AlignMode>& modes)
      : graph_(graph),
        problem_(problem),
        modes_(modes),
        forms_of_unit_(problem.units.size()),
        units_of_form_(2 * problem.values.size()),
        origin_of_unit_(problem.units.size(), -1),
        origin_of_form_(2 * problem.values.size(), -1) {
    for (std::size_t v = 0; v < problem.values.size(); ++v) connect(static_cast<std::int32_t>(v));
    start();
    search();
  }

  Origin origin(std::int32_t value, AlignMode form) const {
    const std::int32_t found = origin_of_form_[at(form_index(value, form))];
    if (found < 0) return {{}, "free"};
    return origins_[at(found)];
  }

 private:
  static std::int32_t form_index(std::int32_t value, AlignMode form) {
    return 2 * value + (form == AlignMode::kAlign ? 1 : 0);
  }

  void connect(std::int32_t v) {
    const Value& value = problem_.values[at(v)];
    if (!value.can_differ) return;
    const auto add = [&](std::int32_t unit, AlignMode form) {
      forms_of_unit_[at(unit)].push_back(form_index(v, form));
      units_of_form_[at(form_index(v, form))].push_back(unit);
    };
    if (value.producer >= 0) add(value.producer, modes_[at(value.producer)]);
    for (const Use& use : value.uses) add(use.unit, problem_.required(use, modes_));
  }

  std::int32_t add_origin(std::string name, std::string_view rule) {
    origins_.push_back({std::move(name), std::string(rule)});
    return static_cast<std::int32_t>(origins_.size() - 1);
  }

  void reach_form(std::int32_t form, std::int32_t origin) {
    if (origin_of_form_[at(form)] >= 0) return;
    origin_of_form_[at(form)] = origin;
    queue_.push_back(form);
  }

  void start() {
    for (std::size_t v = 0; v < problem_.values.size(); ++v) {
      const Value& value = problem_.values[v];
      const TensorInfo& tensor = graph_.tensor(value.tensor);
      const std::int32_t plain = form_index(static_cast<std::int32_t>(v), AlignMode::kNalign);
      if (value.producer < 0) {
        reach_form(plain, add_origin(tensor.name, tensor.kind == TensorKind::kGraphInput
                                                      ? "graph input"
                                                      : boundary_rule(value, tensor.producer)));
      } else if (value.leaves) {
        reach_form(plain, add_origin(tensor.name, leaving_rule(value, tensor)));
      }
    }
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      const Unit& unit = problem_.units[u];
      if (unit.mode.mode == AlignMode::kBoth) continue;
      origin_of_unit_[u] = add_origin(graph_.node(unit.decisive).name, unit.mode.rule);
      for (const std::int32_t form : forms_of_unit_[u]) reach_form(form, origin_of_unit_[u]);
    }
  }

  std::string_view boundary_rule(const Value& value, NodeId other) const {
    return graph_.node(other).device == problem_.regions[at(value.region)].device ? "partition"
                                                                                  : "transfer";
  }

  std::string_view leaving_rule(const Value& value, const TensorInfo& tensor) const {
    for (const NodeId consumer : tensor.consumers) {
      if (problem_.region_of[at(consumer.value)] != value.region) {
        return boundary_rule(value, consumer);
      }
    }
    return "graph output";
  }

  void search() {
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::int32_t form = queue_[i];
      const std::int32_t origin = origin_of_form_[at(form)];
      for (const std::int32_t unit : units_of_form_[at(form)]) {
        if (origin_of_unit_[at(unit)] >= 0) continue;
        origin_of_unit_[at(unit)] = origin;
        for (const std::int32_t next : forms_of_unit_[at(unit)]) reach_form(next, origin);
      }
    }
  }

  const Graph& graph_;
  const Problem& problem_;
  const std::vector<AlignMode>& modes_;
  std::vector<std::vector<std::int32_t>> forms_of_unit_;
  std::vector<std::vector<std::int32_t>> units_of_form_;
  std::vector<std::int32_t> origin_of_unit_;
  std::vector<std::int32_t> origin_of_form_;
  std::vector<Origin> origins_;
  std::vector<std::int32_t> queue_;
};

}  // namespace

std::vector<std::pair<Origin, Origin>> origins_of(const Graph& graph, const Problem& problem,
                                                  const std::vector<AlignMode>& modes,
                                                  const std::vector<Conversion>& conversions) {
  const OriginSearch search(graph, problem, modes);
  std::vector<std::pair<Origin, Origin>> origins;
  for (const Conversion& conversion : conversions) {
    const AlignMode from = conversion.to_nalign ? AlignMode::kAlign : AlignMode::kNalign;
    const AlignMode to = conversion.to_nalign ? AlignMode::kNalign : AlignMode::kAlign;
    origins.emplace_back(search.origin(conversion.value, from),
                         search.origin(conversion.value, to));
  }
  return origins;
}

Json layout_json(const AlignResult& result, const Problem& problem) {
  Json json = {{"algorithm", result.options.algorithm}, {"weight", result.options.weight}};
  if (!result.options.target.empty()) json["target"] = result.options.target;
  Json devices = Json::array();
  std::set<std::string> seen;
  for (const Region& region : problem.regions) {
    if (!seen.insert(region.device).second) continue;
    devices.push_back({{"device", region.device},
                       {"layout", aligned_layout_name(region.rules.layout)},
                       {"channel_multiple", region.rules.channel_multiple}});
  }
  json["devices"] = std::move(devices);
  Json nodes = Json::array();
  for (const AlignNode& node : result.nodes) {
    nodes.push_back({{"name", node.name},
                     {"mode", align_mode_name(node.mode)},
                     {"allowed", align_mode_name(node.allowed)},
                     {"rule", node.rule}});
  }
  json["nodes"] = std::move(nodes);
  Json conversions = Json::array();
  for (const AlignConversion& conversion : result.conversions) {
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
    conversions.push_back(std::move(entry));
  }
  json["conversions"] = std::move(conversions);
  Json removed = Json::array();
  for (const AlignRemoval& removal : result.removed) {
    removed.push_back(
        {{"tensor", removal.tensor}, {"direction", removal.to_nalign}, {"cause", removal.cause}});
  }
  json["removed"] = std::move(removed);
  if (!result.splits.empty()) {
    Json splits = Json::array();
    for (const AlignSplit& split : result.splits) {
      splits.push_back({{"groups", split.groups},
                        {"align", split.aligned},
                        {"align_rule", split.aligned_rule},
                        {"nalign", split.unaligned},
                        {"nalign_rule", split.unaligned_rule}});
    }
    json["split_groups"] = std::move(splits);
  }
  json["metrics"] = metrics_json(result);
  if (result.certificate) {
    json["certificate"] = {{"cut", result.certificate->cut},
                           {"flow", result.certificate->flow},
                           {"scale", result.certificate->scale}};
  }
  return json;
}

}  // namespace align

// ---- drawing ----

namespace {

constexpr std::string_view kAlignedColour = "#ffd84d";
constexpr std::string_view kUnalignedColour = "#c9c9c9";
constexpr std::string_view kBothColour = "#9fd88b";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

std::string short_op(std::string_view op_type) {
  if (op_type.starts_with("aten.")) op_type.remove_prefix(5);
  if (op_type.ends_with(".default")) op_type.remove_suffix(8);
  return std::string(op_type);
}

std::string node_line(const Graph& graph, NodeId id,
                      const std::map<std::string_view, const AlignNode*>& modes) {
  const Node& node = graph.node(id);
  std::string line = "    n" + std::to_string(id.value) + " [label=\"" + escaped(node.name) + "\\n";
  if (node.op_type == kChannelNorm) {
    return line + (align::converts_to_nalign(node) ? "to NALIGN" : "to ALIGN") +
           "\", shape=diamond, style=filled, fillcolor=\"#ff8a80\"];\n";
  }
  line += escaped(short_op(node.op_type));
  const auto found = modes.find(node.name);
  if (found == modes.end()) return line + "\"];\n";
  const AlignNode& mode = *found->second;
  const auto colour = [](AlignMode of) {
    return of == AlignMode::kAlign ? kAlignedColour : kUnalignedColour;
  };
  if (mode.allowed != AlignMode::kBoth) {
    return line + "\\n" + std::string(mode.rule) + "\", fillcolor=\"" +
           std::string(colour(mode.mode)) + "\"];\n";
  }
  return line + "\\n" + std::string(align_mode_name(mode.mode)) + "\", fillcolor=\"" +
         std::string(kBothColour) + "\", color=\"" + std::string(colour(mode.mode)) +
         "\", penwidth=3];\n";
}

}  // namespace

std::string alignment_to_dot(const Graph& graph, const AlignResult& result) {
  std::map<std::string_view, const AlignNode*> modes;
  for (const AlignNode& node : result.nodes) modes.emplace(node.name, &node);
  std::map<std::int64_t, std::vector<NodeId>> clusters;  // by partition; -1: none
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    clusters[graph.nodes()[n].partition.value_or(-1)].push_back(
        NodeId{static_cast<std::int32_t>(n)});
  }
  std::string text = "digraph \"" + escaped(graph.model_name()) +
                     "\" {\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
                     "fontname=\"Helvetica\", fontsize=10];\n  edge [fontname=\"Helvetica\", "
                     "fontsize=9];\n";
  for (const auto& [partition, nodes] : clusters) {
    if (partition >= 0) {
      text += "  subgraph cluster_" + std::to_string(partition) + " {\n    label=\"" +
              std::to_string(partition) + ": " +
              escaped(graph.node(nodes.front()).device.value_or("")) + "\";\n";
    }
    for (const NodeId id : nodes) text += node_line(graph, id, modes);
    if (partition >= 0) text += "  }\n";
  }
  const std::string plain =
      ", shape=ellipse, fillcolor=\"" + std::string(kUnalignedColour) + "\"];\n";
  for (std::size_t i = 0; i < graph.graph_inputs().size(); ++i) {
    const TensorInfo& tensor = graph.tensor(graph.graph_inputs()[i]);
    text += "  in" + std::to_string(i) + " [label=\"" + escaped(tensor.name) + "\"" + plain;
    for (const NodeId consumer : tensor.consumers) {
      text += "  in" + std::to_string(i) + " -> n" + std::to_string(consumer.value) + ";\n";
    }
  }
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind != TensorKind::kResult) continue;
    for (const NodeId consumer : tensor.consumers) {
      text +=
          "  n" + std::to_string(tensor.producer.value) + " -> n" + std::to_string(consumer.value);
      const bool converted = graph.node(tensor.producer).op_type == kChannelNorm;
      if (converted) text += " [label=\"" + bytes_text(static_cast<double>(tensor.bytes())) + "\"]";
      text += ";\n";
    }
  }
  for (std::size_t i = 0; i < graph.graph_outputs().size(); ++i) {
    const TensorInfo& tensor = graph.tensor(graph.graph_outputs()[i]);
    text += "  out" + std::to_string(i) + " [label=\"" + escaped(tensor.name) + "\"" + plain;
    if (tensor.producer.valid()) {
      text += "  n" + std::to_string(tensor.producer.value) + " -> out" + std::to_string(i) + ";\n";
    }
  }
  return text + "}\n";
}

}  // namespace npu
