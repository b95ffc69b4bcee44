// SPDX-License-Identifier: Apache-2.0
// Builds, reads, checks and writes execution plans (npu.partition of npu-ir(5)).
//
// A plan from a document is untrusted: every name and index is checked, then the steps are replayed
// to see that each tensor is on a device before it is read there. Metrics and the strategy's
// details come from the caller and are written as they are. Each operation is O(nodes + edges).
#include "npu/partition/partition_plan.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "ir/stated_partition.hpp"
#include "ops/op_catalogue.hpp"
#include "partition/plan_builder.hpp"
#include "support/checked.hpp"
#include "support/json_fields.hpp"

namespace npu {

const std::string& device_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.device) {
    throw Error(ErrorCode::kInvalidGraph,
                "node '" + node.name + "' has no device; run npu-tag first", graph.location(id));
  }
  return *node.device;
}

void append_transfer(const Graph& graph, PartitionPlan& plan, Transfer transfer) {
  if (transfer.tensors.empty()) return;
  transfer.bytes = 0;
  for (const TensorId id : transfer.tensors) {
    transfer.bytes = saturating_add(transfer.bytes, graph.tensor(id).bytes());
  }
  plan.steps.push_back(
      {PlanStep::Kind::kTransfer, static_cast<std::int32_t>(plan.transfers.size())});
  plan.transfers.push_back(std::move(transfer));
}

void connect_partitions(const Graph& graph, PartitionPlan& plan) {
  std::vector<std::int32_t> partition_of(graph.nodes().size(), -1);
  std::vector<std::string_view> devices;  // few, so a scan is faster than a table
  std::vector<std::int32_t> device_of_partition;
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    const Partition& partition = plan.partitions[p];
    for (const NodeId id : partition.nodes) {
      partition_of[index_of(id)] = static_cast<std::int32_t>(p);
    }
    const auto device = std::find(devices.begin(), devices.end(), partition.device);
    device_of_partition.push_back(static_cast<std::int32_t>(device - devices.begin()));
    if (device == devices.end()) devices.push_back(partition.device);
  }
  BoundaryFinder boundaries(graph);
  for (Partition& partition : plan.partitions)
    partition.boundary = boundaries.find(partition.nodes);
  std::vector<char> resident(graph.tensors().size() * devices.size(), 0);
  std::vector<Transfer> by_source(devices.size());
  std::vector<std::size_t> in_name_order(devices.size());
  std::iota(in_name_order.begin(), in_name_order.end(), std::size_t{0});
  std::sort(in_name_order.begin(), in_name_order.end(),
            [&](std::size_t a, std::size_t b) { return devices[a] < devices[b]; });
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    const Partition& partition = plan.partitions[p];
    const auto to = static_cast<std::int32_t>(p);
    const std::int32_t device = device_of_partition[p];
    for (const TensorId input : partition.boundary.inputs) {
      const TensorInfo& tensor = graph.tensor(input);
      if (tensor.kind != TensorKind::kResult) continue;
      const std::int32_t from = partition_of[index_of(tensor.producer)];
      const std::int32_t source = device_of_partition[static_cast<std::size_t>(from)];
      if (source == device) continue;
      char& is_there =
          resident[index_of(input) * devices.size() + static_cast<std::size_t>(device)];
      if (std::exchange(is_there, char{1}) != 0) continue;
      Transfer& transfer = by_source[static_cast<std::size_t>(source)];
      transfer.from = transfer.tensors.empty() ? from : std::max(transfer.from, from);
      transfer.tensors.push_back(input);
    }
    for (const std::size_t source : in_name_order) {
      Transfer transfer = std::exchange(by_source[source], {});
      transfer.to = to;
      transfer.to_device = partition.device;
      std::sort(transfer.tensors.begin(), transfer.tensors.end());
      append_transfer(graph, plan, std::move(transfer));
    }
    plan.steps.push_back({PlanStep::Kind::kPartition, to});
  }
}

PartitionPlan single_partition_plan(const Graph& graph, const std::string& device) {
  PartitionPlan plan;
  plan.strategy = "single";
  if (graph.nodes().empty()) return plan;
  Partition& partition = plan.partitions.emplace_back();
  partition.device = device;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    partition.nodes.push_back(NodeId{static_cast<std::int32_t>(n)});
  }
  connect_partitions(graph, plan);
  return plan;
}

