// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gnn/block/edge_factors.hpp"
#include "npu/ir/graph.hpp"
#include "npu/tensor/tensor.hpp"
#include "rows/row_products.hpp"
#include "rows/segment_reduce.hpp"

namespace npu::gnn {

/// A sum over the edges of each row, or the largest of each column, done by segment_reduce.
struct Reduction {
  TensorId result;
  TensorId rows;  ///< what is summed: per node with `gather`, else per edge; invalid: counts edges
  bool gather = false;
  std::int64_t first_column = 0;         ///< of `rows`
  std::int64_t row_stride = 0;           ///< 0: rows are dense
  TensorId factor;                       ///< per edge; invalid: none
  std::vector<EdgeFactor> factor_steps;  ///< compute it instead, if there are any
  Aggregate aggregate = Aggregate::kSum;
  // What is done to the sums before they are stored.
  TensorId own;  ///< rows, times a factor each, added; invalid: none
  std::int64_t own_column = 0;
  std::int64_t own_stride = 0;
  TensorId own_factor;
  TensorId addend;  ///< invalid: none
  std::int64_t addend_column = 0;
  std::int64_t addend_stride = 0;
  bool overwrites = false;  ///< the addend's memory becomes the result's
  Tensor bias;              ///< one value for each column; empty: none
  bool relu = false;
};

/// The owned rows of an input of the block.
struct OwnedSlice {
  TensorId result;
  TensorId rows;
  bool is_collected = false;  ///< a program reads all rows of that input, so they are there anyway
};

/// A product of rows with weights, done by multiply_rows.
struct Product {
  TensorId result;
  TensorId rows;  ///< those that are multiplied come first in it
  std::shared_ptr<const ProductWeights> weights;
  Tensor bias;      ///< empty: none
  TensorId addend;  ///< invalid: none
  bool relu = false;
};

/// What is computed without the backend, by the node whose result it gives.
using OwnKernel = std::variant<Reduction, OwnedSlice, Product>;
using OwnKernels = std::map<std::int32_t, OwnKernel>;

/// Finds the aggregations of a block with what else becomes part of them: the bias, additions and
/// relu that are their only readers. Slices are among them, too. O(nodes).
OwnKernels find_reductions(const Graph& graph, const std::map<std::string, Tensor>& weights);

}  // namespace npu::gnn
