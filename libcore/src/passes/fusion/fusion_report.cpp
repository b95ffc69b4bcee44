// SPDX-License-Identifier: Apache-2.0
// What fusion saves: launches, and bytes between kernels.
//
// A kernel reads its operands once and writes the results that something outside needs; a group of
// aliases alone is no kernel. "Before" means that every node is a group of its own. O(nodes +
// edges).
#include <algorithm>
#include <map>

#include "npu/support/ids.hpp"
#include "npu/target/target.hpp"
#include "ops/op_catalogue.hpp"
#include "passes/fusion/fusion_builder.hpp"
#include "passes/fusion/fusion_groups.hpp"
#include "support/text.hpp"

namespace npu {
namespace fusion {

TrafficMeter::TrafficMeter(const Graph& graph)
    : graph_(graph),
      is_output_(graph.tensors().size(), 0),
      member_(graph.nodes().size(), 0),
      seen_(graph.tensors().size(), 0) {
  for (const TensorId id : graph.graph_outputs()) is_output_[index_of(id)] = 1;
}

GroupTraffic TrafficMeter::measure(std::span<const NodeId> nodes, bool writes_slices) {
  ++stamp_;
  GroupTraffic traffic;
  const auto inside = [&](NodeId id) { return id.valid() && member_[index_of(id)] == stamp_; };
  for (const NodeId id : nodes) member_[index_of(id)] = stamp_;
  double slice_bytes = 0;  // of operands that a cat finds in its result already
  for (const NodeId id : nodes) {
    const Node& node = graph_.node(id);
    const bool alias = is_alias_node(graph_, node);
    const OpInfo* op = find_op(node.op_type);
    const bool slices = writes_slices && op != nullptr && op->role == FusionRole::kCat;
    if (!alias) ++traffic.kernels;
    traffic.flops += node_flops(graph_, node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorInfo& tensor = graph_.tensor(node.inputs[i]);
      if (inside(tensor.producer)) {
        if (slices) slice_bytes += static_cast<double>(tensor.bytes());
        continue;
      }
      auto& seen = seen_[index_of(node.inputs[i])];
      if (seen == stamp_) continue;
      seen = stamp_;
      auto bytes = static_cast<double>(tensor.bytes());
      // A gather reads what it returns, not the whole table.
      if (i == 0 && op != nullptr && op->kind == OpKind::kInjective && !node.outputs.empty()) {
        bytes = std::min(bytes, static_cast<double>(graph_.tensor(node.outputs.front()).bytes()));
      }
      if (tensor.kind == TensorKind::kWeight) {
        traffic.weight_bytes += bytes;
        continue;
      }
      traffic.inputs.push_back(node.inputs[i]);
      if (!slices) traffic.input_bytes += bytes;
    }
    for (const TensorId output : node.outputs) {
      const TensorInfo& tensor = graph_.tensor(output);
      bool needed = is_output_[index_of(output)] != 0;
      for (const NodeId consumer : tensor.consumers) needed = needed || !inside(consumer);
      const auto bytes = static_cast<double>(tensor.bytes());
      if (needed) {
        traffic.outputs.push_back(output);
        traffic.output_bytes += slices ? slice_bytes : bytes;
      } else if (!tensor.consumers.empty() && !alias && slice_bytes == 0) {
        traffic.on_chip_bytes += bytes;
      }
    }
  }
  if (writes_slices) traffic.on_chip_bytes -= slice_bytes;  // they leave as part of the result
  if (traffic.kernels == 0) {
    traffic.input_bytes = traffic.output_bytes = traffic.weight_bytes = 0;
  }
  return traffic;
}

}  // namespace fusion

namespace {

double per_byte(double flops, double bytes) { return bytes > 0 ? flops / bytes : 0; }
double intensity(const FusionReport& report) {
  return per_byte(report.flops, report.traffic_bytes + report.weight_bytes);
}
double intensity_before(const FusionReport& report) {
  return per_byte(report.flops, report.traffic_bytes_before + report.weight_bytes_before);
}

std::string change_text(double before, double after) {
  if (before == 0) return "-";
  const double percent = 100 * (after - before) / before;
  return (percent > 0 ? "+" : "") + fixed_text(percent, 1) + "%";
}

// The time to launch a node, by device.
std::map<std::string, double, std::less<>> launch_times(const Graph& graph) {
  std::map<std::string, double, std::less<>> times;
  if (graph.npu_member("target") == nullptr) return times;
  for (const Device& device : graph_target(graph).devices) {
    times.emplace(device.name, device.node_overhead_us);
  }
  return times;
}

}  // namespace

namespace fusion {

FusionReport report_of(const Graph& graph, std::span<const FusionGroup> groups) {
  FusionReport report;
  const auto times = launch_times(graph);
  const auto launch_us = [&](NodeId id) {
    const auto found = times.find(graph.node(id).device.value_or(""));
    return found == times.end() ? 0 : found->second;
  };
  TrafficMeter meter(graph);
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const GroupTraffic alone = meter.measure({&id, 1}, false);
    ++report.nodes;
    report.launches_before += alone.kernels;
    if (alone.kernels > 0) report.scheduling_us_before += launch_us(id);
    report.traffic_bytes_before += alone.input_bytes + alone.output_bytes;
    report.weight_bytes_before += alone.weight_bytes;
  }
  std::map<std::string, FusionReport::Row> rows;
  for (const FusionGroup& group : groups) {
    const GroupTraffic traffic = meter.measure(group.nodes, group.pattern == "concat-slices");
    const auto size = static_cast<std::int64_t>(group.nodes.size());
    FusionReport::Row& row = rows[group.pattern];
    row.pattern = group.pattern;
    ++row.groups;
    row.nodes += size;
    row.flops += traffic.flops;
    row.on_chip_bytes += traffic.on_chip_bytes;
    ++report.groups;
    const bool has_kernel = launches_kernel(graph, group.pattern, group.nodes);
    report.kernels += has_kernel ? 1 : 0;
    if (has_kernel) report.scheduling_us += launch_us(group.nodes.front());
    report.largest_group = std::max(report.largest_group, size);
    report.flops += traffic.flops;
    report.traffic_bytes += traffic.input_bytes + traffic.output_bytes;
    report.weight_bytes += traffic.weight_bytes;
    report.on_chip_bytes += traffic.on_chip_bytes;
  }
  for (auto& [name, row] : rows) report.rows.push_back(std::move(row));
  std::stable_sort(
      report.rows.begin(), report.rows.end(),
      [](const FusionReport::Row& a, const FusionReport::Row& b) { return a.groups > b.groups; });
  report.folded = static_cast<std::int64_t>(graph.folded().size());
  return report;
}

}  // namespace fusion