namespace {

template <typename Ids, typename NameOf>
Json names_of(const Ids& ids, const NameOf& name_of) {
  Json names = Json::array();
  auto& list = names.get_ref<Json::array_t&>();
  list.reserve(ids.size());
  for (const auto id : ids) list.emplace_back(name_of(id));
  return names;
}

Json names_of(const Graph& graph, const std::vector<TensorId>& tensors) {
  return names_of(tensors, [&](TensorId id) { return graph.tensor(id).name; });
}

Json partition_json(const Graph& graph, const Partition& partition, std::size_t id) {
  const NodeWork work = work_of(graph, partition.nodes);
  Json json = {{"id", id}, {"device", partition.device}};
  set_member(json, "nodes",
             names_of(partition.nodes, [&](NodeId node) { return graph.node(node).name; }));
  set_member(json, "inputs", names_of(graph, partition.boundary.inputs));
  set_member(json, "outputs", names_of(graph, partition.boundary.outputs));
  // Counts are whole numbers; written as integers they are exact at any size.
  set_member(json, "flops", saturating_integer(work.flops));
  set_member(json, "bytes", saturating_integer(work.bytes));
  return json;
}

Json step_json(const Graph& graph, const PartitionPlan& plan, const PlanStep& step) {
  if (step.kind == PlanStep::Kind::kPartition) return {{"kind", "partition"}, {"id", step.index}};
  const Transfer& transfer = plan.transfers[static_cast<std::size_t>(step.index)];
  return {{"kind", "transfer"},
          {"direction", "to_" + transfer.to_device},
          {"from", transfer.from},
          {"to", transfer.to},
          {"tensors", names_of(graph, transfer.tensors)},
          {"bytes", transfer.bytes}};
}

/// Reads npu.partition. Every index and name is checked before it is used.
class PlanReader {
 public:
  PlanReader(const Graph& graph, Diagnostics& diagnostics)
      : graph_(graph), diagnostics_(diagnostics), boundaries_(graph) {}

  PartitionPlan read() {
    const Json* json = graph_.npu_member("partition");
    if (json == nullptr) {
      error("", "the document has no partitions; run npu-partition first");
      return plan_;
    }
    if (const Json* strategy = find_member(*json, "strategy"); strategy && strategy->is_string()) {
      plan_.strategy = strategy->get<std::string>();
    }
    const std::size_t faults = diagnostics_.error_count();
    const Json* partitions = list(*json, "partitions");
    const Json* steps = list(*json, "steps");
    if (partitions == nullptr || steps == nullptr) return plan_;
    partition_of_.assign(graph_.nodes().size(), -1);
    for (std::size_t i = 0; i < partitions->size(); ++i) read_partition((*partitions)[i], i);
    for (std::size_t n = 0; n < partition_of_.size(); ++n) {
      const auto id = NodeId{static_cast<std::int32_t>(n)};
      if (partition_of_[n] < 0) {
        error("/partitions", "node '" + graph_.node(id).name + "' is in no partition");
      } else if (auto fault = stated_partition_fault(graph_.node(id), partition_of_[n]);
                 !fault.empty()) {
        diagnostics_.error(graph_.location(id, "/partition"), std::move(fault));
      }
    }
    for (std::size_t i = 0; i < steps->size(); ++i) read_step((*steps)[i], i);
    if (diagnostics_.error_count() == faults) check_execution();
    return plan_;
  }

 private:
  void error(const std::string& pointer, std::string text) {
    diagnostics_.error({.file = graph_.file, .pointer = "/npu/partition" + pointer},
                       std::move(text));
  }

  const Json* list(const Json& json, std::string_view key) {
    const Json* value = find_member(json, key);
    if (value != nullptr && value->is_array()) return value;
    error("/" + std::string(key), "expected an array");
    return nullptr;
  }

  void read_partition(const Json& json, std::size_t index) {
    const std::string pointer = "/partitions/" + std::to_string(index);
    Partition& partition = plan_.partitions.emplace_back();
    const Json* id = find_member(json, "id");
    if (id == nullptr || *id != index) {
      error(pointer + "/id",
            "expected the id " + std::to_string(index) + ": ids count from 0 in list order");
    }
    const Json* device = find_member(json, "device");
    if (device == nullptr || !device->is_string()) {
      error(pointer + "/device", "expected a device name");
      return;
    }
    partition.device = device->get<std::string>();
    const Json* nodes = find_member(json, "nodes");
    if (nodes == nullptr || !nodes->is_array()) {
      error(pointer + "/nodes", "expected an array of node names");
      return;
    }
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      const std::string place = pointer + "/nodes/" + std::to_string(i);
      const Json& name = (*nodes)[i];
      const NodeId node =
          name.is_string() ? graph_.find_node(name.get_ref<const std::string&>()) : NodeId{};
      if (!node.valid()) {
        error(place, "the graph has no node " + name.dump());
        continue;
      }
      auto& owner = partition_of_[index_of(node)];
      if (owner >= 0) {
        error(place, "node '" + graph_.node(node).name + "' is in partition " +
                         std::to_string(owner) + " already");
        continue;
      }
      owner = static_cast<std::int32_t>(index);
      if (graph_.node(node).device != partition.device) {
        error(place,
              "node '" + graph_.node(node).name + "' has the device " +
                  (graph_.node(node).device ? "'" + *graph_.node(node).device + "'" : "null") +
                  ", its partition '" + partition.device + "'");
      }
      partition.nodes.push_back(node);
    }
    std::sort(partition.nodes.begin(), partition.nodes.end());
    partition.boundary = boundaries_.find(partition.nodes);
  }

