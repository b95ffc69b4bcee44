// SPDX-License-Identifier: Apache-2.0
// Finds the nodes that npu-tag folds.
//
// A model computes constants at run time: masks, indices of relative positions, grids. Each such
// node that the preferred device lacks would cut the graph in two, for values that never change.
// What depends on weights and constants alone is a region that is closed towards its operands. Of
// it, a device that folds constants itself keeps what it can compute (the backend does so when it
// compiles, and chooses the layout), unless a batch norm reads it, and a view of a weight stays
// where it costs nothing. The rest is folded, with all that it depends on. O(nodes + edges).
#include "passes/tag/find_constants.hpp"

#include <algorithm>

#include "npu/support/ids.hpp"
#include "ops/constant_ops.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

/// A result up to this size is folded whatever it is made of. A larger one only if its operands are
/// as large: it would make a bundle bigger than the weights that it stands for.
constexpr std::int64_t kAlwaysFolded = std::int64_t{16} << 20;

bool has_foldable_size(const Graph& graph, const Node& node) {
  const auto bytes_of = [&](const std::vector<TensorId>& tensors) {
    std::int64_t bytes = 0;
    for (const TensorId id : tensors) bytes = saturating_add(bytes, graph.tensor(id).bytes());
    return bytes;
  };
  const std::int64_t results = bytes_of(node.outputs);
  return results <= kAlwaysFolded || results <= bytes_of(node.inputs);
}

bool folds_constants(const Device& device) {
  return device.fusion && std::find(device.fusion->begin(), device.fusion->end(), "constant") !=
                              device.fusion->end();
}

/// Whether a tensor is a weight, or what one of `constants` gives, which are by node.
bool is_known(const Graph& graph, const std::vector<char>& constants, TensorId id) {
  const TensorInfo& tensor = graph.tensor(id);
  return tensor.kind == TensorKind::kWeight ||
         (tensor.kind == TensorKind::kResult && constants[index_of(tensor.producer)] != 0);
}

/// Whether a batch norm reads a result. Norms become parts of convolutions only if all that they
/// read is known before anything is compiled.
bool is_read_by_norm(const Graph& graph, const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](TensorId output) {
    const std::vector<NodeId>& readers = graph.tensor(output).consumers;
    return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
      return fusion_role(graph.node(reader).op_type) == FusionRole::kBatchNorm;
    });
  });
}

}  // namespace

std::vector<char> find_constants(const Graph& graph, const Target& target,
                                 const std::vector<char>& is_fixed) {
  std::vector<char> constants(graph.nodes().size(), 0);
  const Device* device = folding_device(target);
  if (device == nullptr) return constants;
  const auto is_constant = [&](TensorId id) { return is_known(graph, constants, id); };
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const Node& node = graph.node(id);
    if (is_fixed[index_of(id)] != 0 || !depends_on_constants_alone(node, is_constant)) continue;
    constants[index_of(id)] = is_repeatable(graph, node) && has_foldable_size(graph, node) &&
                                      check_support(graph, id, *device).supported
                                  ? 1
                                  : 0;
  }
  return constants;
}

std::int64_t count_kept_constants(const Graph& graph, const Target& target) {
  std::vector<char> constants(graph.nodes().size(), 0);
  const auto is_constant = [&](TensorId id) { return is_known(graph, constants, id); };
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const Node& node = graph.node(id);
    const Device* device = node.device ? target.find_device(*node.device) : nullptr;
    constants[index_of(id)] = device != nullptr && folds_constants(*device) &&
                                      depends_on_constants_alone(node, is_constant) &&
                                      is_repeatable(graph, node)
                                  ? 1
                                  : 0;
  }
  return std::count(constants.begin(), constants.end(), 1);
}

std::vector<char> choose_folded(const Graph& graph, const std::vector<char>& constants,
                                const std::vector<const Device*>& devices) {
  // Forwards: which nodes their devices compute when they compile.
  std::vector<char> kept(constants.size(), 0);
  std::vector<char> folded(constants.size(), 0);
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const std::size_t n = index_of(id);
    if (constants[n] == 0) continue;
    const Node& node = graph.node(id);
    // Operands that are folded are weights, whoever would have run their nodes.
    const bool has_known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId input) {
      return is_known(graph, constants, input);
    });
    kept[n] = has_known && devices[n] != nullptr && folds_constants(*devices[n]) ? 1 : 0;
    const bool leaves = std::any_of(node.outputs.begin(), node.outputs.end(), [&](TensorId output) {
      const std::vector<NodeId>& readers = graph.tensor(output).consumers;
      return std::any_of(readers.begin(), readers.end(),
                         [&](NodeId reader) { return devices[index_of(reader)] != devices[n]; });
    });
    folded[n] =
        leaves || is_read_by_norm(graph, node) || (kept[n] == 0 && !is_alias_node(graph, node)) ? 1
                                                                                                : 0;
  }
  // Backwards: all that they depend on. A list of results stays in one place, with all that take it
  // apart.
  for (std::size_t n = folded.size(); n-- > 0;) {
    if (folded[n] == 0) continue;
    for (const TensorId input : graph.nodes()[n].inputs) {
      const TensorInfo& tensor = graph.tensor(input);
      if (tensor.kind != TensorKind::kResult || constants[index_of(tensor.producer)] == 0) continue;
      folded[index_of(tensor.producer)] = 1;
    }
  }
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const Node& node = graph.node(id);
    if (constants[index_of(id)] == 0 || node.op_type != kGetitem || node.inputs.empty()) continue;
    const TensorInfo& list = graph.tensor(node.inputs.front());
    if (list.kind == TensorKind::kResult && folded[index_of(list.producer)] != 0) {
      folded[index_of(id)] = 1;
    }
  }
  return folded;
}

}  // namespace npu
