// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gnn/block/block_run.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// A graph of `owned` nodes and `edges` edges with skewed degrees, like real ones, whose
/// edges come from the owned nodes and from `halo` further ones.
SubgraphView skewed_graph(std::int64_t owned, std::int64_t halo, std::int64_t edges);

/// The graph as a part of one of `all` nodes, over which its own are spread. Another `run` has
/// other nodes, so that none finds the rows of the one before in a cache.
SubgraphView part_of_larger_graph(const SubgraphView& graph, std::int64_t all, std::int32_t run);

/// Numbers between -1 and 1 that depend on the seed alone; zeros of other types than float32.
Tensor filled(DType dtype, Shape shape, std::uint64_t seed);

/// What becomes of the results of a part: its rows of the whole, written for the first time.
void store_outputs(const std::map<std::string, Tensor>& outputs, const SubgraphView& part);

}  // namespace npu::gnn