  bool read_partition_id(const Json& json, std::string_view key, const std::string& pointer,
                         std::int32_t& id) {
    const Json* value = find_member(json, key);
    const std::optional<std::uint64_t> number = json_unsigned(value);
    if (!number || *number >= plan_.partitions.size()) {
      error(pointer + "/" + std::string(key), "expected the id of a partition, found " +
                                                  (value == nullptr ? "nothing" : value->dump()));
      return false;
    }
    id = static_cast<std::int32_t>(*number);
    return true;
  }

  void read_step(const Json& json, std::size_t index) {
    const std::string pointer = "/steps/" + std::to_string(index);
    const Json* kind = find_member(json, "kind");
    if (kind != nullptr && *kind == "partition") {
      PlanStep step{PlanStep::Kind::kPartition, 0};
      if (read_partition_id(json, "id", pointer, step.index)) plan_.steps.push_back(step);
      return;
    }
    if (kind == nullptr || *kind != "transfer") {
      error(pointer + "/kind", "expected \"partition\" or \"transfer\", found " +
                                   (kind == nullptr ? "nothing" : kind->dump()));
      return;
    }
    Transfer transfer;
    if (!read_partition_id(json, "from", pointer, transfer.from) ||
        !read_partition_id(json, "to", pointer, transfer.to)) {
      return;
    }
    transfer.to_device = plan_.partitions[static_cast<std::size_t>(transfer.to)].device;
    const Json* tensors = find_member(json, "tensors");
    if (tensors == nullptr || !tensors->is_array()) {
      error(pointer + "/tensors", "expected an array of tensor names");
      return;
    }
    for (const Json& name : *tensors) {
      const TensorId id =
          name.is_string() ? graph_.find_tensor(name.get_ref<const std::string&>()) : TensorId{};
      if (!id.valid()) {
        error(pointer + "/tensors", "the graph has no tensor " + name.dump());
        return;
      }
      transfer.tensors.push_back(id);
    }
    append_transfer(graph_, plan_, std::move(transfer));
  }

  /// Replays the steps and tracks which tensors are on which device.
  void check_execution() {
    std::vector<std::set<std::string_view>> devices(graph_.tensors().size());
    std::vector<char> done(plan_.partitions.size(), 0);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const std::string pointer = "/steps/" + std::to_string(s);
      const PlanStep& step = plan_.steps[s];
      if (step.kind == PlanStep::Kind::kTransfer) {
        const Transfer& transfer = plan_.transfers[static_cast<std::size_t>(step.index)];
        for (const TensorId id : transfer.tensors) {
          auto& places = devices[index_of(id)];
          if (places.empty()) {
            error(pointer,
                  "tensor '" + graph_.tensor(id).name + "' is transferred before it is produced");
          }
          places.insert(transfer.to_device);
        }
        continue;
      }
      const Partition& partition = plan_.partitions[static_cast<std::size_t>(step.index)];
      if (done[static_cast<std::size_t>(step.index)]++ != 0) {
        error(pointer, "partition " + std::to_string(step.index) + " runs twice");
        return;
      }
      for (const TensorId input : partition.boundary.inputs) {
        const TensorInfo& tensor = graph_.tensor(input);
        if (tensor.kind != TensorKind::kResult) continue;
        const auto& places = devices[index_of(input)];
        if (!places.contains(partition.device)) {
          error(pointer, "partition " + std::to_string(step.index) + " reads tensor '" +
                             tensor.name + "', which is " +
                             (places.empty() ? "not produced yet"
                                             : "not on device '" + partition.device + "'"));
        }
      }
      for (const TensorId output : partition.boundary.outputs) {
        devices[index_of(output)].insert(partition.device);
      }
    }
    for (std::size_t p = 0; p < done.size(); ++p) {
      if (done[p] == 0) error("/steps", "partition " + std::to_string(p) + " never runs");
    }
  }

  const Graph& graph_;
  Diagnostics& diagnostics_;
  BoundaryFinder boundaries_;
  PartitionPlan plan_;
  std::vector<std::int32_t> partition_of_;
};

}  // namespace

PartitionPlan read_partition_plan(const Graph& graph, Diagnostics& diagnostics) {
  return PlanReader(graph, diagnostics).read();
}

void write_partition_plan(Graph& graph, const PartitionPlan& plan, Json metrics, Json details) {
  Json partitions = Json::array();
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    partitions.push_back(partition_json(graph, plan.partitions[p], p));
    for (const NodeId id : plan.partitions[p].nodes) {
      graph.node(id).partition = static_cast<std::int64_t>(p);
    }
  }
  Json steps = Json::array();
  for (const PlanStep& step : plan.steps) steps.push_back(step_json(graph, plan, step));
  Json json = {{"strategy", plan.strategy}};
  set_member(json, "partitions", std::move(partitions));
  set_member(json, "steps", std::move(steps));
  set_member(json, "metrics", std::move(metrics));
  for (auto& [key, value] : details.get_ref<Json::object_t&>()) {
    set_member(json, key, std::move(value));
  }
  graph.set_npu_member("partition", std::move(json));
}

}  // namespace npu
