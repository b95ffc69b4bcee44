// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_instance.hpp"
#include "gnn/block/block_steps.hpp"
#include "gnn/block/gnn_programs.hpp"
#include "gnn/block/shared_array.hpp"
#include "gnn/exchange/late_rows.hpp"
#include "gnn/model/staged_model.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// What a block computes on: nodes that it owns, the edges into them, and the rows that it reads.
struct SubgraphView {
  std::int64_t owned = 0;
  std::int64_t local = 0;                  ///< owned and halo
  SharedArray<std::int64_t> offsets;       ///< rows of the owned nodes
  SharedArray<std::int32_t> sources;       ///< local ids, by edge
  SharedArray<std::int32_t> nodes;         ///< row of the base tensors by local id; empty: the same
  SharedArray<std::int32_t> base_sources;  ///< nodes[sources[e]]; empty if `nodes` is
  /// By owned row: 1 if one of its edges reads a late row of the base tensors; empty: none does.
  SharedArray<char> reads_late;
  std::int64_t edges() const { return static_cast<std::int64_t>(sources.size()); }
};

/// A tensor that a block reads. `by_node`: its rows are those of the whole graph, and the block
/// takes rows `SubgraphView::nodes`.
struct BlockInput {
  Tensor tensor;
  bool by_node = false;
  /// The same values on the block's device, uploaded before; null: the block uploads what it reads.
  std::shared_ptr<DeviceBuffer> resident;
  /// Of a tensor some of whose rows come late: a view that reads such rows waits for them.
  LateRows* late = nullptr;
};

/// A block as it was compiled.
struct BlockForm {
  Graph graph;
  BlockShape shape;
  std::shared_ptr<DeviceInstance> instance;  ///< one of the device's
  std::vector<BlockStep> steps;
};

/// Whether an input of a block is edges, which a view has.
bool is_edge_input(std::string_view name);

/// The outputs of one run of a block, in the order of its graph, with the rows that it was compiled
/// for. Inputs by name, unpadded: tensors per node have `view.local` rows if halo nodes have rows
/// in them, else `view.owned`. `padding` fills rows that are no nodes.
std::vector<Tensor> run_block(const BlockForm& block, const GnnDevice& device,
                              const SubgraphView& view,
                              const std::map<std::string, BlockInput>& inputs, float padding);

}  // namespace npu::gnn
