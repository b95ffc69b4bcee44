// SPDX-License-Identifier: Apache-2.0
// Puts nodes that can run as one kernel into groups.
//
// Input:  a verified graph, tagged or not.
// Output: the same graph with fusion_group of every node and npu.fusion; no node is added or moved.
// Each pattern claims nodes that no earlier one has: a user's patterns, then blocks that are found
// by their shape (attention, norms, gates), then convolutions and matrix products with the ops
// after them, merges of such groups, and last element-wise ops by their kind, as in TVM (Chen et
// al., OSDI 2018, section 3). Most patterns follow results that have one reader, which needs no
// search for post-dominators and keeps groups convex; see FusionBuilder for why all of them
// together can be ordered. Diamonds of element-wise ops are therefore split where they fork.
// Near O(nodes + edges): blocks look at a bounded number of nodes around their centre.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "ir/fusion_section.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/support/log.hpp"
#include "ops/op_catalogue.hpp"
#include "passes/fusion/fusion_builder.hpp"
#include "passes/fusion/patterns.hpp"
#include "support/checked.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

std::vector<std::string> names_of(const Graph& graph, const std::vector<TensorId>& tensors) {
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const TensorId id : tensors) names.push_back(graph.tensor(id).name);
  return names;
}

FusionEntry entry_of(const Graph& graph, const FusionGroup& group, std::int64_t id,
                     fusion::TrafficMeter& meter) {
  const fusion::GroupTraffic traffic = meter.measure(group.nodes, group.pattern == "concat-slices");
  FusionEntry entry;
  entry.id = id;
  entry.pattern = group.pattern;
  entry.device = graph.node(group.nodes.front()).device;
  std::vector<std::string>& nodes = entry.nodes.emplace();
  nodes.reserve(group.nodes.size());
  for (const NodeId node : group.nodes) nodes.push_back(graph.node(node).name);
  entry.inputs = names_of(graph, traffic.inputs);
  entry.outputs = names_of(graph, traffic.outputs);
  entry.flops = saturating_integer(traffic.flops);
  entry.bytes =
      saturating_integer(traffic.input_bytes + traffic.weight_bytes + traffic.output_bytes);
  entry.on_chip_bytes = saturating_integer(traffic.on_chip_bytes);
  return entry;
}

Json metrics_json(const FusionReport& report) {
  return {{"nodes", report.nodes},
          {"groups", report.groups},
          {"kernels", report.kernels},
          {"launches_before", report.launches_before},
          {"traffic_bytes", saturating_integer(report.traffic_bytes)},
          {"traffic_bytes_before", saturating_integer(report.traffic_bytes_before)},
          {"weight_bytes", saturating_integer(report.weight_bytes)},
          {"on_chip_bytes", saturating_integer(report.on_chip_bytes)},
          {"flops", saturating_integer(report.flops)},
          {"nodes_per_group", std::round(report.nodes_per_group() * 1e6) / 1e6},
          {"scheduling_us", std::round(report.scheduling_us * 1e3) / 1e3},
          {"scheduling_us_before", std::round(report.scheduling_us_before * 1e3) / 1e3}};
}

}  // namespace

std::span<const FusionPattern> fusion_patterns() { return fusion::kPatterns; }

std::string format_fusion_patterns() {
  std::vector<std::vector<std::string>> rows{{"pattern", "default", "what it fuses"}};
  for (const FusionPattern& pattern : fusion::kPatterns) {
    rows.push_back({std::string(pattern.name), pattern.by_default ? "yes" : "no",
                    std::string(pattern.summary)});
  }
  return table_text(rows);
}

std::map<std::string, std::vector<std::string>> target_patterns(const Target& target,
                                                                const std::string& file) {
  std::map<std::string, std::vector<std::string>> result;
  for (std::size_t d = 0; d < target.devices.size(); ++d) {
    const Device& device = target.devices[d];
    if (!device.fusion) continue;
    for (std::size_t i = 0; i < device.fusion->size(); ++i) {
      const std::string& name = (*device.fusion)[i];
      if (fusion::find_pattern(name)) continue;
      throw Error(
          ErrorCode::kInvalidGraph,
          "no fusion pattern '" + printable_text(name) +
              fusion::pattern_hint(name, {}, "npu-fuse --list-patterns lists them"),
          {.file = file,
           .pointer = "/npu/target/devices/" + std::to_string(d) + "/fusion/" + std::to_string(i)});
    }
    result.emplace(device.name, *device.fusion);
  }
  return result;
}

