// SPDX-License-Identifier: Apache-2.0
// What npu-tag --report prints and --assert compares: op types by device, coverage, and what left
// the target's first device. O(nodes log nodes).
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "ir/device_reason.hpp"
#include "ir/folded_nodes.hpp"
#include "npu/passes/tag.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/tag/find_constants.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

std::string percent(double part, double whole) {
  return whole == 0 ? "-" : fixed_text(100 * part / whole, 1) + "%";
}

void add_to(TagReportRow& row, const Node& node, const std::string& device, double flops,
            double bytes) {
  row.op_type = node.op_type;
  row.device = device;
  row.reason = node.device_reason.value_or("");
  ++row.count;
  row.flops += flops;
  row.bytes += bytes;
}

}  // namespace

TagReport tag_report(const Graph& graph, const Target& target) {
  TagReport report;
  std::map<std::string, std::size_t> order;
  for (const Device& device : target.devices) {
    order.emplace(device.name, report.devices.size());
    report.devices.push_back({.device = device.name});
  }
  std::map<std::tuple<std::size_t, std::string, std::string>, TagReportRow> rows;
  for (const Node& node : graph.nodes()) {
    const double flops = node_flops(graph, node);
    const double bytes = node_bytes(graph, node);
    ++report.nodes;
    report.flops += flops;
    report.bytes += bytes;
    const auto found = order.find(node.device.value_or(""));
    if (found == order.end()) continue;  // not tagged for this target
    DeviceShare& share = report.devices[found->second];
    ++share.nodes;
    share.flops += flops;
    share.bytes += bytes;
    const std::string reason = node.device_reason.value_or("");
    add_to(rows[{found->second, node.op_type, reason}], node, share.device, flops, bytes);
  }
  for (const Node* node : document_nodes(graph)) {
    const Json* op_type = find_member(node->json, "decomposed");
    if (op_type != nullptr && op_type->is_string()) {
      ++report.decomposed[op_type->get<std::string>()];
    }
  }
  for (const FoldedNode& folded : graph.folded()) {
    const Node& node = folded.node;
    ++report.folded;
    add_to(rows[{order.size(), node.op_type, node.device_reason.value_or("")}], node, "",
           node_flops(graph, node), node_bytes(graph, node));
  }
  report.kept_constants = count_kept_constants(graph, target);
  const auto place = [&](const TagReportRow& row) {
    return row.device.empty() ? order.size() : order.at(row.device);
  };
  for (auto& [key, row] : rows) report.rows.push_back(std::move(row));
  std::stable_sort(report.rows.begin(), report.rows.end(),
                   [&](const TagReportRow& a, const TagReportRow& b) {
                     return std::tuple(place(a), -a.count) < std::tuple(place(b), -b.count);
                   });
  return report;
}

std::string format_tag_report(const TagReport& report) {
  std::vector<std::vector<std::string>> ops{
      {"op", "device", ">nodes", ">flops", ">bytes", "reason"}};
  for (const TagReportRow& row : report.rows) {
    if (row.device.empty()) continue;
    ops.push_back({row.op_type, row.device, std::to_string(row.count), flops_text(row.flops),
                   bytes_text(row.bytes), row.reason.empty() ? "-" : row.reason});
  }
  std::string text = table_text(ops) + "\n" + format_coverage(report);
  if (report.decomposed.empty()) return text;
  std::vector<std::vector<std::string>> decomposed{{"decomposed", ">nodes"}};
  for (const auto& [op_type, count] : report.decomposed) {
    decomposed.push_back({printable_text(op_type), std::to_string(count)});
  }
  return text + "\n" + table_text(decomposed);
}

namespace {

/// The rows of nodes that left the first device.
std::vector<const TagReportRow*> rows_that_left(const TagReport& report) {
  std::vector<const TagReportRow*> rows;
  for (const TagReportRow& row : report.rows) {
    if (row.device.empty() || row.device == report.devices.front().device) continue;
    if (row.op_type == kGetitem || DeviceReason::parse(row.reason).is_by_hand()) continue;
    rows.push_back(&row);
  }
  return rows;
}

}  // namespace

std::int64_t left_device(const TagReport& report) {
  std::int64_t nodes = 0;
  for (const TagReportRow* row : rows_that_left(report)) nodes += row->count;
  return nodes;
}

std::string format_left_device(const TagReport& report) {
  constexpr std::size_t kMostNamed = 5;
  if (report.devices.empty()) return {};
  const std::string start = "left " + report.devices.front().device + ": ";
  const std::int64_t nodes = left_device(report);
  if (nodes == 0) return start + "nothing\n";
  std::vector<std::string> named;
  const std::vector<const TagReportRow*> rows = rows_that_left(report);
  for (const TagReportRow* row : rows) {
    if (named.size() == kMostNamed) break;
    named.push_back(fmt::format("{} {}", row->count, printable_text(short_name(row->op_type))));
    if (!row->reason.empty()) named.back() += " (" + printable_text(row->reason) + ")";
  }
  const std::size_t others = rows.size() - named.size();
  return fmt::format("{}{} node{}: {}{}\n", start, nodes, nodes == 1 ? "" : "s",
                     fmt::join(named, ", "),
                     others == 0 ? "" : fmt::format(", and {} more kinds", others));
}

std::string format_coverage(const TagReport& report) {
  std::vector<std::vector<std::string>> devices{
      {"device", ">nodes", ">share", ">flops", ">share", ">bytes", ">share"}};
  for (const DeviceShare& share : report.devices) {
    devices.push_back({share.device, std::to_string(share.nodes),
                       percent(static_cast<double>(share.nodes), static_cast<double>(report.nodes)),
                       flops_text(share.flops), percent(share.flops, report.flops),
                       bytes_text(share.bytes), percent(share.bytes, report.bytes)});
  }
  std::string text = table_text(devices);
  const std::int64_t constants = report.folded + report.kept_constants;
  if (constants > 0) {
    text += fmt::format("constant: {} node{}, computed once, when the model is compiled\n",
                        constants, constants == 1 ? "" : "s");
  }
  return text + format_left_device(report);
}

std::map<std::string, double> tag_metrics(const TagReport& report) {
  std::map<std::string, double> metrics{{"nodes", static_cast<double>(report.nodes)},
                                        {"flops", report.flops},
                                        {"bytes", report.bytes},
                                        {"nodes_folded", static_cast<double>(report.folded)}};
  metrics["nodes_decomposed"] = 0;
  for (const auto& [op_type, count] : report.decomposed) {
    metrics["nodes_decomposed"] += static_cast<double>(count);
  }
  for (const DeviceShare& share : report.devices) {
    metrics["nodes_" + share.device] = static_cast<double>(share.nodes);
    metrics["flops_" + share.device] = share.flops;
    metrics["bytes_" + share.device] = share.bytes;
  }
  const DeviceShare first = report.devices.empty() ? DeviceShare{} : report.devices.front();
  const auto coverage = [](double part, double whole) { return whole == 0 ? 1 : part / whole; };
  metrics["coverage_nodes"] =
      coverage(static_cast<double>(first.nodes), static_cast<double>(report.nodes));
  metrics["coverage_flops"] = coverage(first.flops, report.flops);
  metrics["coverage_bytes"] = coverage(first.bytes, report.bytes);
  std::set<std::string_view> unsupported;
  for (const TagReportRow* row : rows_that_left(report)) unsupported.insert(row->op_type);
  metrics["unsupported_ops"] = static_cast<double>(unsupported.size());
  metrics["left_device"] = static_cast<double>(left_device(report));
  return metrics;
}

}  // namespace npu
