// SPDX-License-Identifier: Apache-2.0
// Formats a node table for npu-profile --report: placements, borders, and the nodes that take
// longest.
#include <algorithm>
#include <map>

#include "profile/profile_model.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::size_t kMostRows = 20;

std::string ms(double us) { return fixed_text(us / 1000, 3); }

std::string percent(double share) { return fixed_text(100 * share, 1) + " %"; }

std::string line_text(double latency_us, double bytes_per_s, std::int32_t samples) {
  return fixed_text(latency_us, 1) + " us and " +
         (bytes_per_s > 0 ? bytes_text(bytes_per_s) + "/s" : "nothing for bytes") + ", of " +
         std::to_string(samples) + " tensors";
}

/// What int8 takes beside float32, of the nodes that can be int8.
std::string int8_text(const NodeTable& table) {
  std::string text;
  for (const NodeTableDevice& device : table.devices) {
    std::map<std::string, double> int8;
    double integers = 0;
    for (const NodeTime& node : table.int8) {
      if (node.device != device.name) continue;
      int8.emplace(node.node, node.time.us);
      integers += node.time.us;
    }
    if (int8.empty()) continue;
    double floats = 0;
    for (const NodeTime& node : table.nodes) {
      if (node.device == device.name && int8.contains(node.node)) floats += node.time.us;
    }
    text += "int8 on " + device.name + ": " + std::to_string(int8.size()) + " nodes take " +
            ms(integers) + " ms, " + ms(floats) + " ms in float32\n";
  }
  for (const ConversionFit& fit : table.conversions) {
    text += std::string(fit.to_int8 ? "float32 -> int8" : "int8 -> float32") + " on " + fit.device +
            ": " + line_text(fit.latency_us, fit.bytes_per_s, fit.samples) + "\n";
  }
  return text;
}

}  // namespace

std::string format_node_table(const Graph& graph, const NodeTable& table) {
  std::vector<std::vector<std::string>> rows{{"placement", ">partitions", ">copied", ">measured ms",
                                              ">MAD ms", ">predicted ms", ">error", ">runs"}};
  for (const PlacementTime& placement : table.placements) {
    const double us = placement.time.us;
    rows.push_back({placement.name, std::to_string(placement.partitions),
                    std::to_string(placement.copied_tensors), ms(us), ms(placement.time.mad_us),
                    ms(placement.predicted_us),
                    us > 0 ? percent((placement.predicted_us - us) / us) : "-",
                    std::to_string(placement.time.runs)});
  }
  std::string text = table_text(rows) + "\n";
  for (const NodeTableDevice& device : table.devices) {
    text += device.name + " (" + device.backend + "): " + fixed_text(device.partition_us, 1) +
            " us for each partition\n";
  }
  for (const LinkFit& link : table.links) {
    text += link.from + " -> " + link.to + ": " +
            line_text(link.latency_us, link.bytes_per_s, link.samples) + " or copies\n";
  }
  text += int8_text(table);
  std::map<std::string, std::map<std::string, double>> times;  // node, device
  for (const NodeTime& node : table.nodes) times[node.node][node.device] = node.time.us;
  std::vector<std::pair<double, const Node*>> order;
  for (const Node& node : graph.nodes()) {
    double most = 0;
    for (const auto& [device, us] : times[node.name]) most = std::max(most, us);
    order.emplace_back(most, &node);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (order.size() > kMostRows) order.resize(kMostRows);
  rows = {{"node", "op"}};
  for (const NodeTableDevice& device : table.devices) rows[0].push_back(">us on " + device.name);
  for (const auto& [most, node] : order) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {node->name, node->op_type};
    for (const NodeTableDevice& device : table.devices) {
      const auto found = times[node->name].find(device.name);
      row.push_back(found == times[node->name].end() ? "-" : fixed_text(found->second, 1));
    }
  }
  return text + "\n" + table_text(rows);
}

}  // namespace npu
