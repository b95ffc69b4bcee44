// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph_editor.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// A tensor as nodes mention it.
struct Wire {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
  bool operator==(const Wire&) const = default;
};

/// A node of one result, whose name it has if it has none of its own.
struct NewNode {
  std::string op_type;
  std::vector<Wire> inputs;
  Wire output;
  Json attrs = Json::object();
  std::string name = {};
};

/// Rows or columns begin .. end of a tensor.
NewNode slice_node(const Wire& from, Wire to, std::int64_t dim, std::int64_t begin,
                   std::int64_t end);

/// GraphEditor with tensors that get other names, shapes and dtypes. Ids are those of the graph
/// before the edits; it must not change until commit().
class BlockEditor {
 public:
  explicit BlockEditor(Graph& graph);

  /// How everything mentions a tensor: nodes, and the block's inputs, outputs and weights. A node
  /// gets the name of a result that gets another one.
  Wire& wire(TensorId id) noexcept { return wires_[id]; }
  const Wire& wire(TensorId id) const noexcept { return wires_[id]; }
  /// What one operand of one node is instead.
  void read(NodeId node, std::size_t operand, Wire wire) {
    operands_[{node, operand}] = std::move(wire);
  }
  /// What an output of the block is instead.
  void give(TensorId output, Wire wire) { outputs_[output] = std::move(wire); }
  Json& attrs(NodeId node) { return editor_.json(node)["attrs"]; }

  void add_input(const Wire& wire) { new_inputs_.push_back(wire); }
  void remove_input(TensorId id) { removed_input_ = id; }
  /// Nodes that are inserted at the same place keep the order of the calls.
  void insert_before(NodeId place, const NewNode& node);
  void remove(NodeId node);
  void replace(NodeId node, const NewNode& by);

  /// Throws what GraphEditor::commit throws.
  void commit();

 private:
  void write_node(NodeId id);
  void write_lists();

  Graph& graph_;
  GraphEditor editor_;
  IdVector<TensorId, Wire> stated_;
  IdVector<TensorId, Wire> wires_;
  IdVector<NodeId, char> removed_;
  std::map<std::pair<NodeId, std::size_t>, Wire> operands_;
  std::map<TensorId, Wire> outputs_;
  std::vector<Wire> new_inputs_;
  TensorId removed_input_;
};

}  // namespace npu::gnn
