// SPDX-License-Identifier: Apache-2.0
// Looks up measured times by name and falls back on the roofline. A tensor that was not measured
// crossing a border gets its time from the link's fit.
#include "cost/measured_cost.hpp"

#include "cost/roofline.hpp"
#include "npu/support/error.hpp"

namespace npu {

MeasuredCost::MeasuredCost(NodeTable table, const Graph& graph, const Target& target)
    : table_(std::move(table)) {
  if (const std::string digest = npu::model_digest(graph); digest != table_.model_digest) {
    throw Error(ErrorCode::kInvalidGraph,
                "the table was measured on another model ('" + table_.model + "', digest " +
                    table_.model_digest + "); this one is '" + graph.model_name() + "', digest " +
                    digest + ": measure it with npu-profile",
                {.file = table_.file, .pointer = "/model_digest"});
  }
  for (std::size_t d = 0; d < table_.devices.size(); ++d) {
    const NodeTableDevice& entry = table_.devices[d];
    const Device* device = target.find_device(entry.name);
    if (device == nullptr || device->backend == entry.backend) continue;
    throw Error(ErrorCode::kInvalidGraph,
                "device '" + entry.name + "' was measured with backend '" + entry.backend +
                    "', target '" + target.name + "' has '" + device->backend +
                    "' for it: measure again with npu-profile --target",
                {.file = table_.file, .pointer = "/devices/" + std::to_string(d)});
  }
  for (std::size_t i = 0; i < table_.nodes.size(); ++i) {
    const NodeTime& entry = table_.nodes[i];
    std::vector<std::int32_t>& row = nodes_[entry.node];
    row.resize(table_.devices.size(), -1);
    row[static_cast<std::size_t>(table_.find_device(entry.device))] = static_cast<std::int32_t>(i);
  }
  for (std::size_t i = 0; i < table_.borders.size(); ++i) {
    borders_[table_.borders[i].tensor].push_back(i);
  }
}

const NodeTime* MeasuredCost::find(const Graph& graph, NodeId node, const Device& device) const {
  const std::int32_t index = table_.find_device(device.name);
  const auto row = nodes_.find(graph.node(node).name);
  if (index < 0 || row == nodes_.end()) return nullptr;
  const std::int32_t entry = row->second[static_cast<std::size_t>(index)];
  return entry < 0 ? nullptr : &table_.nodes[static_cast<std::size_t>(entry)];
}

double MeasuredCost::node_us(const Graph& graph, NodeId node, const Device& device) const {
  const NodeTime* entry = find(graph, node, device);
  return entry != nullptr ? entry->time.us : npu::node_us(graph, graph.node(node), device);
}

bool MeasuredCost::is_measured(const Graph& graph, NodeId node, const Device& device) const {
  return find(graph, node, device) != nullptr || device.is_alias(graph.node(node).op_type);
}

double MeasuredCost::launch_us(const Device& device) const {
  const std::int32_t index = table_.find_device(device.name);
  return index < 0 ? device.launch_overhead_us
                   : table_.devices[static_cast<std::size_t>(index)].partition_us;
}

double MeasuredCost::transfer_us(const Target& target, std::string_view from, std::string_view to,
                                 double bytes) const {
  if (from == to) return 0;
  for (const LinkFit& link : table_.links) {
    if (link.from != from || link.to != to) continue;
    return link.latency_us + (link.bytes_per_s > 0 ? 1e6 * bytes / link.bytes_per_s : 0);
  }
  return npu::transfer_us(target, from, to, bytes);
}

double MeasuredCost::tensor_us(const Graph& graph, TensorId tensor, const Target& target,
                               std::string_view from, std::string_view to) const {
  if (from == to) return 0;
  const TensorInfo& info = graph.tensor(tensor);
  if (const auto found = borders_.find(info.name); found != borders_.end()) {
    for (const std::size_t i : found->second) {
      const BorderTime& border = table_.borders[i];
      if (border.from == from && border.to == to) return border.time.us;
    }
  }
  return transfer_us(target, from, to, static_cast<double>(info.bytes()));
}

Json MeasuredCost::provenance() const {
  return {{"source", "profile"},
          {"model_digest", table_.model_digest},
          {"precision", table_.precision},
          {"threads", table_.threads}};
}

}  // namespace npu
