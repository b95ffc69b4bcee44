// SPDX-License-Identifier: Apache-2.0
// Which numbers decide integers: what follows from them, through element-wise ops and ops that move
// elements alone, is cut to integers, compared, or ranked, so that a last place more or less may
// become another bucket, index or mask. Walks the list backwards. O(nodes + edges).
#include <algorithm>
#include <array>
#include <string_view>

#include "ops/op_name.hpp"
#include "passes/fusion/node_facts.hpp"

namespace npu::fusion {
namespace {

/// Ops with steps whose results are floats.
constexpr auto kSteps = std::to_array<std::string_view>(
    {"ceil", "floor", "floor_divide", "fmod", "frac", "remainder", "round", "sign", "trunc"});

bool has_steps(const Node& node) {
  const std::string_view name = functional_name(node.op_type);
  return std::find(kSteps.begin(), kSteps.end(), name) != kSteps.end() ||
         find_member(node.attrs(), "rounding_mode") != nullptr;
}

/// True for ops whose results have elements of one or of some operands' elements each.
bool goes_through(const Node& node) {
  if (node.op_type == kGetitem) return true;
  const OpInfo* op = find_op(node.op_type);
  return op != nullptr && op->kind <= OpKind::kInjective;
}

}  // namespace

std::vector<bool> deciding_tensors(const Graph& graph) {
  std::vector<bool> decides(graph.tensors().size(), false);
  const auto is_float = [&](TensorId id) { return is_floating_point(graph.tensor(id).dtype); };
  for (std::size_t i = graph.nodes().size(); i > 0; --i) {
    const Node& node = graph.nodes()[i - 1];
    const bool makes_integers = !std::all_of(node.outputs.begin(), node.outputs.end(), is_float);
    const bool follows =
        goes_through(node) && std::any_of(node.outputs.begin(), node.outputs.end(),
                                          [&](TensorId id) { return decides[index_of(id)]; });
    if (!makes_integers && !follows && !has_steps(node)) continue;
    for (const TensorId id : node.inputs) {
      if (is_float(id)) decides[index_of(id)] = true;
    }
  }
  return decides;
}

}  // namespace npu::fusion
