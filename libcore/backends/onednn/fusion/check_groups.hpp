// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/simd.hpp"
#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// Nodes that become one kernel.
struct KernelGroup {
  enum class Kind : std::uint8_t {
    kEpilogue,         ///< an anchor, then element-wise nodes and aliases on its only result
    kAttention,        ///< product, scale, mask, softmax, product
    kCachedAttention,  ///< the same, and perhaps a cap and sinks, with the lengths of a cache
    kSharedInput,      ///< linear nodes with one input: one product, of which each result is a part
    kWrittenGelu,      ///< what makes up a GELU, its product or half last
    kWrittenRmsNorm,   ///< what makes up an RMS norm, with its weights or without
    kSqueezeExcite,    ///< mean, layer, activation, layer, gate, product
    kNormPointwise,    ///< a batch norm and the convolution of one by one behind it, in two parts
    kExpandDepthwise,  ///< a pointwise convolution and the depthwise one behind it, likewise
    kResizedPointwise,  ///< interpolations, a concatenation and a pointwise convolution, likewise
    kQuantized,         ///< an op on dequantized tensors, functions behind it, and a quantization
    kInteger,           ///< conversions of 8 bits, zero points, and the product of what they give
  };
  Kind kind = Kind::kEpilogue;
  /// In list order; the first is the anchor, of kInteger the last, which gives the result.
  /// kAttention: the first product first. kSharedInput: every node is an anchor and has a result.
  std::vector<NodeId> nodes;
  /// kEpilogue: for each node behind the anchor, the position of the running value in its inputs.
  std::vector<std::int32_t> operand;
  /// Of kNormPointwise, kExpandDepthwise: two of kEpilogue. Of kResizedPointwise: the convolution
  /// with what stands behind it last, each node before it in front.
  std::vector<KernelGroup> parts;
  std::vector<NodeId> dequantizes{};  ///< kQuantized: in front of `nodes`, of which nothing else
                                      ///< reads the results

  NodeId anchor() const { return kind == Kind::kInteger ? nodes.back() : nodes.front(); }
  /// In list order.
  std::vector<NodeId> all_nodes() const;
};

/// A group as npu-fuse made it, and why this backend does not compute it as one, if it does not.
struct StatedGroup {
  std::string pattern;
  bool launches_kernel = false;
  std::string refusal;
};

/// What is computed together, what is not computed at all, and when tensors are read last. Follows
/// from the sub-IR and the machine alone, so that load finds what compile found.
struct CheckedGroups {
  std::vector<KernelGroup> groups;
  std::vector<std::int32_t> group_of;  ///< by node; -1 for none
  std::vector<StatedGroup> stated;
  std::vector<std::int32_t> stated_of;  ///< by node
  std::vector<bool> dead;               ///< by node: no graph output needs it
  /// By tensor: the position in the list of the last node that reads it, groups counting where they
  /// are computed; -1 if nothing does, the largest value for a graph output.
  std::vector<std::int32_t> last_use;
};

/// The sub-IR's groups, as far as this backend has kernels for them on a machine with AVX-512 or
/// without; what is left of the others is smaller groups and single nodes, with a reason. O(nodes +
/// edges).
CheckedGroups check_groups(const Graph& graph, VectorIsa isa);

/// Marks nodes that no graph output needs.
void mark_dead_nodes(const Graph& graph, CheckedGroups& plan);

/// The only live consumer of a tensor that is no graph output and stands once in that node's
/// inputs; an invalid id otherwise.
NodeId only_consumer(const Graph& graph, const CheckedGroups& plan, TensorId tensor);

}  // namespace npu::onednn
