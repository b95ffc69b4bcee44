// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph_editor.hpp"
#include "passes/padding/padded_sizes.hpp"

namespace npu::padding {

/// The name of the graph input that has the valid size of a symbol: "npu.n.S".
std::string valid_input_name(const std::string& symbol);

/// Writes sizes as nodes that compute them, each once: int64 tensors without dimensions. They stand
/// in front of all other nodes, so that those of a later round may read them wherever they stand.
class SizeNodes {
 public:
  SizeNodes(const Graph& graph, const PaddedSizes& sizes, GraphEditor& editor);

  /// The mention of a tensor that has the value of an expression with symbols, for operands.
  Json value(const SizeExpression& size);
  /// The index of the last of so many rows, as a tensor of one element, for index_select.
  Json last_row(const SizeExpression& rows);
  /// The indices of `count` rows from row `first` on, for index_select.
  Json rows_from(const SizeExpression& first, std::int64_t count);
  /// A node in front of all others but earlier ones of these, with one result of its name; its
  /// mention.
  Json add(const std::string& name, const std::string& op_type, Json inputs, Json attrs,
           const Shape& shape, DType dtype);

  /// GraphEditor's, behind all sizes.
  void insert_before(NodeId place, Json node) { others_.emplace_back(place, std::move(node)); }
  void commit();

 private:
  const Graph& graph_;
  const PaddedSizes& sizes_;
  GraphEditor& editor_;
  NodeId place_;                                    ///< of the first node that is none of these
  std::map<std::string, Json, std::less<>> known_;  // by text
  std::vector<std::pair<NodeId, Json>> others_;
};

/// What a tensor without dimensions computes of valid sizes, read from the nodes in front of it;
/// nothing if they compute anything else.
std::optional<SizeExpression> computed_size(const Graph& graph, const PaddedSizes& sizes,
                                            TensorId id);

}  // namespace npu::padding
