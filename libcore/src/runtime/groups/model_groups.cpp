// SPDX-License-Identifier: Apache-2.0
// A plan taken apart at the borders of its fusion groups.
//
// Every partition is written as the sub-IR that its backend gets, which states the groups. A result
// of a group is in memory in any case, so that the sub-IR may name it as an output without changing
// what is compiled: partitions run whole, with all borders visible, or in parts.
#include "runtime/groups/model_groups.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_set>

#include "compile/sub_ir.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "passes/fusion/fusion_groups.hpp"

namespace npu {
namespace {

/// The groups in an order of execution; of those that may run next, the first in the list.
std::vector<std::size_t> execution_order(const Graph& graph,
                                         const std::vector<GivenGroup>& groups) {
  std::vector<std::size_t> group_of(graph.nodes().size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const NodeId node : groups[g].nodes) group_of[index_of(node)] = g;
  }
  std::vector<std::vector<std::size_t>> readers(groups.size());
  std::vector<std::size_t> open(groups.size());
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind != TensorKind::kResult) continue;
    const std::size_t from = group_of[index_of(tensor.producer)];
    for (const NodeId consumer : tensor.consumers) {
      const std::size_t to = group_of[index_of(consumer)];
      if (to == from) continue;
      readers[from].push_back(to);
      ++open[to];
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (open[g] == 0) ready.push(g);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const std::size_t reader : readers[order.back()]) {
      if (--open[reader] == 0) ready.push(reader);
    }
  }
  return order;
}

void add_groups(const ModelPiece& piece, std::size_t index, std::vector<ModelGroup>& result) {
  const std::vector<GivenGroup> given = given_groups(piece.graph, all_nodes(piece.graph));
  BoundaryFinder finder(piece.graph);
  for (const std::size_t g : execution_order(piece.graph, given)) {
    const SubgraphBoundary boundary = finder.find(given[g].nodes);
    if (boundary.outputs.empty()) continue;  // nobody reads what it computes
    result.push_back({index, given[g].nodes, tensor_names(piece.graph, boundary.inputs),
                      tensor_names(piece.graph, boundary.outputs)});
  }
}

}  // namespace

ModelGroups find_model_groups(const Graph& graph, const PartitionPlan& plan, const Target& target) {
  ModelGroups result;
  for (const PlanStep& step : plan.steps) {
    if (step.kind != PlanStep::Kind::kPartition) continue;
    const Partition& partition = plan.partitions[static_cast<std::size_t>(step.index)];
    const Device* device = target.find_device(partition.device);
    if (device == nullptr || partition.boundary.outputs.empty()) continue;
    result.pieces.push_back(
        {static_cast<std::size_t>(step.index), partition.device,
         fused_part(graph, partition.nodes, partition.boundary, device_patterns(*device))});
    add_groups(result.pieces.back(), result.pieces.size() - 1, result.groups);
  }
  return result;
}

std::vector<Tensor> PartRunner::weights_of(const Graph& graph) const {
  std::vector<Tensor> data(graph.tensors().size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    const TensorInfo& tensor = graph.tensors()[i];
    if (tensor.kind == TensorKind::kWeight) data[i] = weights.at(tensor.name);
  }
  return data;
}

std::vector<Tensor> PartRunner::inputs_of(const Graph& graph, const TensorMap& values) {
  std::vector<Tensor> inputs;
  for (const TensorId input : graph.graph_inputs()) {
    inputs.push_back(values.at(graph.tensor(input).name));
  }
  return inputs;
}

void PartRunner::run_compiled(const ModelPiece& piece, const CompiledPartition& compiled,
                              const std::vector<std::string>& taps, TensorMap& values) const {
  const Graph& graph = piece.graph;
  PartitionPlan plan = single_partition_plan(graph, piece.device);
  // In the order in which its program takes them.
  plan.partitions.front().boundary.inputs = graph.graph_inputs();
  plan.partitions.front().boundary.outputs = graph.graph_outputs();
  ExecutorOptions options = executor;
  options.taps = taps;
  Executor program(graph, plan, *target, weights_of(graph), options, {compiled}, devices);
  std::vector<Tensor> results = program.run(inputs_of(graph, values), nullptr);
  std::vector<std::string> names = tensor_names(graph, graph.graph_outputs());
  names.insert(names.end(), taps.begin(), taps.end());
  for (std::size_t i = 0; i < results.size(); ++i) values[names[i]] = std::move(results[i]);
}

Json PartRunner::run(const Graph& graph, const std::vector<NodeId>& nodes,
                     const std::vector<std::string>& outputs, const std::string& device,
                     TensorMap& values) const {
  SubgraphBoundary boundary = find_boundary(graph, nodes);
  boundary.outputs.clear();
  for (const std::string& name : outputs) boundary.outputs.push_back(graph.find_tensor(name));
  const Graph part = extract(graph, nodes, boundary);
  const PartitionPlan plan = single_partition_plan(part, device);
  const std::vector<Tensor> data = weights_of(part);
  const CompiledModel compiled = compile_plan(part, plan, *target, data, compile, nullptr, devices);
  Executor program(part, plan, *target, data, executor, compiled.partitions, compiled.devices);
  std::vector<Tensor> results = program.run(inputs_of(part, values), nullptr);
  for (std::size_t i = 0; i < results.size(); ++i) values[outputs[i]] = std::move(results[i]);
  return *compiled.partitions.at(0).report;
}

std::vector<std::string> tensor_names(const Graph& graph, const std::vector<TensorId>& tensors) {
  std::vector<std::string> names;
  for (const TensorId id : tensors) names.push_back(graph.tensor(id).name);
  return names;
}

TensorMap weights_by_name(const Graph& graph, const std::vector<Tensor>& weights) {
  TensorMap result;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorInfo& tensor = graph.tensors()[i];
    if (tensor.kind == TensorKind::kWeight) result.emplace(tensor.name, weights[i]);
  }
  return result;
}

}  // namespace npu
