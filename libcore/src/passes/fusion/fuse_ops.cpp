// SPDX-License-Identifier: Apache-2.0
// Puts nodes that can run as one kernel into groups.
//
// Input:  a verified graph, tagged or not.
// Output: the same graph with fusion_group of every node and npu.fusion; no node is added or moved.
// Each pattern claims nodes that no earlier one has: a user's patterns, then blocks that are found
// by their shape (attention, norms, gates), then convolutions and matrix products with what stands
// behind them, merges of such groups, and last element-wise ops by their kind, as TVM does (Chen et
// al., OSDI 2018, section 3). Most patterns follow results that have one reader, which needs no
// search for post-dominators and keeps groups convex; see FusionBuilder for why all of them
// together can be ordered. Diamonds of element-wise ops are therefore split where they fork.
// Near O(nodes + edges): blocks look at a bounded number of nodes around their centre.
#include <array>
#include <cmath>
#include <map>

#include "npu/ops/op_catalogue.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/support/checked.hpp"
#include "npu/support/log.hpp"
#include "npu/support/text.hpp"
#include "passes/fusion/fusion_builder.hpp"

namespace npu {
namespace {

// In the order of fusion::Pattern.
constexpr std::array<FusionPattern, fusion::kPatternCount> kPatterns{{
    {"chain", false, "conv+bn+act, conv+bn, conv+act, add+act; stops at forks and joins"},
    {"multi-head-attention", false, "projections, attention and output projection as one block"},
    {"attention", true, "matmul, scale, mask, softmax and matmul"},
    {"squeeze-excite", true, "pooled channel gate: pool, convolutions, sigmoid, multiply"},
    {"rms-norm", true, "rms_norm, also written out, with element-wise ops before and behind"},
    {"layer-norm", true, "layer_norm and group_norm, also written out, likewise"},
    {"conv-bn-act", true, "convolution, batch norm, activation"},
    {"conv-bn", true, "convolution, batch norm"},
    {"conv-act", true, "convolution, activation"},
    {"linear-act", true, "matrix product, activation"},
    {"residual", true,
     "convolution or matrix product, batch norm or none, add, activation or none"},
    {"linear-bn-act", true, "matrix product, batch norm, activation or none"},
    {"epilogue", true, "convolution or matrix product and any element-wise ops behind it"},
    {"reduction", true, "reduction, pooling or softmax and element-wise ops around it"},
    {"depthwise-pointwise", true, "depthwise convolution group and the pointwise one behind it"},
    {"qkv-merge", false, "matrix products with weights that read one input"},
    {"horizontal", true, "convolutions or matrix products on one input that meet in a cat"},
    {"concat-slices", false, "cat whose operands are written where the result needs them"},
    {"elementwise", true, "element-wise ops, of one shape or broadcast"},
    {"injective", true, "cat, pad, embedding and the like into element-wise ops behind them"},
}};

Json names_of(const Graph& graph, const std::vector<TensorId>& tensors) {
  Json names = Json::array();
  for (const TensorId id : tensors) names.push_back(graph.tensor(id).name);
  return names;
}

Json group_json(const Graph& graph, const FusionGroup& group, std::size_t id,
                fusion::TrafficMeter& meter) {
  const fusion::GroupTraffic traffic = meter.measure(group.nodes, group.pattern == "concat-slices");
  Json nodes = Json::array();
  for (const NodeId node : group.nodes) nodes.push_back(graph.node(node).name);
  Json json{{"id", id}, {"pattern", group.pattern}};
  if (const auto& device = graph.node(group.nodes.front()).device) json["device"] = *device;
  json["nodes"] = std::move(nodes);
  json["inputs"] = names_of(graph, traffic.inputs);
  json["outputs"] = names_of(graph, traffic.outputs);
  json["flops"] = saturating_integer(traffic.flops);
  json["bytes"] =
      saturating_integer(traffic.input_bytes + traffic.weight_bytes + traffic.output_bytes);
  json["on_chip_bytes"] = saturating_integer(traffic.on_chip_bytes);
  return json;
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

std::span<const FusionPattern> fusion_patterns() { return kPatterns; }

std::string format_fusion_patterns() {
  std::vector<std::vector<std::string>> rows{{"pattern", "default", "what it fuses"}};
  for (const FusionPattern& pattern : kPatterns) {
    rows.push_back({std::string(pattern.name), pattern.by_default ? "yes" : "no",
                    std::string(pattern.summary)});
  }
  return table_text(rows);
}

FusionPlan plan_fusion(const Graph& graph, const FuseOptions& options) {
  fusion::FusionBuilder builder(graph, options);
  fusion::match_user_patterns(builder);
  fusion::match_chains(builder);
  fusion::match_multi_head_attention(builder);
  fusion::match_attention(builder);
  fusion::match_squeeze_excite(builder);
  fusion::match_norms(builder);
  fusion::grow_anchors(builder);
  fusion::grow_reductions(builder);
  fusion::merge_depthwise_pointwise(builder);
  fusion::merge_siblings(builder);
  fusion::merge_horizontally(builder);
  fusion::write_slices(builder);
  fusion::absorb_elementwise(builder);
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

bool fuse_ops(Graph& graph, const FuseOptions& options, Diagnostics&) {
  const LogTimer timer(LogModule::kPass);
  const FusionPlan plan = plan_fusion(graph, options);
  bool changed = false;
  Json groups = Json::array();
  fusion::TrafficMeter meter(graph);
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const auto id = static_cast<std::int64_t>(g);
    for (const NodeId node : plan.groups[g].nodes) {
      changed = changed || graph.node(node).fusion_group != id || graph.node(node).partition;
      graph.node(node).fusion_group = id;
      graph.node(node).partition.reset();
    }
    groups.push_back(group_json(graph, plan.groups[g], g, meter));
  }
  for (const std::string_view stale : {"partition", "layout"}) {
    if (graph.npu_member(stale) == nullptr) continue;
    graph.erase_npu_member(stale);
    changed = true;
  }
  const Json* known = graph.npu_member("fusion");
  const Json before = known == nullptr ? Json() : *known;
  Json fusion{{"groups", std::move(groups)}};
  graph.set_npu_member("fusion", fusion);
  fusion["metrics"] = metrics_json(fusion_report(graph));
  changed = changed || fusion != before;
  graph.set_npu_member("fusion", std::move(fusion));
  log_groups(graph, plan, timer);
  return changed;
}

}  // namespace npu
