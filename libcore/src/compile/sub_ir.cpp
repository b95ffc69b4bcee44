// SPDX-License-Identifier: Apache-2.0
// Makes what a backend gets to compile: the nodes, and which of them are to be one kernel.
//
// Backends look for no groups of their own. A document that npu-fuse has not seen is therefore
// fused here, each part for itself: groups then stay within what a backend gets.
#include "compile/sub_ir.hpp"

#include <algorithm>
#include <map>

#include "npu/ir/json_writer.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/support/error.hpp"
#include "passes/fusion/fusion_groups.hpp"

namespace npu {

std::optional<std::vector<std::string>> backend_patterns(const std::string& backend) {
  static const auto kByBackend = [] {
    std::map<std::string, std::vector<std::string>> result;
    for (const BuiltInTarget& known : built_in_targets()) {
      for (const Device& device : load_target(known.name).devices) {
        if (device.fusion) result.emplace(device.backend, *device.fusion);
      }
    }
    return result;
  }();
  const auto found = kByBackend.find(backend);
  return found == kByBackend.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::vector<std::string>> device_patterns(const Device& device) {
  return device.fusion ? device.fusion : backend_patterns(device.backend);
}

namespace {

Graph fused(const Graph& graph, const std::vector<NodeId>& nodes, const SubgraphBoundary& boundary,
            const std::optional<std::vector<std::string>>& patterns) {
  Graph part = extract(graph, nodes, boundary);
  part.file = "sub-IR";
  const bool is_fused = std::any_of(part.nodes().begin(), part.nodes().end(),
                                    [](const Node& node) { return node.fusion_group.has_value(); });
  if (is_fused || !patterns) return part;
  FuseOptions options;
  options.patterns = {"none"};
  options.patterns.insert(options.patterns.end(), patterns->begin(), patterns->end());
  Diagnostics notes;
  fuse_ops(part, options, notes);
  const std::vector<NodeId> all = all_nodes(part);
  // Once more, so that nodes say which pattern their group has.
  return extract(part, all,
                 {part.graph_inputs(), part.graph_outputs(), find_boundary(part, all).weights});
}

}  // namespace

Graph fused_part(const Graph& graph, const std::vector<NodeId>& nodes,
                 const SubgraphBoundary& boundary,
                 const std::optional<std::vector<std::string>>& patterns,
                 const std::vector<StateAlias>& aliases) {
  Graph part = fused(graph, nodes, boundary, patterns);
  if (aliases.empty()) return part;
  Json pairs = Json::array();
  for (const StateAlias& alias : aliases) {
    pairs.push_back(
        {{"output", graph.tensor(alias.output).name}, {"input", graph.tensor(alias.input).name}});
  }
  part.document()["aliases"] = std::move(pairs);
  return part;
}

SubIr make_sub_ir(const Graph& graph, const std::vector<NodeId>& nodes,
                  const SubgraphBoundary& boundary,
                  const std::optional<std::vector<std::string>>& patterns,
                  const std::vector<StateAlias>& aliases) {
  const Graph part = fused_part(graph, nodes, boundary, patterns, aliases);
  return {write_sub_ir(part), predicted_kernels(part, all_nodes(part))};
}

ProgramSignature program_signature(const Graph& graph, std::size_t nodes,
                                   const std::vector<TensorId>& outputs) {
  ProgramSignature signature{.outputs = {}, .nodes = nodes};
  for (const TensorId id : outputs) {
    signature.outputs.push_back({graph.tensor(id).dtype, graph.tensor(id).shape});
  }
  return signature;
}

}  // namespace npu
