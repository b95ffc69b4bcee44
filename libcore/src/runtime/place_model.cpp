// SPDX-License-Identifier: Apache-2.0
// Decides where the nodes of a document run that npu-run or npu-compile gets.
//
// What the document says counts. If it says nothing, the cost model decides: the strategy mincut
// weighs each node's time on each device against transfers and launches. It minimises the time of
// nodes and copies; the plan is compared with every device that can run the whole model by the
// metric that is printed, so that none of them is predicted to be faster. Cost: those of npu-tag
// and npu-partition.
#include "runtime/place_model.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "device/backend.hpp"
#include "ir/device_reason.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/ids.hpp"
#include "npu/target/select_devices.hpp"
#include "support/text.hpp"
#include "target/custom_ops.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

bool has_tags(const Graph& graph) {
  return !graph.folded().empty() ||
         std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.device.has_value(); });
}

void warn_of_other_target(const Graph& graph, const DeviceChoice& where, const Target& target,
                          Diagnostics& diagnostics) {
  if (where.target.empty() || where.target == target.name) return;
  diagnostics.warning({.file = graph.file}, "--target " + where.target +
                                                " is ignored: the document is tagged for target '" +
                                                target.name + "'");
}

void warn_of_ignored_devices(const Graph& graph, const DeviceChoice& where,
                             Diagnostics& diagnostics) {
  for (const auto& [option, list] :
       {std::pair{"--devices", &where.devices}, {"--exclude-device", &where.excluded}}) {
    if (list->empty()) continue;
    diagnostics.warning({.file = graph.file},
                        std::string(option) + " is ignored: the document is tagged already");
  }
}

/// What npu-tag --ask wrote down was said by a backend that may be another one here.
void warn_of_other_backends(const Graph& graph, const PlacedModel& placed,
                            Diagnostics& diagnostics) {
  const Json* devices = find_member(*placed.target.json, "devices");
  for (std::size_t i = 0; i < placed.target.devices.size(); ++i) {
    const Device& device = placed.target.devices[i];
    const Json* asked = devices != nullptr ? find_member((*devices)[i], "asked") : nullptr;
    const Json* print =
        asked != nullptr && asked->is_object() ? find_member(*asked, "fingerprint") : nullptr;
    const bool is_used =
        std::any_of(placed.plan.partitions.begin(), placed.plan.partitions.end(),
                    [&](const Partition& partition) { return partition.device == device.name; });
    if (print == nullptr || !is_used || Backend::find_file(device.backend).empty()) continue;
    const auto backend = Backend::load(device.backend);
    const std::string& here = backend->device(device_instance(device)).fingerprint;
    if (*print == here) continue;
    diagnostics.warning({.file = graph.file},
                        "what device '" + device.name + "' takes was asked of another one (" +
                            printable_text(print->is_string() ? print->get<std::string>() : "") +
                            "; here it is " + here + "); npu-tag --ask asks again");
  }
}

/// The target of a document without tags.
Target asked_target(const Graph& graph, const DeviceChoice& where, Diagnostics& diagnostics) {
  if (graph.npu_member("target") == nullptr) {
    return select_devices(load_target(where.target.empty() ? "host" : where.target), where.devices,
                          where.excluded);
  }
  const Target target = graph_target(graph);
  warn_of_other_target(graph, where, target, diagnostics);
  return select_devices(target, where.devices, where.excluded);
}

/// The device that runs the whole graph in the least predicted time; its time in `us`.
const Device* best_single_device(const Graph& graph, const Target& target, double& us) {
  const Device* best = nullptr;
  for (const Device& device : target.devices) {
    const auto ids = ids_of<NodeId>(graph.nodes());
    if (device.backend.empty() || !runs_all(graph, ids, device)) continue;
    const PlanMetrics metrics =
        plan_metrics(graph, single_partition_plan(graph, device.name), target);
    if (best != nullptr && metrics.predicted_us >= us) continue;
    best = &device;
    us = metrics.predicted_us;
  }
  return best;
}

