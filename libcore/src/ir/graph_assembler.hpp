// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "npu/ir/graph.hpp"

namespace npu {

/// Puts a graph together from tensors and nodes, wherever they come from: a document, or another
/// graph. Names can be looked up as soon as they are added.
class GraphAssembler {
 public:
  /// `document` is the top level, without the nodes.
  GraphAssembler(const std::string& file, Json document);

  /// What is there so far. Names and tensors of nodes must not change behind the assembler's back.
  Graph& graph() noexcept { return graph_; }
  TensorInfo& tensor(TensorId id) { return graph_.tensors_[index_of(id)]; }

  /// Room for so many nodes, or tensors.
  void reserve_nodes(std::size_t count);
  void reserve_tensors(std::size_t count);
  void set_model_name(const std::string& name) { graph_.model_name_ = name; }
  /// A tensor whose name no other has; its consumers are found at the end.
  TensorId add_tensor(TensorInfo tensor);
  void add_graph_input(TensorId id) { graph_.graph_inputs_.push_back(id); }
  void add_graph_output(TensorId id) { graph_.graph_outputs_.push_back(id); }
  /// Lets a node in the list be found by its name. The node that had the name before, and keeps it;
  /// invalid if none had.
  NodeId name_node(NodeId id);

  /// Finds consumers, verifies the graph unless there are errors already, and sets folded nodes
  /// apart. O(nodes + edges).
  void finish(Diagnostics& diagnostics);
  Graph take() { return std::move(graph_); }

 private:
  void find_consumers();
  void set_folded_apart(Diagnostics& diagnostics);

  Graph graph_;
};

}  // namespace npu
