// SPDX-License-Identifier: Apache-2.0
// GELU as models write it out is the function that the op is. O(nodes of the group).
#include <algorithm>

#include "lowering/elementwise/elementwise.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

Lowered<Done> lower_written_gelu_group(Lowering& lowering, const GroupContext& context) {
  const KernelGroup& group = *context.group;
  using Function = Elementwise::Function;
  const Graph& graph = lowering.graph();
  TensorId x;
  Eltwise gelu{dnnl::algorithm::eltwise_gelu_erf, 0.0F, 0.0F, Function::kGelu};
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    if (functional_name(node.op_type) == "tanh") {
      gelu = {dnnl::algorithm::eltwise_gelu_tanh, 0.0F, 0.0F, Function::kGeluTanh};
    }
    for (const TensorId input : node.inputs) {
      const NodeId producer = graph.tensor(input).producer;
      if (std::find(group.nodes.begin(), group.nodes.end(), producer) == group.nodes.end()) {
        x = input;
      }
    }
  }
  const TensorId result = graph.node(group.nodes.back()).outputs.front();
  lowering.define_computed(context, result, lowering.shape(x), lowering.dtype(x),
                           add_function(lowering, gelu, lowering.operand(x, context.compute_type)));
  return Done{};
}

}  // namespace npu::onednn
