// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "npu/ir/graph.hpp"
#include "rows/edge_values.hpp"

namespace npu::gnn {

/// A step of edge_values, of which `node` is not known yet.
struct EdgeFactor {
  EdgeStep step;
  TensorId node;  ///< what kSource and kTarget read: float32 [nodes, heads]
};

/// The steps that compute a tensor per edge, float32 [edges, heads] or with dimensions of 1
/// besides, from tensors per node; none if it takes other ops or is read from elsewhere. O(nodes
/// that make it).
std::vector<EdgeFactor> find_edge_factors(const Graph& graph, TensorId factor);

}  // namespace npu::gnn
