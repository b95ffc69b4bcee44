// SPDX-License-Identifier: Apache-2.0
// The report of a compiled partition: what its backend says, and numbers that follow from the graph
// where it does not say them. O(nodes).
#include "compile/partition_report.hpp"

#include "npu/compile/memory_needs.hpp"
#include "ops/op_catalogue.hpp"
#include "support/checked.hpp"

namespace npu {

void complete_report(Json& report, const Graph& graph, const Partition& partition,
                     std::int64_t predicted_kernels) {
  double flops = 0;
  for (const NodeId id : partition.nodes) flops += node_flops(graph, graph.node(id));
  std::int64_t weight_bytes = 0;
  for (const TensorId id : partition.boundary.weights) {
    weight_bytes = saturating_add(weight_bytes, graph.tensor(id).bytes());
  }
  report["nodes"] = partition.nodes.size();
  // A backend that counts no kernels runs node by node, or does not tell.
  if (find_member(report, "kernels") != nullptr) report["predicted_kernels"] = predicted_kernels;
  if (find_member(report, "flops") == nullptr) report["flops"] = saturating_integer(flops);
  if (find_member(report, "weight_bytes") == nullptr) report["weight_bytes"] = weight_bytes;
}

Json device_report(DeviceInstance& instance, const Blob& blob) {
  Json report = instance.blob_report(blob);
  report.erase("memory");  // it has its own function
  if (const auto memory = instance.blob_memory(blob)) report["memory"] = memory_json(*memory);
  return report;
}

Json partition_report(DeviceInstance& instance, const Blob& blob, const Graph& graph,
                      const Partition& partition, std::int64_t predicted_kernels) {
  Json report = device_report(instance, blob);
  complete_report(report, graph, partition, predicted_kernels);
  return report;
}

}  // namespace npu
