// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/ids.hpp"

namespace npu {

/// The producer of a tensor as mentions state it: a node and the index of
/// its result. A graph input names itself.
struct TensorSource {
  std::string node;
  std::int32_t index = 0;
};

TensorSource source_of(const Graph& graph, TensorId id);
/// tensor_mention with a producer.
Json tensor_mention(std::string_view name, const Shape& shape, DType dtype,
                    const TensorSource& source);

/// Collects edits of a document and applies them in one go. Ids refer to the graph before the
/// edits, whatever has been inserted or removed since; the graph must not change until commit().
class GraphEditor {
 public:
  explicit GraphEditor(Graph& graph);

  /// Renames all mentions of a tensor except operands that set_operand has named. Weights keep
  /// their keys, where they have one of their own; constants keep their names.
  void rename(TensorId id, std::string name);
  /// Sets the producer that all readers of a tensor state.
  void set_source(TensorId id, TensorSource source);
  /// Makes one operand of one node read another tensor, whatever happens to the one that it read.
  void set_operand(NodeId node, std::size_t operand, std::string name, TensorSource source);
  void set_operand(const FoldedNode& node, std::size_t operand, std::string name,
                   TensorSource source);
  /// Makes a graph output another tensor, whatever happens to the one that it was.
  void set_output(TensorId id, std::string name, TensorSource source);
  /// Makes another tensor an output, behind those that there are.
  void add_output(TensorId id);
  /// Changes the element type of a tensor wherever the document mentions it, except operands and
  /// outputs that set_operand and set_output have named.
  void retype(TensorId id, DType dtype);
  /// Removes a node. Readers of its results must get other operands, or other names by rename().
  void remove(NodeId id);
  /// Inserts a node object before node `place`; an id past the last one appends. Nodes inserted at
  /// the same place keep the order of the calls.
  void insert_before(NodeId place, Json node);
  /// Folds a node (npu-ir(5)), which loses its device, partition and fusion group.
  void fold(NodeId id);
  /// Makes every folded node one that runs.
  void unfold_all();
  /// `wanted`, or with a number behind it: a name that no tensor or node has, and that this has not
  /// returned before.
  std::string unique_name(const std::string& wanted);
  /// The object of a node with all that the document says of it, to change what no other function
  /// does and the graph does not know.
  Json& json(NodeId id);

  /// Carries the edits out. The result is verified and has new ids, unless there were no edits but
  /// of json(); throws std::logic_error if it is no valid graph, which is a fault of the caller.
  void commit();

 private:
  struct Edit {
    std::optional<std::string> name = {};
    std::optional<TensorSource> source = {};
    std::optional<DType> dtype = {};
  };

  static void edit_mention(Json& mention, const Edit& edit);
  static void store_fields(Node& node);
  void edit_node(Node& node);
  void edit_top_level(Json& document) const;
  void edit_weights(Json& document) const;

  Graph& graph_;
  IdVector<TensorId, Edit> tensors_;
  IdVector<NodeId, char> removed_;
  bool has_edits_ = false;
  bool unfold_ = false;
  std::vector<TensorId> added_outputs_;
  std::map<std::pair<const Node*, std::size_t>, Edit> operands_;
  std::map<TensorId, Edit> outputs_;
  std::map<NodeId, std::vector<Json>> inserted_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> suffix_of_;  // the last one that a name was given
};

}  // namespace npu
