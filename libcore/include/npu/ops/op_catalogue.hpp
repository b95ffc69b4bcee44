// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "npu/ops/schema.hpp"

namespace npu {

/// How an op combines its operands, after TVM's OpPatternKind (Chen et al., "TVM: An Automated
/// End-to-End Optimizing Compiler for Deep Learning", OSDI 2018, section 3).
enum class OpKind : std::uint8_t {
  kElementwise,  ///< one input element, one output element
  kBroadcast,    ///< element-wise after broadcasting
  kInjective,    ///< each output element is one input element: transpose, cat, slice
  kReduction,    ///< sum, mean, softmax, norms, pooling
  kAnchor,       ///< conv, linear, matmul: expensive; element-wise ops fuse into its epilogue
  kOpaque,       ///< anything else
};

/// One row of the catalogue.
struct OpInfo {
  std::string_view op_type;  ///< "aten.conv2d.default"
  OpKind kind = OpKind::kOpaque;
  bool is_alias = false;     ///< a view of its first operand where strides allow: moves no data
  bool is_in_place = false;  ///< overwrites its first operand in PyTorch; functional here
  Schema schema;
};

/// The row of an op, or null if the catalogue does not know it.
const OpInfo* find_op(std::string_view op_type);

/// Every op that the catalogue knows, by name.
std::vector<std::string_view> catalogued_ops();

/// True if a node moves no data: its op is an alias (a dropout only if it is not training), or it
/// is a cast whose result has its operand's dtype.
bool is_alias_node(const Graph& graph, const Node& node);

/// Floating-point operations of a node (a multiply-add is two). 0 for aliases and ops without
/// arithmetic; an op that the catalogue does not know counts as one per output element.
double node_flops(const Graph& graph, const Node& node);

/// Bytes that a node must at least read and write: each operand once, and its results. 0 for an
/// alias. With `with_weights` false, operands that are weights do not count.
double node_bytes(const Graph& graph, const Node& node, bool with_weights = true);

}  // namespace npu