/// "npu 69, cpu 2, folded 4": how many nodes are where, without what has none.
std::string placement_text(const Graph& graph, const PlanMetrics& metrics, const Target& target) {
  std::string text;
  const auto add = [&](const std::string& where, std::int64_t count) {
    if (count > 0) text += (text.empty() ? "" : ", ") + where + " " + std::to_string(count);
  };
  for (const Device& device : target.devices) {
    const auto found = metrics.nodes_by_device.find(device.name);
    if (found != metrics.nodes_by_device.end()) add(device.name, found->second);
  }
  add("folded", static_cast<std::int64_t>(graph.folded().size()));
  return text.empty() ? "none" : text;
}

}  // namespace

PlacedModel read_placed(const Graph& graph, Diagnostics& diagnostics) {
  return {graph_target(graph), read_partition_plan(graph, diagnostics)};
}

void warn_of_stated(const Graph& graph, const PlacedModel& placed, const DeviceChoice& where,
                    Diagnostics& diagnostics) {
  warn_of_other_target(graph, where, placed.target, diagnostics);
  warn_of_ignored_devices(graph, where, diagnostics);
  warn_of_other_backends(graph, placed, diagnostics);
}

PlacedModel place_by_cost(Graph& graph, const DeviceChoice& where,
                          const std::vector<std::string>& load_ops, Diagnostics& diagnostics) {
  PlacedModel placed;
  placed.target = with_custom_ops(asked_target(graph, where, diagnostics), load_ops);
  const Target& target = placed.target;
  tag_ops(graph, target, {}, diagnostics);
  if (diagnostics.has_errors()) return placed;
  PartitionOptions options;
  options.strategy = Strategy::kMinCut;
  PartitionResult result = partition_graph(graph, options, diagnostics);
  double single_us = 0;
  const Device* single = best_single_device(graph, target, single_us);
  if (single != nullptr && single_us < result.metrics.predicted_us) {
    for (Node& node : graph.nodes()) {
      if (node.device == single->name) continue;
      node.device = single->name;
      DeviceReason(DeviceReason::Kind::kCheaper, single->name).store(node);
    }
    options.strategy = Strategy::kConvex;
    result = partition_graph(graph, options, diagnostics);
  }
  placed.plan = std::move(result.plan);
  placed.note = "placed by cost for target '" + target.name +
                "': nodes: " + placement_text(graph, result.metrics, target) +
                "; partitions: " + std::to_string(result.metrics.partitions) +
                "; predicted ms: " + fixed_text(result.metrics.predicted_us / 1000, 3);
  return placed;
}

PlacedModel place_model(Graph& graph, const DeviceChoice& where,
                        const std::vector<std::string>& load_ops, Diagnostics& diagnostics) {
  const bool has_plan = graph.npu_member("partition") != nullptr;
  if (!has_plan && !has_tags(graph)) return place_by_cost(graph, where, load_ops, diagnostics);
  if (graph.npu_member("target") == nullptr) {
    graph.set_npu_member("target", *load_target(where.target.empty() ? "host" : where.target).json);
  }
  PlacedModel placed =
      has_plan ? read_placed(graph, diagnostics)
               : PlacedModel{graph_target(graph), partition_graph(graph, {}, diagnostics).plan};
  warn_of_stated(graph, placed, where, diagnostics);
  return placed;
}

void warn_of_refusals(const Graph& graph, const CompiledModel& model, Diagnostics& diagnostics) {
  for (const Refusal& refusal : model.refusals) {
    diagnostics.warning({.file = graph.file}, std::to_string(refusal.nodes) + " nodes from '" +
                                                  refusal.first_node + "' on go to " + refusal.to +
                                                  ", since " + refusal.device +
                                                  " refuses them: " + refusal.reason);
  }
}

}  // namespace npu
