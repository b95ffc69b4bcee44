// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/ids.hpp"

namespace npu {

/// Who produces a tensor, as a mention of it says: a node and the number of its result. A graph
/// input names itself.
struct TensorSource {
  std::string node;
  std::int32_t index = 0;
};

TensorSource source_of(const Graph& graph, TensorId id);

/// Collects edits of a document and carries them out in one go. Ids are those of the graph before
/// the edits, whatever was inserted or removed meanwhile; the graph must not change until commit().
class GraphEditor {
 public:
  explicit GraphEditor(Graph& graph);

  /// All mentions of a tensor, but for operands that set_operand has named, get another name.
  void rename(TensorId id, std::string name);
  /// All who read a tensor say that this is where it comes from.
  void set_source(TensorId id, TensorSource source);
  /// One operand of one node reads another tensor, whatever becomes of the one that it read.
  void set_operand(NodeId node, std::size_t operand, std::string name, TensorSource source);
  /// Who reads the node's results must get other operands, or other names by rename().
  void remove(NodeId id);
  /// Puts a node object in front of the one that has this place; at the end behind the last one.
  /// Nodes of one place stay in the order in which they came.
  void insert_before(NodeId place, Json node);
  /// The object of a node with all that the document says of it, to change what no other function
  /// does and the graph does not know.
  Json& json(NodeId id);

  /// Carries the edits out. The result is verified and has new ids, unless there were no edits but
  /// of json(); throws std::logic_error if it is no valid graph, which is a fault of the caller.
  void commit();

 private:
  struct Edit {
    std::optional<std::string> name;
    std::optional<TensorSource> source;
  };

  static void edit_mention(Json& mention, const Edit& edit);
  static void store_fields(Node& node);
  void edit_node(NodeId id);

  Graph& graph_;
  IdVector<TensorId, Edit> tensors_;
  IdVector<NodeId, char> removed_;
  bool has_edits_ = false;
  std::map<std::pair<NodeId, std::size_t>, Edit> operands_;
  std::map<NodeId, std::vector<Json>> inserted_;
};

}  // namespace npu
