// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "ir/bind_sizes.hpp"
#include "ir/graph_editor.hpp"
#include "passes/padding/infer_tails.hpp"
#include "passes/padding/rewrite_rows.hpp"
#include "passes/padding/size_nodes.hpp"

namespace npu::padding {

/// Puts nodes into a graph whose sizes are padded, and notes the sizes of what they make. Ids stay
/// until commit().
class RowWriter {
 public:
  RowWriter(Graph& graph, const PaddedSizes& sizes, const TensorSizes& shapes, AddedSizes& added)
      : graph_(graph),
        sizes_(sizes),
        shapes_(shapes),
        added_(added),
        editor_(graph),
        nodes_(graph, sizes, editor_) {}

  const Graph& graph() const noexcept { return graph_; }
  const PaddedSizes& sizes() const noexcept { return sizes_; }
  const TensorSizes& shapes() const noexcept { return shapes_; }
  SizeNodes& nodes() noexcept { return nodes_; }
  GraphEditor& editor() noexcept { return editor_; }

  TensorId result_of(NodeId id) const { return graph_.node(id).outputs.front(); }
  const TensorInfo& result(NodeId id) const { return graph_.tensor(result_of(id)); }

  /// A tensor as an operand.
  Json mention(TensorId id) const;
  /// The node as the document has it, with another op; the last one of those that replace it.
  void replace(NodeId id, const std::string& op_type, Json inputs, Json attrs);
  /// A node in front of another one; the mention of its result, which has `numbers` rows at the
  /// capacities.
  Json insert(NodeId before, const std::string& wanted, const std::string& op_type, Json inputs,
              Json attrs, const SizeShape& shape, const Shape& numbers, DType dtype);
  /// The same of an int64 tensor and a size: "add", "mul", "remainder", "floor_divide".
  Json arithmetic(NodeId before, const std::string& name, const std::string& op, const Json& left,
                  const SizeExpression& size, const SizeShape& shape, const Shape& numbers);
  /// 0, 1, 2 and so on.
  Json line(NodeId before, const std::string& name, const SizeExpression& size);
  /// A size as a float.
  Json number(const SizeExpression& size, DType dtype);
  /// Notes the size of a tensor of nodes().
  void note_sizes(const std::string& name, SizeShape shape) { added_[name] = std::move(shape); }
  /// What stands in front of earlier nodes already, by a text of the caller's; null at first.
  Json& known(const std::string& what) { return known_[what]; }

  void commit() { nodes_.commit(); }

 private:
  Graph& graph_;
  const PaddedSizes& sizes_;
  const TensorSizes& shapes_;
  AddedSizes& added_;
  GraphEditor editor_;
  SizeNodes nodes_;
  std::map<std::string, Json> known_;
};

/// A dtype as attributes have it.
std::string type_text(DType dtype);

}  // namespace npu::padding
