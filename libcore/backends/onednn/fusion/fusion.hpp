// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// Nodes that become one kernel.
struct FusionGroup {
  enum class Kind : std::uint8_t {
    kEpilogue,       ///< an anchor, then element-wise nodes and aliases on its only result
    kAttention,      ///< product, scale, mask, softmax, product
    kSharedInput,    ///< linear nodes with one input: one product, of which each result is a part
    kNorm,           ///< an RMS norm written out
    kSqueezeExcite,  ///< mean, layer, activation, layer, gate, product
  };
  Kind kind = Kind::kEpilogue;
  /// In list order; the first is the anchor, the last gives the result. kAttention: the first
  /// product first. kSharedInput: every node is an anchor and has a result.
  std::vector<NodeId> nodes;
  /// kEpilogue: for each node behind the anchor, the position of the running value in its inputs.
  std::vector<std::int32_t> operand;
};

/// What is computed together, what is not computed at all, and when tensors are read last. Follows
/// from the sub-IR alone, so that load finds what compile found.
struct FusionPlan {
  std::vector<FusionGroup> groups;
  std::vector<std::int32_t> group_of;  ///< by node; -1 for none
  std::vector<bool> dead;              ///< by node: no graph output needs it
  /// By tensor: the position in the list of the last node that reads it, groups counting where they
  /// are computed; -1 if nothing does, the largest value for a graph output.
  std::vector<std::int32_t> last_use;
};

FusionPlan find_fusions(const Graph& graph);

// The steps of find_fusions, one file each; each leaves nodes alone that are in a group.

/// Marks nodes that no graph output needs.
void mark_dead_nodes(const Graph& graph, FusionPlan& plan);
/// Attention written out as matrix products around a softmax.
void match_attention(const Graph& graph, FusionPlan& plan);
/// Squeeze and excitation.
void match_squeeze_excite(const Graph& graph, FusionPlan& plan);
/// Sibling linear nodes.
void match_shared_inputs(const Graph& graph, FusionPlan& plan);
/// Batch norm, activations and additions behind an op with a heavy kernel.
void match_epilogues(const Graph& graph, FusionPlan& plan);

/// Consumers of a tensor that some graph output needs.
std::vector<NodeId> live_consumers(const Graph& graph, const FusionPlan& plan, TensorId tensor);
/// The only live consumer of a tensor that is no graph output and stands once in that node's
/// inputs; an invalid id otherwise.
NodeId only_consumer(const Graph& graph, const FusionPlan& plan, TensorId tensor);
bool is_graph_output(const Graph& graph, TensorId tensor);
/// True for an op whose result has its first operand's elements in the same row-major order.
bool keeps_row_major(const Graph& graph, const Node& node);

}  // namespace npu::onednn