FusionPlan plan_fusion(const Graph& graph, const FuseOptions& options) {
  fusion::FusionBuilder builder(graph, options);
  using fusion::operator""_pattern;
  match_user_patterns(builder);
  match_chains(builder);
  claim_unused(builder);
  match_integer_products(builder);
  claim_constants(builder);
  match_quantized(builder);
  match_cached_attention(builder);
  match_attention(builder, "scaled-attention"_pattern);
  match_gates(builder, "channel-gate"_pattern);
  match_written_gelu(builder);
  match_written_rms_norm(builder);
  merge_siblings(builder, "linear-siblings"_pattern);
  match_post_ops(builder);
  merge_chains(builder, "norm-pointwise"_pattern);
  merge_chains(builder, "expand-depthwise"_pattern);
  merge_chains(builder, "resized-pointwise"_pattern);
  place_concats(builder);
  share_copies(builder);
  match_multi_head_attention(builder);
  match_attention(builder, "attention"_pattern);
  match_gates(builder, "squeeze-excite"_pattern);
  match_norms(builder);
  grow_anchors(builder);
  grow_reductions(builder);
  merge_chains(builder, "depthwise-pointwise"_pattern);
  merge_siblings(builder, "qkv-merge"_pattern);
  merge_horizontally(builder);
  write_slices(builder);
  absorb_elementwise(builder);
  return builder.finish();
}

namespace {

/// Tells how many groups there are and, for -vv, which pattern made each of several nodes.
void log_groups(const Graph& graph, const FusionPlan& plan, const LogTimer& timer) {
  timer.done([&] {
    return "fuse: " + std::to_string(graph.nodes().size()) + " nodes in " +
           std::to_string(plan.groups.size()) + " groups";
  });
  for (const FusionGroup& group : plan.groups) {
    if (group.nodes.size() < 2) continue;
    log(LogModule::kPass, LogLevel::kDebug, [&] {
      std::string text = "fuse: pattern '" + group.pattern + "' takes";
      for (const NodeId id : group.nodes) text += " '" + printable_text(graph.node(id).name) + "'";
      return text;
    });
  }
}

}  // namespace

bool fuse_ops(Graph& graph, const FuseOptions& given, Diagnostics&) {
  const LogTimer timer(LogModule::kPass);
  FuseOptions options = given;
  if (graph.npu_member("target") != nullptr) {
    options.device_patterns.merge(target_patterns(graph_target(graph), graph.file));
  }
  FusionPlan plan = plan_fusion(graph, options);
  log_groups(graph, plan, timer);
  Json metrics = metrics_json(fusion::report_of(graph, plan.groups));
  bool changed = false;
  Json groups = Json::array();  // there may be as many as nodes: nothing is kept twice
  auto& entries = groups.get_ref<Json::array_t&>();
  entries.reserve(plan.groups.size());
  fusion::TrafficMeter meter(graph);
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const auto id = static_cast<std::int64_t>(g);
    for (const NodeId node : plan.groups[g].nodes) {
      changed = changed || graph.node(node).fusion_group != id || graph.node(node).partition;
      graph.node(node).fusion_group = id;
      graph.node(node).partition.reset();
    }
    entries.push_back(FusionSection::group_json(entry_of(graph, plan.groups[g], id, meter)));
    plan.groups[g] = {};
  }
  for (const std::string_view stale : {"partition", "layout"}) {
    if (graph.npu_member(stale) == nullptr) continue;
    graph.erase_npu_member(stale);
    changed = true;
  }
  Json fusion = Json::object();
  set_member(fusion, "groups", std::move(groups));
  set_member(fusion, "metrics", std::move(metrics));
  const Json* known = graph.npu_member("fusion");
  changed = changed || known == nullptr || *known != fusion;
  graph.set_npu_member("fusion", std::move(fusion));
  return changed;
}

}  // namespace npu
