// SPDX-License-Identifier: Apache-2.0
// How to tile a node or a fusion group that does not fit into on-chip memory.
//
// A tile is a share of the result's positions (rows) and of its channels. With rows as the outer
// loop the weights are read again for each row tile, with channels as the outer loop the inputs for
// each channel tile; of all tilings that fit, the one with the least such traffic is taken. Channel
// tiles are tried in powers of two, row tiles follow from them: O(nodes + log channels). Left out:
// the halo that neighbouring tiles of a convolution share.
#include "partition/strategies/tiling_advice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op_catalogue.hpp"

namespace npu {

TilingAdvice advise_tiling(const Graph& graph, BoundaryFinder& boundaries,
                           const std::vector<NodeId>& nodes, double limit) {
  TilingAdvice advice;
  const SubgraphBoundary boundary = boundaries.find(nodes);
  double inputs = 0;
  double weights = 0;
  double outputs = 0;
  for (const TensorId id : boundary.inputs) inputs += static_cast<double>(graph.tensor(id).bytes());
  for (const TensorId id : boundary.weights)
    weights += static_cast<double>(graph.tensor(id).bytes());
  for (const TensorId id : boundary.outputs)
    outputs += static_cast<double>(graph.tensor(id).bytes());
  // Rows are the positions that reuse the same weights; channels share no weights.
  double rows = 1;
  double channels = 1;
  if (!boundary.outputs.empty()) {
    const Shape& shape = graph.tensor(boundary.outputs.front()).shape;
    bool image = false;
    for (const NodeId id : nodes) {
      image = image || graph.node(id).op_type.find("conv") != std::string::npos;
    }
    const std::size_t channel_axis = image && shape.size() > 2 ? 1 : shape.size() - 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      (axis == channel_axis ? channels : rows) *= static_cast<double>(shape[axis]);
    }
  }
  // Only with one anchor in the fused node: channels of a second one need all of the first's.
  const auto anchors = std::count_if(nodes.begin(), nodes.end(), [&](NodeId id) {
    const OpInfo* op = find_op(graph.node(id).op_type);
    return op != nullptr && op->kind == OpKind::kAnchor;
  });
  if (anchors != 1) channels = 1;
  double least = std::numeric_limits<double>::infinity();
  const auto try_tiles = [&](double row_tiles, double channel_tiles) {
    const double bytes =
        weights / channel_tiles + inputs / row_tiles + outputs / (row_tiles * channel_tiles);
    // Rows outside: weights are read once per row tile; channels outside: inputs per channel tile.
    const double traffic = std::min(weights * row_tiles + inputs, weights + inputs * channel_tiles);
    if (bytes > limit || traffic >= least) return;
    least = traffic;
    advice = {.fits = true,
              .row_tiles = static_cast<std::int64_t>(row_tiles),
              .channel_tiles = static_cast<std::int64_t>(channel_tiles),
              .bytes = bytes};
  };
  for (double channel_tiles = 1; channel_tiles <= channels; channel_tiles *= 2) {
    const double left = limit - weights / channel_tiles;
    if (left <= 0) continue;
    const double row_tiles = std::max(1.0, std::ceil((inputs + outputs / channel_tiles) / left));
    if (row_tiles <= rows) try_tiles(row_tiles, channel_tiles);
  }
  return advice;
}

}  // namespace npu
