// SPDX-License-Identifier: Apache-2.0
// What a sub-IR says of shapes, checked once before any of it is lowered. A lowering function
// derives the shape of its own node's result and compares it; nodes that are lowered as a group
// have no function of their own, and oneDNN counts in 32 bits in places, where a larger extent ends
// in a division by zero. So extents, and the shapes of what groups are made of (element-wise ops,
// products, views), are looked at here, from the operands alone. Sub-IRs come from files: nothing
// here relies on what a program would have written. O(nodes + edges).
#include "lowering/engine/check_shapes.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "lowering/engine/node_arguments.hpp"
#include "lowering/engine/plan_builder.hpp"
#include "npu/support/error.hpp"
#include "ops/result_shapes.hpp"

namespace npu::onednn {

namespace {

void check_extents(const TensorInfo& tensor) {
  for (const std::int64_t extent : tensor.shape) {
    if (extent <= INT32_MAX) continue;
    throw Error(ErrorCode::kUnsupported, "tensor '" + tensor.name + "' of shape " +
                                             shape_text(tensor.shape) + ": an extent above " +
                                             number_text(INT32_MAX) + " is not supported");
  }
}

void check_node(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.outputs.empty() || !has_shape_rule(node.op_type)) return;
  std::vector<const Shape*> operands;
  operands.reserve(node.inputs.size());
  for (const TensorId id : node.inputs) operands.push_back(&graph.tensor(id).shape);
  const TensorInfo& result = graph.tensor(node.outputs.front());
  if (const auto fault = result_shape_fault(node.op_type, operands, result.shape)) {
    throw Error(ErrorCode::kInvalidGraph,
                node_text(node) + ": result '" + result.name + "' is stated as " + *fault);
  }
}

}  // namespace

void check_shapes(const Graph& graph) {
  for (const TensorInfo& tensor : graph.tensors()) check_extents(tensor);
  for (const Node& node : graph.nodes()) check_node(graph, node);
}

}  // namespace npu::onednn