FusionReport fusion_report(const Graph& graph) {
  const auto ids = ids_of<NodeId>(graph.nodes());
  const std::vector<NodeId> nodes(ids.begin(), ids.end());
  std::vector<FusionGroup> groups;
  for (GivenGroup& group : given_groups(graph, nodes)) {
    if (group.pattern.empty()) group.pattern = "single";
    groups.push_back({std::move(group.pattern), std::move(group.nodes)});
  }
  return fusion::report_of(graph, groups);
}

std::string format_fusion_report(const FusionReport& report) {
  std::vector<std::vector<std::string>> rows{
      {"pattern", ">groups", ">nodes", ">flops", ">on chip"}};
  for (const FusionReport::Row& row : report.rows) {
    rows.push_back({row.pattern, std::to_string(row.groups), std::to_string(row.nodes),
                    flops_text(row.flops), bytes_text(row.on_chip_bytes)});
  }
  // In no group, and no launch.
  if (report.folded > 0) rows.push_back({"folded", "-", std::to_string(report.folded), "-", "-"});
  const auto row = [](const std::string& name, auto before, auto after, const auto& text_of) {
    return std::vector<std::string>{
        name, text_of(before), text_of(after),
        change_text(static_cast<double>(before), static_cast<double>(after))};
  };
  const auto count_text = [](std::int64_t count) { return std::to_string(count); };
  const auto time_text = [](double us) { return fixed_text(us, 1) + " us"; };
  const auto ratio_text = [](double ratio) { return fixed_text(ratio, 2); };
  const std::vector<std::vector<std::string>> totals{
      {"", ">before", ">after", ">change"},
      row("groups", report.nodes, report.groups, count_text),
      row("kernel launches", report.launches_before, report.kernels, count_text),
      row("time of launches", report.scheduling_us_before, report.scheduling_us, time_text),
      {"nodes per group", report.nodes == 0 ? "-" : "1.0", fixed_text(report.nodes_per_group(), 1),
       ""},
      row("traffic between kernels", report.traffic_bytes_before, report.traffic_bytes, bytes_text),
      row("weights read", report.weight_bytes_before, report.weight_bytes, bytes_text),
      row("FLOP per byte", intensity_before(report), intensity(report), ratio_text)};
  return table_text(rows) + "\n" + table_text(totals);
}

std::map<std::string, double> fusion_metrics(const FusionReport& report) {
  std::map<std::string, double> metrics{
      {"nodes", static_cast<double>(report.nodes)},
      {"nodes_folded", static_cast<double>(report.folded)},
      {"groups", static_cast<double>(report.groups)},
      {"kernels", static_cast<double>(report.kernels)},
      {"launches", static_cast<double>(report.kernels)},
      {"launches_before", static_cast<double>(report.launches_before)},
      {"largest_group", static_cast<double>(report.largest_group)},
      {"nodes_per_group", report.nodes_per_group()},
      {"scheduling_us", report.scheduling_us},
      {"scheduling_us_before", report.scheduling_us_before},
      {"flops", report.flops},
      {"traffic_bytes", report.traffic_bytes},
      {"traffic_bytes_before", report.traffic_bytes_before},
      {"weight_bytes", report.weight_bytes},
      {"weight_bytes_before", report.weight_bytes_before},
      {"on_chip_bytes", report.on_chip_bytes},
      {"intensity", intensity(report)},
      {"intensity_before", intensity_before(report)}};
  for (const FusionPattern& pattern : fusion_patterns()) {
    metrics["groups_" + std::string(pattern.name)] = 0;
  }
  for (const FusionReport::Row& row : report.rows) {
    metrics["groups_" + row.pattern] = static_cast<double>(row.groups);
  }
  return metrics;
}

}  // namespace npu
