// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cost/node_table.hpp"
#include "npu/cost/cost_model.hpp"

namespace npu {

/// Times of a table that npu-profile made; the roofline's where it has none.
class MeasuredCost final : public CostModel {
 public:
  /// Throws Error kInvalidGraph if the table is of another model, or if a device of it has
  /// another backend in the target.
  MeasuredCost(NodeTable table, const Graph& graph, const Target& target);

  double node_us(const Graph& graph, NodeId node, const Device& device) const override;
  double launch_us(const Device& device) const override;
  double transfer_us(const Target& target, std::string_view from, std::string_view to,
                     double bytes) const override;
  double tensor_us(const Graph& graph, TensorId tensor, const Target& target, std::string_view from,
                   std::string_view to) const override;
  bool is_measured(const Graph& graph, NodeId node, const Device& device) const override;
  Json provenance() const override;

  const NodeTable& table() const noexcept { return table_; }

 private:
  const NodeTime* find(const Graph& graph, NodeId node, const Device& device) const;

  NodeTable table_;
  NameIndex<std::vector<std::int32_t>> nodes_;   // name -> index into table_.nodes, by device
  NameIndex<std::vector<std::size_t>> borders_;  // tensor -> indices into table_.borders
};

}  // namespace npu
