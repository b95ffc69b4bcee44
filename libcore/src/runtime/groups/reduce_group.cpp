// SPDX-License-Identifier: Apache-2.0
// Makes the smallest model that shows a difference: what to send to those who wrote a backend.
#include "runtime/groups/reduce_group.hpp"

#include <filesystem>
#include <utility>

#include "npu/ir/json_writer.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"

namespace npu {

ReducedPart reduce_part(const Graph& graph, std::vector<NodeId> nodes, TensorMap values,
                        const PartDiffers& differs) {
  BoundaryFinder finder(graph);
  const auto still_differs = [&](const std::vector<NodeId>& rest) {
    return !rest.empty() && differs(rest, tensor_names(graph, finder.find(rest).outputs), values);
  };
  for (;;) {
    const std::vector<NodeId> rest(nodes.begin(), nodes.end() - 1);
    if (!still_differs(rest)) break;
    nodes = rest;
  }
  for (;;) {
    const std::vector<NodeId> rest(nodes.begin() + 1, nodes.end());
    if (!still_differs(rest)) break;
    nodes = rest;
  }
  const SubgraphBoundary boundary = finder.find(nodes);
  return {nodes, tensor_names(graph, boundary.inputs), tensor_names(graph, boundary.outputs),
          std::move(values)};
}

std::vector<std::string> write_part(const ModelPiece& piece, const ReducedPart& part,
                                    const PartRunner& runner, const std::string& file) {
  const SubgraphBoundary boundary = find_boundary(piece.graph, part.nodes);
  Graph graph = extract(piece.graph, part.nodes, boundary);
  graph.file = file;
  Diagnostics notes;
  tag_ops(graph, *runner.target, {.force = {{piece.device, "*"}}, .fold = false}, notes);
  const PartitionPlan plan = single_partition_plan(graph, piece.device);
  write_partition_plan(graph, plan, Json::object());
  const std::filesystem::path path(file);
  const auto beside = [&](const std::string& ending) {
    return (path.parent_path() / path.stem()).string() + ending;
  };
  graph.set_npu_member("weights_file", path.stem().string() + ".safetensors");
  std::vector<std::pair<std::string, Tensor>> weights;
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind != TensorKind::kWeight) continue;
    weights.emplace_back(tensor.weight_key.empty() ? tensor.name : tensor.weight_key,
                         runner.weights.at(tensor.name));
  }
  const auto chosen = [&](const std::vector<std::string>& names) {
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const std::string& name : names) tensors.emplace_back(name, part.values.at(name));
    return tensors;
  };
  write_safetensors(beside(".safetensors"), weights);
  write_safetensors(beside(".inputs.safetensors"), chosen(part.inputs));
  write_safetensors(beside(".outputs.safetensors"), chosen(part.results));
  write_file_atomically(file, write_graph(graph));
  return {file, beside(".safetensors"), beside(".inputs.safetensors"),
          beside(".outputs.safetensors")};
}

}  // namespace npu
