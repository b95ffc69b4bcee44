// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "gnn/model/staged_model.hpp"
#include "npu/ir/graph.hpp"

namespace npu::gnn {

/// What the ops of a block are to its edges.
class GnnMatcher {
 public:
  explicit GnnMatcher(const Graph& graph) : graph_(graph) {}

  const Node* producer(TensorId id) const {
    const TensorInfo& tensor = graph_.tensor(id);
    return tensor.kind == TensorKind::kResult ? &graph_.node(tensor.producer) : nullptr;
  }

  TensorId through_alias(TensorId id) const {
    for (const Node* node = producer(id); node != nullptr; node = producer(id)) {
      if (node->op_type != "aten.alias.default") break;
      id = node->inputs.front();
    }
    return id;
  }

  /// edge_index[which]
  bool is_end(TensorId id, std::int64_t which) const {
    const Node* node = producer(id);
    if (node == nullptr || node->op_type != "aten.select.int") return false;
    const Json* dim = find_member(node->attrs(), "dim");
    const Json* index = find_member(node->attrs(), "index");
    return graph_.tensor(node->inputs.front()).name == kEdgeInput && dim != nullptr && *dim == 0 &&
           index != nullptr && *index == which;
  }

  bool is_fill(TensorId id, std::string_view op) const {
    const Node* node = producer(id);
    return node != nullptr && node->op_type == op;
  }

  /// index_add of rows by the targets of the edges, into zeros.
  bool is_sum_by_target(const Node& node) const {
    const Json* dim = find_member(node.attrs(), "dim");
    return node.op_type == "aten.index_add.default" && node.inputs.size() == 3 && dim != nullptr &&
           *dim == 0 && find_member(node.attrs(), "alpha") == nullptr &&
           is_fill(node.inputs[0], "aten.zeros.default") && is_end(node.inputs[1], 1);
  }

  /// scatter_reduce of rows by the targets of the edges into zeros, which only rows without edges
  /// keep: the largest of each column.
  bool is_largest_by_target(const Node& node) const {
    if (node.op_type != "aten.scatter_reduce.two" || node.inputs.size() != 3) return false;
    const Json* dim = find_member(node.attrs(), "dim");
    const Json* reduce = find_member(node.attrs(), "reduce");
    const Json* with_self = find_member(node.attrs(), "include_self");
    const Shape& rows = graph_.tensor(node.inputs[2]).shape;
    const Shape& result = graph_.tensor(node.inputs[0]).shape;
    return dim != nullptr && *dim == 0 && reduce != nullptr && *reduce == "amax" &&
           with_self != nullptr && *with_self == false &&
           is_fill(node.inputs[0], "aten.zeros.default") && is_target_of_elements(node.inputs[1]) &&
           graph_.tensor(node.inputs[1]).shape == rows && rows.size() == result.size() &&
           std::equal(rows.begin() + 1, rows.end(), result.begin() + 1);
  }

  /// Targets of the edges, [edges], or the same for each element of an edge's row.
  bool is_target_of_elements(TensorId id) const {
    const std::size_t rank = graph_.tensor(id).shape.size();
    const Node* node = producer(id);
    if (node != nullptr && node->op_type == "aten.expand.default" &&
        graph_.tensor(node->inputs[0]).shape.size() == rank) {
      node = producer(node->inputs[0]);
    }
    for (; node != nullptr && node->op_type == "aten.unsqueeze.default";
         node = producer(node->inputs[0])) {
      const Json* dim = find_member(node->attrs(), "dim");
      if (dim == nullptr || *dim == 0 ||
          *dim == -static_cast<std::int64_t>(graph_.tensor(node->outputs[0]).shape.size())) {
        return false;
      }
    }
    return node != nullptr && is_end(node->outputs[0], 1);
  }

  /// Rows [0, rows) of a result, which lie at its beginning: the result itself; else the tensor.
  TensorId through_first_rows(TensorId id) const {
    const Node* node = producer(id);
    if (node == nullptr || node->op_type != "aten.slice.Tensor") return id;
    const Json* dim = find_member(node->attrs(), "dim");
    const Json* start = find_member(node->attrs(), "start");
    const bool is_first = dim != nullptr && *dim == 0 && start != nullptr && *start == 0 &&
                          find_member(node->attrs(), "step") == nullptr;
    return is_first && producer(node->inputs[0]) != nullptr ? node->inputs[0] : id;
  }

  /// x of x[source].
  TensorId gathered_from(TensorId id) const {
    const Node* node = producer(id);
    if (node == nullptr || node->inputs.size() != 2 || !is_end(node->inputs[1], 0)) return {};
    if (node->op_type == "aten.embedding.default") return node->inputs[0];
    const Json* dim = find_member(node->attrs(), "dim");
    if (node->op_type == "aten.index_select.default" && dim != nullptr && *dim == 0) {
      return node->inputs[0];
    }
    return {};
  }

  bool is_per_edge(TensorId id, std::int64_t edges) const {
    const TensorInfo& tensor = graph_.tensor(id);
    return !tensor.shape.empty() && tensor.shape[0] == edges && tensor.dtype == DType::kFloat32;
  }

  /// The tensor [m, H] (or [m]) that an unsqueeze makes a factor of [m, H, C] or [m, C].
  TensorId factor_of(TensorId id, const Shape& message) const {
    const TensorInfo& tensor = graph_.tensor(id);
    if (tensor.shape.size() != message.size() || tensor.shape.back() != 1) return {};
    for (std::size_t d = 0; d + 1 < message.size(); ++d) {
      if (tensor.shape[d] != message[d]) return {};
    }
    return id;  // contiguous, so [m, H, 1] has the bytes of [m, H]
  }

  /// Some columns of a tensor of two dimensions.
  struct Columns {
    TensorId tensor;
    std::int64_t first = 0;
    std::int64_t stride = 0;  ///< columns of the tensor
  };
  /// The tensor that a slice takes columns of, or the tensor itself.
  Columns columns_of(TensorId id) const {
    const Node* node = producer(id);
    const Shape& shape = graph_.tensor(id).shape;
    const Columns all{id, 0, shape.size() == 2 ? shape[1] : 0};
    if (node == nullptr || node->op_type != "aten.slice.Tensor" || shape.size() != 2) return all;
    const Json* dim = find_member(node->attrs(), "dim");
    const Json* start = find_member(node->attrs(), "start");
    const Shape& whole = graph_.tensor(node->inputs[0]).shape;
    if (dim == nullptr || *dim != 1 || start == nullptr || !start->is_number_unsigned() ||
        find_member(node->attrs(), "step") != nullptr || whole.size() != 2 ||
        start->get<std::int64_t>() + shape[1] > whole[1]) {
      return all;
    }
    return {node->inputs[0], start->get<std::int64_t>(), whole[1]};
  }

  /// The only node that reads a tensor which is no output of the block, and reads it once.
  const Node* only_reader(TensorId id) const {
    const TensorInfo& tensor = graph_.tensor(id);
    const auto& outputs = graph_.graph_outputs();
    if (tensor.consumers.size() != 1 ||
        std::find(outputs.begin(), outputs.end(), id) != outputs.end()) {
      return nullptr;
    }
    const Node& node = graph_.node(tensor.consumers.front());
    return std::count(node.inputs.begin(), node.inputs.end(), id) == 1 ? &node : nullptr;
  }

 private:
  const Graph& graph_;
};

}  // namespace npu::gnn
