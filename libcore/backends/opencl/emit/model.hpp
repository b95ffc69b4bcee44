// SPDX-License-Identifier: Apache-2.0
// A graph as kernels are made of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emit/machine.hpp"
#include "emit/op_row.hpp"
#include "npu/ir/graph.hpp"
#include "ops/schema.hpp"

namespace npu::opencl {

/// The graph with its nodes' arguments bound to their schemas, and what computes each.
class Model {
 public:
  /// Throws Error that names the node whose op is not known or whose arguments do not bind.
  Model(const Graph& graph, Machine machine, OpTable find_row);

  const Graph& graph() const noexcept { return *graph_; }
  const Machine& machine() const noexcept { return machine_; }
  const Shape& shape(TensorId id) const { return graph_->tensor(id).shape; }
  DType dtype(TensorId id) const { return graph_->tensor(id).dtype; }
  std::int64_t count(TensorId id) const;
  const Node& node(NodeId id) const { return graph_->node(id); }
  /// Not for getitem, which has no schema.
  const BoundNode& bound(NodeId id) const { return *bound_[static_cast<std::size_t>(id.value)]; }
  const OpRow& row(NodeId id) const { return *rows_[static_cast<std::size_t>(id.value)]; }
  /// True for a view, whether by its op or because it need not move anything here.
  bool is_view(NodeId id) const;
  /// "int", or "long" if a tensor has 2^31 elements or more.
  const std::string& index_type() const noexcept { return index_type_; }

 private:
  const Graph* graph_;
  Machine machine_;
  std::vector<const OpRow*> rows_;
  std::vector<std::optional<BoundNode>> bound_;
  std::string index_type_ = "int";
};

}  // namespace npu::opencl
